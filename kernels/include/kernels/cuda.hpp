// The ops on a CUDA device. Each has the contract of its own header, where nothing else is said; the last
// pointer in that list is device memory, and the call returns when the kernel is launched.
//
// A launch takes its stream first, computes the grid and launches; nothing else. threads: any, a stream is
// one queue. errors: none here; the caller asks the runtime after a launch (cudaGetLastError). Rows without
// elements, and no rows, launch nothing.
//
// A row's value depends on that row alone: never on how many there are, nor on its place among them.
// Arithmetic is what the source says (built with -fmad=false), but for exp and for the order in which the
// tensor cores add.
#pragma once

#include <cstdint>

#include <kernels/f16.hpp>
#include <kernels/kv_cache.hpp>
#include <kernels/weight_formats.hpp>

struct CUstream_st;

namespace dovetail::kernels::cuda {

using Stream = CUstream_st*;  // cudaStream_t

// ---------------------------------------------------------------- rms_norm.hpp, softmax.hpp, argmax.hpp

void rms_norm(Stream stream, float* g_out, const float* g_x, const float* g_weight, int64_t n_rows,
              int64_t row_len, float eps, float weight_offset);
/// The mean of each row: g_out [n_rows], g_x [n_rows, row_len].
///
/// numerics  float, within 2e-6 * mean |x|.
void mean_rows(Stream stream, float* g_out, const float* g_x, int64_t n_rows, int64_t row_len);
void softmax(Stream stream, float* g_out, const float* g_x, int64_t n_rows, int64_t row_len);
/// For each row the lowest index of its greatest value among those that the mask allows; NaN and -inf never
/// win, and -1 stands for a row without a winner.
///
/// shapes    g_ids [n_rows]; g_x [n_rows, row_len]; g_mask: bits [row_len / 32], or null: all allowed.
void argmax(Stream stream, int32_t* g_ids, const float* g_x, const uint32_t* g_mask, int64_t n_rows,
            int64_t row_len);

/// Begins a step: tokens that earlier steps sampled are put in their places, 0 for a row without a winner; then
/// what the last step sampled becomes what the one before it did.
///
/// shapes    g_tokens, g_from [n_tokens]: where g_from is not negative, an index into g_sampled; g_sampled
///           [2, n_rows]: of the last step, of the one before.
void take_tokens(Stream stream, int32_t* g_tokens, const int32_t* g_from, int32_t* g_sampled,
                 int64_t n_tokens, int64_t n_rows);

// ---------------------------------------------------------------- pointwise.hpp

/// Which b stands beside element i of a: b[i / repeat % period].
struct Broadcast {
  int64_t repeat, period;
};
void add(Stream stream, float* g_out, const float* g_a, const float* g_b, int64_t n, Broadcast b);
void mul(Stream stream, float* g_out, const float* g_a, const float* g_b, int64_t n, Broadcast b);
void silu_mul(Stream stream, float* g_out, const float* g_a, const float* g_b, int64_t n);
void silu(Stream stream, float* g_out, const float* g_x, int64_t n);
void gelu_tanh(Stream stream, float* g_out, const float* g_x, int64_t n);
void add_scalar(Stream stream, float* g_out, const float* g_x, float value, int64_t n);
void mul_scalar(Stream stream, float* g_out, const float* g_x, float value, int64_t n);
/// out[i] = 1 / sqrt(x[i]), both rounded.
void rsqrt(Stream stream, float* g_out, const float* g_x, int64_t n);

// ---------------------------------------------------------------- rope.hpp

void rope_table(Stream stream, float* g_cos, float* g_sin, const int32_t* g_positions,
                const float* g_inv_freq, int64_t n_tokens, int64_t half_len,
                float attention_factor);
void rope_half_split(Stream stream, float* g_out, int64_t out_stride, const float* g_x,
                     int64_t x_stride, const float* g_cos, const float* g_sin, int64_t n_tokens,
                     int64_t n_heads, int64_t head_dim, int64_t half_len);

// ---------------------------------------------------------------- gather_rows.hpp

void gather_rows(Stream stream, float* g_out, const float* g_table, const int32_t* g_ids,
                 int64_t n_ids, int64_t row_len);
void gather_rows(Stream stream, float* g_out, const uint16_t* g_table, const int32_t* g_ids,
                 int64_t n_ids, int64_t row_len);
void gather_rows(Stream stream, float* g_out, const F16* g_table, const int32_t* g_ids,
                 int64_t n_ids, int64_t row_len);
/// From a packed table (weight_formats.hpp): the numbers of unpack_row.
void gather_packed_rows(Stream stream, float* g_out, const void* g_table, WeightFormat format,
                        const int32_t* g_ids, int64_t n_ids, int64_t row_len);

// ---------------------------------------------------------------- linear.hpp, linear_quantized.hpp

/// Activations as products read them: each number in three bfloat16 whose sum it is.
///   bf16 part[3][n_tokens][k_len filled with zeros to a multiple of 32]
constexpr int64_t kCutParts = 3;
constexpr int64_t cut_row_len(int64_t k_len) {
  return (k_len + 31) / 32 * 32;
}
constexpr int64_t cut_bytes(int64_t n_tokens, int64_t k_len) {
  return kCutParts * n_tokens * cut_row_len(k_len) * 2;
}
/// shapes    g_cut cut_bytes(n_tokens, k_len), on 16 bytes; g_x [n_tokens, k_len], dense.
void cut_activations(Stream stream, void* g_cut, const float* g_x, int64_t n_tokens, int64_t k_len);

/// What the numbers of a matrix are: plain, or a packed WeightFormat.
enum class MatrixNumbers { kFloat32, kBf16, kF16, kInt8, kInt4, kInt4q, kInt6 };
constexpr MatrixNumbers numbers_of(WeightFormat format) {
  switch (format) {
    case WeightFormat::kInt8:
      return MatrixNumbers::kInt8;
    case WeightFormat::kInt4:
      return MatrixNumbers::kInt4;
    case WeightFormat::kInt4q:
      return MatrixNumbers::kInt4q;
    case WeightFormat::kInt6:
      break;
  }
  return MatrixNumbers::kInt6;
}
/// The weights of a product: [n_rows, k_len], dense and aligned to 16 bytes (slower where plain rows are no
/// multiples of that), or packed (weight_formats.hpp) with k_len a multiple of kQuantBlock.
struct Matrix {
  const void* g_w;
  MatrixNumbers numbers;
  int64_t n_rows, k_len;
};
/// y[t, n] = sum_k x[t, k] * w[n, k], + bias[n] and then + residual[t, n] where there are any, with x from
/// cut_activations. Packed numbers are those of unpack_row; activations are not quantised.
///
/// shapes    g_y, g_residual [n_tokens, n_rows], dense; g_bias [n_rows]; both may be null, g_residual may be g_y.
///           g_y overlaps nothing else.
/// numerics  products of bfloat16 parts by the tensor cores, float sums: as near as linear.hpp says (where
///           weights and activations are above 2^-100). The order of sums depends on k_len alone.
///           Infinite activations give infinity or NaN.
void linear(Stream stream, float* g_y, const void* g_cut, const Matrix& w, const float* g_bias,
            const float* g_residual, int64_t n_tokens);

// ---------------------------------------------------------------- kv_cache.hpp, attend.hpp

/// The tokens of a step: where each stands, and where the pages of its sequence are.
struct StepRows {
  const int32_t* g_positions;    // [n_tokens]
  const uint32_t* g_page_begin;  // [n_tokens]: its page table begins at g_pages + g_page_begin[t]
  const uint32_t* g_pages;
  int64_t n_tokens;
};
/// shapes    g_rows [n_tokens, n_kv_heads, head_dim], dense; no two tokens have the same place.
void cache_write(Stream stream, float* g_base, const KvLayout& layout, const StepRows& step,
                 const float* g_rows);
void cache_write(Stream stream, uint16_t* g_base, const KvLayout& layout, const StepRows& step,
                 const float* g_rows);
void cache_write(Stream stream, int8_t* g_base, const KvLayout& layout, const StepRows& step,
                 const float* g_rows);

/// Consecutive tokens of one sequence, which share each read of the cache.
struct AttendTile {
  int32_t first_token, n_tokens;
};
/// How many tokens a tile may have.
int64_t attend_tile_len(int64_t n_group_heads);
/// The longest row of a head.
inline constexpr int64_t kMaxHeadDim = 256;

struct AttendArgs {
  float* g_out;      // [n_tokens, n_heads, head_dim]
  const float* g_q;  // likewise
  const AttendTile* g_tiles;
  int64_t n_tiles, n_heads;
  int64_t window;  // a token at pos sees keys (pos - window, pos]; INT64_MAX sees them all
  float scale;
  // Where given, each chunk of keys (kAttendChunk) has blocks of its own, whose parts the last one of them brings
  // together, to the same bits: attend_parts_len() floats.
  float* g_parts;
  int64_t n_chunks;     // of the longest sequence of the step, or more
  uint32_t* g_arrived;  // n_tiles * n_heads of them, zeros before and after; with g_parts alone
};
int64_t attend_parts_len(int64_t n_tokens, int64_t n_heads, int64_t head_dim, int64_t n_chunks);
/// errors    none: head_dim <= kMaxHeadDim.
void attend(Stream stream, const AttendArgs& args, const KvLayout& layout, const StepRows& step,
            const float* g_k, const float* g_v);
void attend(Stream stream, const AttendArgs& args, const KvLayout& layout, const StepRows& step,
            const uint16_t* g_k, const uint16_t* g_v);
void attend(Stream stream, const AttendArgs& args, const KvLayout& layout, const StepRows& step,
            const int8_t* g_k, const int8_t* g_v);

}  // namespace dovetail::kernels::cuda
