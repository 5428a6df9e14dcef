// What the kernels are held to: each op as its contract has it, in the plainest way, on the device: one thread an
// output, sums in double. Nothing of kernels/cuda but its macros is used, so that no mistake is shared.
//
// A result is what is expected, and how far from it a kernel may be.
#pragma once

#include <kernels/cuda_decode.hpp>

namespace dovetail::gpu_check {

using kernels::KvLayout;
using kernels::cuda::AttendTile;
using kernels::cuda::CacheNumbers;
using kernels::cuda::Matrix;
using kernels::cuda::MatrixNumbers;
using kernels::cuda::StepRows;
using kernels::cuda::Stream;

/// Both [n], on the device.
struct Expected {
  float *g_values, *g_bounds;
};

/// What a comparison found, on the device; zeros before.
struct Found {
  uint32_t greatest_error;  // bits of a float
  uint32_t greatest_share;  // likewise: the error as a part of its bound
  uint32_t n_beyond;        // elements beyond their bounds, or NaN
  uint32_t first_beyond;    // counted from the end: n - index of the first one, 0 for none
};
void compare(Stream stream, Found* g_found, const float* g_got, const Expected& expected,
             int64_t n);
/// Bytes, each as a number; the bound is 0.
void compare_bytes(Stream stream, Found* g_found, const uint8_t* g_got, const uint8_t* g_expected,
                   int64_t n);
/// Numbers that must be the very same.
void expect_same(Stream stream, const Expected& out, const float* g_from, int64_t n);
void as_floats(Stream stream, float* g_out, const int32_t* g_from, int64_t n);

// ---------------------------------------------------------------- numbers from a counter

/// Even between -scale and scale; element i depends on the seed and i alone.
void fill(Stream stream, float* g_out, int64_t n, uint32_t seed, float scale);
/// Whole numbers from 0 to n_levels - 1.
void fill_levels(Stream stream, float* g_out, int64_t n, uint32_t seed, uint32_t n_levels);
void fill_bytes(Stream stream, void* g_out, int64_t n_bytes, uint32_t seed);
/// Rows of an int8 cache, of magnitude up to 1, each with a scale in its last four bytes.
void fill_int8_rows(Stream stream, void* g_out, int64_t n_rows, int64_t row_bytes, uint32_t seed);
/// Bytes of a matrix in these numbers: weights of magnitude up to 1.
int64_t matrix_bytes(MatrixNumbers numbers, int64_t n_rows, int64_t k_len);
void fill_matrix(Stream stream, void* g_w, MatrixNumbers numbers, int64_t n_rows, int64_t k_len,
                 uint32_t seed);

// ---------------------------------------------------------------- ops

namespace reference {

void rms_norm(Stream stream, const Expected& out, const float* g_x, const float* g_weight,
              int64_t n_rows, int64_t row_len, float eps, float weight_offset);
void mean_rows(Stream stream, const Expected& out, const float* g_x, int64_t n_rows,
               int64_t row_len);
void softmax(Stream stream, const Expected& out, const float* g_x, int64_t n_rows, int64_t row_len);
void argmax(Stream stream, const Expected& out, const float* g_x, const uint32_t* g_mask,
            int64_t n_rows, int64_t row_len);

enum class Pointwise { kAdd, kMul, kSiluMul, kSilu, kGeluTanh, kAddScalar, kMulScalar, kRsqrt };
/// b: the other number where there is one, of an array at i / repeat % period.
void pointwise(Stream stream, Pointwise op, const Expected& out, const float* g_a, const float* g_b,
               float value, int64_t n, int64_t repeat, int64_t period);

void rope_table(Stream stream, const Expected& cosines, const Expected& sines,
                const int32_t* g_positions, const float* g_inv_freq, int64_t n_tokens,
                int64_t half_len, float attention_factor);
void rope_half_split(Stream stream, const Expected& out, const float* g_x, const float* g_cos,
                     const float* g_sin, int64_t n_tokens, int64_t n_heads, int64_t head_dim,
                     int64_t half_len);
void gather_rows(Stream stream, const Expected& out, const Matrix& table, const int32_t* g_ids,
                 int64_t n_ids);
/// The sums of the parts that activations were cut in, rows filled up.
void sum_parts(Stream stream, float* g_out, const void* g_cut, int64_t n_tokens, int64_t k_len);
void filled_rows(Stream stream, const Expected& out, const float* g_x, int64_t n_tokens,
                 int64_t k_len);
/// g_x_bounds: how far the kernel's own x may be from g_x, or null.
void linear(Stream stream, const Expected& out, const float* g_x, const float* g_x_bounds,
            const Matrix& w, const float* g_bias, const float* g_residual, int64_t n_tokens);
void silu_mul(Stream stream, const Expected& out, const Expected& gate, const Expected& up,
              int64_t n);
/// Rows of heads after their product: normed where there is a weight, and turned where g_cos is given.
void finish_heads(Stream stream, const Expected& out, const Expected& rows, const float* g_weight,
                  float eps, float weight_offset, const float* g_cos, const float* g_sin,
                  int64_t n_tokens, int64_t n_heads, int64_t head_dim, int64_t half_len);

/// Rows into the cache; g_base: of the numbers that `cache` says.
void cache_write(Stream stream, void* g_base, CacheNumbers cache, const KvLayout& layout,
                 const StepRows& step, const float* g_rows);
/// The rows of a step back from the cache: [n_tokens, n_kv_heads, head_dim].
void cache_read(Stream stream, float* g_rows, const void* g_base, CacheNumbers cache,
                const KvLayout& layout, const StepRows& step);
/// Widens the bounds by what storing costs.
void add_storing(Stream stream, const Expected& rows, CacheNumbers cache, int64_t n_rows,
                 int64_t head_dim);
/// g_scores: room for n_tokens * n_heads * max_len.
void attend(Stream stream, const Expected& out, const float* g_q, const void* g_k, const void* g_v,
            CacheNumbers cache, const KvLayout& layout, const StepRows& step, int64_t n_heads,
            int64_t window, float scale, float* g_scores, int64_t max_len);

}  // namespace reference

// ---------------------------------------------------------------- bandwidth

/// Reads n_bytes (a multiple of 16) and adds them up, so that nothing is left out.
void read_all(Stream stream, uint32_t* g_sum, const void* g_from, int64_t n_bytes);

}  // namespace dovetail::gpu_check
