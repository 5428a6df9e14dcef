// How a thread of a product reads its two rows of a matrix, plain or packed: 32 k at a time, of which it has
// eight. linear_tile.hpp says which rows and k are whose.
//
// A kind of rows has
//   kAhead           blocks of k that a warp loads before it multiplies the first one
//   load(block)      numbers 8 * pair .. + 7 of the block, of rows `row` and `row` + 8
//   multiply         sum += their products with a thread's eight activations
//   finish(sums)     once the last block is added
#pragma once

#include <type_traits>

#include "kernels/cuda/linear_tile.hpp"
#include "kernels/cuda/packed_numbers.hpp"

namespace dovetail::kernels::cuda {

/// In how many bfloat16 a weight is cut: exactly.
template <class Weight>
constexpr int kWeightParts = 1;
template <>
constexpr int kWeightParts<F16> = 2;
template <>
constexpr int kWeightParts<float> = 3;

/// float, uint16_t (bfloat16) or F16, as they are stored.
template <class Weight>
class PlainRows {
 public:
  static constexpr int kAhead = sizeof(Weight) == 2 ? 4 : 2;
  static constexpr int kVectors = sizeof(Weight) / 2;  // of 16 bytes in eight numbers
  struct Block {
    uint4 row[2][kVectors];
  };

  /// Rows first_row .. + 15, of which those from n_rows on count as zeros.
  __device__ PlainRows(const void* g_w, int64_t first_row, int64_t n_rows, int64_t k_len)
      : g_w_(static_cast<const Weight*>(g_w)),
        first_row_(first_row + lane_of_warp() / 4),
        n_rows_(n_rows),
        k_len_(k_len) {}

  __device__ Block load(int64_t block) const {
    const int64_t k = block * kBlockLen + 8 * (lane_of_warp() % 4);
    Block out;
    DVT_UNROLL
    for (int r = 0; r < 2; ++r) load_eight(first_row_ + 8 * r, k, out.row[r]);
    return out;
  }
  __device__ void multiply(float (&sum)[4], const Block& block, const Eight<kCutParts>& x) const {
    multiply_eight(sum, parts_of(block.row[0]), parts_of(block.row[1]), x);
  }
  __device__ void finish(float (&)[4]) const {}

 private:
  using Bits = std::conditional_t<sizeof(Weight) == 2, uint16_t, uint32_t>;

  __device__ void load_eight(int64_t row, int64_t k, uint4 (&out)[kVectors]) const {
    DVT_UNROLL
    for (int v = 0; v < kVectors; ++v) out[v] = {0, 0, 0, 0};
    if (row >= n_rows_ || k >= k_len_) return;
    const Weight* g_from = g_w_ + row * k_len_ + k;
    // Whether a thread's eight numbers lie on 16 bytes in every row.
    if (k + 8 <= k_len_ && k_len_ % (16 / static_cast<int64_t>(sizeof(Weight))) == 0) {
      DVT_UNROLL
      for (int v = 0; v < kVectors; ++v) out[v] = load16(g_from + v * 8 / kVectors);
      return;
    }
    const auto* g_bits = reinterpret_cast<const Bits*>(g_from);
    uint32_t words[4 * kVectors];
    constexpr int kPerWord = 4 / sizeof(Weight);
    DVT_UNROLL
    for (int i = 0; i < 4 * kVectors; ++i) {
      words[i] = 0;
      DVT_UNROLL
      for (int j = 0; j < kPerWord; ++j)
        if (k + i * kPerWord + j < k_len_)
          words[i] |= static_cast<uint32_t>(g_bits[i * kPerWord + j]) << j * 16;
    }
    DVT_UNROLL
    for (int v = 0; v < kVectors; ++v)
      out[v] = {words[4 * v], words[4 * v + 1], words[4 * v + 2], words[4 * v + 3]};
  }
  static __device__ Eight<kWeightParts<Weight>> parts_of(const uint4 (&row)[kVectors]) {
    if constexpr (kWeightParts<Weight> == 1) {
      return {{{row[0].x, row[0].y, row[0].z, row[0].w}}};
    } else {
      float values[8];
      if constexpr (kVectors == 1) {
        const uint32_t words[4] = {row[0].x, row[0].y, row[0].z, row[0].w};
        DVT_UNROLL
        for (int i = 0; i < 8; ++i)
          values[i] = widen(Weight{static_cast<uint16_t>(words[i / 2] >> i % 2 * 16)});
      } else {
        const uint32_t words[8] = {row[0].x, row[0].y, row[0].z, row[0].w,
                                   row[1].x, row[1].y, row[1].z, row[1].w};
        DVT_UNROLL
        for (int i = 0; i < 8; ++i) values[i] = __uint_as_float(words[i]);
      }
      return cut_eight<kWeightParts<Weight>>(values);
    }
  }

