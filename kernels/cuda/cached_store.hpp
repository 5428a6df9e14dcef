// A row of one head into the cache, by a warp.
#pragma once

#include <kernels/cached_rows.hpp>

#include "kernels/cuda/numbers.hpp"

namespace dovetail::kernels::cuda {

__device__ inline void store_number(float* g_to, float value) {
  *g_to = value;
}
__device__ inline void store_number(uint16_t* g_to, float value) {
  *g_to = to_bf16(value);
}

/// All lanes call it.
template <class Element>
__device__ inline void store_row(Element* g_to, const float* row, int64_t head_dim) {
  for (int64_t i = lane_of_warp(); i < head_dim; i += kWarp) store_number(g_to + i, row[i]);
}
/// As int8_levels.hpp says.
__device__ inline void store_row(int8_t* g_to, const float* row, int64_t head_dim) {
  constexpr float kLeastGreatest = 0x1p-100F, kRound = 0x1.8p+23F;
  uint32_t bits = 0;  // of max |x|; so compared, an infinity or a NaN wins over every number
  for (int64_t i = lane_of_warp(); i < head_dim; i += kWarp) {
    const uint32_t magnitude = __float_as_uint(row[i]) & 0x7FFFFFFFU;
    bits = magnitude > bits ? magnitude : bits;
  }
  for (int bit = kWarp / 2; bit > 0; bit /= 2) {
    const uint32_t other = __shfl_xor_sync(kAllLanes, bits, bit);
    bits = other > bits ? other : bits;
  }
  const float greatest = __uint_as_float(bits);
  const bool is_finite = bits < 0x7F800000U, is_zero = greatest < kLeastGreatest;
  const float inverse = is_finite && !is_zero ? 127.0F / greatest : 0.0F;

  const int64_t level_bytes = int8_level_bytes(head_dim);
  for (int64_t i = lane_of_warp(); i < level_bytes; i += kWarp) {
    const bool has_level = i < head_dim && inverse != 0.0F;
    g_to[i] = has_level ? static_cast<int8_t>((row[i] * inverse + kRound) - kRound) : int8_t{0};
  }
  if (lane_of_warp() == 0)
    *reinterpret_cast<float*>(g_to + level_bytes) = is_zero ? 0.0F : greatest / 127.0F;
}

}  // namespace dovetail::kernels::cuda
