// Reading the packed layout of weight_formats.hpp on the device: one number, or eight along k.
#pragma once

#include <kernels/packed_rows.hpp>

#include "kernels/cuda/device.hpp"

namespace dovetail::kernels::cuda {

/// A row of a packed matrix.
template <WeightFormat kFormat>
struct PackedRow {
  __device__ PackedRow(const uint8_t* g_packed, int64_t row, int64_t k_len)
      : g_group(g_packed + row / kPackedRows * group_bytes(kFormat, k_len)),
        place(row % kPackedRows),
        d(reinterpret_cast<const float*>(g_group)[place]) {}

  const uint8_t* g_group;
  int64_t place;  // in its group
  float d;
};

/// The level grid of int4q, a byte each.
constexpr uint64_t grid_bytes(int first) {
  uint64_t out = 0;
  for (int i = 0; i < 8; ++i) out |= uint64_t{kInt4qGrid[first + i]} << 8 * i;
  return out;
}

/// One block of 32 k of a row.
template <WeightFormat kFormat>
struct PackedBlock {
  __device__ PackedBlock(const PackedRow<kFormat>& row, int64_t block)
      : g_block(row.g_group + kPackedRows * static_cast<int64_t>(sizeof(float)) +
                block * block_bytes(kFormat)),
        place(row.place) {
    const uint32_t code = g_block[place];
    scale = static_cast<float>((32U + (code & 31U)) << (code >> 5U));
    zero = 0;
    if constexpr (has_zeros(kFormat)) zero = g_block[kPackedRows + place];
    if constexpr (kFormat == WeightFormat::kInt6) zero = kInt6Zero;
  }

  /// The whole number v of w = d * scale * v.
  __device__ int32_t value(int64_t k) const {
    if constexpr (kFormat == WeightFormat::kInt8)
      return static_cast<int8_t>(g_block[int8_at(place, k)]);
    uint32_t level = (g_block[nibble_at(kFormat, place, k)] >> nibble_shift(k)) & 15U;
    if constexpr (kFormat == WeightFormat::kInt6)
      level |= ((g_block[crumb_at(place, k)] >> crumb_shift(k)) & 3U) << 4U;
    return step_of(level) - zero;
  }

  /// Those of k, ..., k + 7, k a multiple of 8.
  __device__ void eight_values(int64_t k, int32_t (&out)[8]) const {
    if constexpr (kFormat == WeightFormat::kInt8) {
      const uint32_t words[2] = {word_at(int8_at(place, k)), word_at(int8_at(place, k + 4))};
      DVT_UNROLL
      for (int i = 0; i < 8; ++i) out[i] = static_cast<int8_t>(words[i / 4] >> i % 4 * 8);
      return;
    }
    const uint32_t nibbles = word_at(nibble_at(kFormat, place, k));
    uint32_t crumbs = 0;
    if constexpr (kFormat == WeightFormat::kInt6)
      crumbs = word_at(crumb_at(place, k)) >> crumb_shift(k);
    DVT_UNROLL
    for (int i = 0; i < 8; ++i) {
      uint32_t level = (nibbles >> (i % 4 * 8 + i / 4 * 4)) & 15U;
      if constexpr (kFormat == WeightFormat::kInt6)
        level |= ((crumbs >> (i % 4 * 8 + i / 4 * 2)) & 3U) << 4U;
      out[i] = step_of(level) - zero;
    }
  }

  const uint8_t* g_block;
  int64_t place;
  float scale;
  int32_t zero;

 private:
  __device__ uint32_t word_at(int64_t offset) const {
    return *reinterpret_cast<const uint32_t*>(g_block + offset);
  }
  static __device__ int32_t step_of(uint32_t level) {
    if constexpr (kFormat == WeightFormat::kInt4) return static_cast<int32_t>(16 * level);
    if constexpr (kFormat == WeightFormat::kInt4q) {
      constexpr uint64_t kLow = grid_bytes(0), kHigh = grid_bytes(8);
      return static_cast<int32_t>(4 * ((level < 8 ? kLow : kHigh) >> level % 8 * 8 & 255U));
    }
    return static_cast<int32_t>(level);
  }
};

}  // namespace dovetail::kernels::cuda