  const Weight* g_w_;
  int64_t first_row_, n_rows_, k_len_;
};

/// The packed layout of weight_formats.hpp. A block of k is one with a scale of its own; levels are whole numbers
/// that bfloat16 holds exactly.
template <WeightFormat kFormat>
class PackedRows {
 public:
  static constexpr int kAhead = 4;
  struct Block {
    Eight<1> row[2];
    float scale[2];
  };
  static_assert(kBlockLen == kQuantBlock);

  /// Rows first_row .. + 15; those from n_rows on are any.
  __device__ PackedRows(const void* g_packed, int64_t first_row, int64_t n_rows, int64_t k_len)
      : rows_{{static_cast<const uint8_t*>(g_packed), inside(first_row, n_rows), k_len},
              {static_cast<const uint8_t*>(g_packed), inside(first_row + 8, n_rows), k_len}} {}

  __device__ Block load(int64_t block) const {
    Block out;
    DVT_UNROLL
    for (int r = 0; r < 2; ++r) {
      const PackedBlock<kFormat> packed(rows_[r], block);
      int32_t levels[8];
      packed.eight_values(8 * (lane_of_warp() % 4), levels);
      DVT_UNROLL
      for (int i = 0; i < 4; ++i)
        out.row[r].pairs[0][i] =
            pair_of(static_cast<float>(levels[2 * i]), static_cast<float>(levels[2 * i + 1]));
      out.scale[r] = packed.scale;
    }
    return out;
  }
  __device__ void multiply(float (&sum)[4], const Block& block, const Eight<kCutParts>& x) const {
    float of_block[4] = {};
    multiply_eight(of_block, block.row[0], block.row[1], x);
    DVT_UNROLL
    for (int i = 0; i < 4; ++i) sum[i] = fmaf(of_block[i], block.scale[i / 2], sum[i]);
  }
  __device__ void finish(float (&sum)[4]) const {
    DVT_UNROLL
    for (int i = 0; i < 4; ++i) sum[i] *= rows_[i / 2].d;
  }

 private:
  static __device__ int64_t inside(int64_t first_row, int64_t n_rows) {
    const int64_t row = first_row + lane_of_warp() / 4;
    return row < n_rows ? row : n_rows - 1;
  }

  PackedRow<kFormat> rows_[2];
};

/// Calls fn.operator()<Rows>() with the rows of matrices of these numbers.
template <class Fn>
void with_rows(MatrixNumbers numbers, const Fn& fn) {
  switch (numbers) {
    case MatrixNumbers::kFloat32:
      return fn.template operator()<PlainRows<float>>();
    case MatrixNumbers::kBf16:
      return fn.template operator()<PlainRows<uint16_t>>();
    case MatrixNumbers::kF16:
      return fn.template operator()<PlainRows<F16>>();
    case MatrixNumbers::kInt8:
      return fn.template operator()<PackedRows<WeightFormat::kInt8>>();
    case MatrixNumbers::kInt4:
      return fn.template operator()<PackedRows<WeightFormat::kInt4>>();
    case MatrixNumbers::kInt4q:
      return fn.template operator()<PackedRows<WeightFormat::kInt4q>>();
    case MatrixNumbers::kInt6:
      return fn.template operator()<PackedRows<WeightFormat::kInt6>>();
  }
}

}  // namespace dovetail::kernels::cuda
