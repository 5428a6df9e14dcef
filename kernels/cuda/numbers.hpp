// Stored numbers on the device: float, bfloat16 as bare bits, half precision, fp8, the levels of an int8 cache.
#pragma once

#include <kernels/f16.hpp>

#include "kernels/cuda/device.hpp"

namespace dovetail::kernels::cuda {

/// A number of fp8 with 4 bits of exponent and 3 of mantissa (OCP's E4M3: no infinity, NaN 0x7F), as stored.
struct Fp8 {
  uint8_t bits;
};

__device__ inline float widen(float value) {
  return value;
}
__device__ inline float widen(uint16_t bf16) {
  return __uint_as_float(static_cast<uint32_t>(bf16) << 16);
}
__device__ inline float widen(int8_t level) {
  return static_cast<float>(level);
}
/// A signalling NaN becomes quiet.
__device__ inline float widen(F16 value) {
  const uint32_t sign = (value.bits & 0x8000U) << 16;
  const uint32_t magnitude = value.bits & 0x7FFFU;
  if (magnitude >= 0x7C00U) {
    const uint32_t quiet = magnitude > 0x7C00U ? 0x00400000U : 0U;
    return __uint_as_float(sign | 0x7F800000U | (magnitude & 0x3FFU) << 13 | quiet);
  }
  // With the exponent's bits where a float has them, off by a factor of 2^112, denormals too.
  const float value_off = __uint_as_float(magnitude << 13);
  return __uint_as_float(sign | __float_as_uint(value_off * 0x1p+112F));
}
__device__ inline float widen(Fp8 value) {
  const uint32_t sign = (value.bits & 0x80U) << 24, magnitude = value.bits & 0x7FU;
  if (magnitude == 0x7FU) return __uint_as_float(sign | 0x7FC00000U);
  const float value_off = __uint_as_float(magnitude << 20);  // off by 2^120
  return __uint_as_float(sign | __float_as_uint(value_off * 0x1p+120F));
}

/// The nearest bfloat16, ties to even; NaN stays NaN, made quiet.
__device__ inline uint16_t to_bf16(float value) {
  const uint32_t bits = __float_as_uint(value);
  const uint32_t rounded = bits + 0x7FFFU + ((bits >> 16) & 1U);
  const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
  return static_cast<uint16_t>((is_nan ? bits | 0x00400000U : rounded) >> 16);
}

/// The nearest fp8, ties to even; beyond the greatest (448) that; NaN stays NaN.
__device__ inline Fp8 to_fp8(float value) {
  const uint32_t bits = __float_as_uint(value);
  const auto sign = static_cast<uint8_t>(bits >> 24 & 0x80U);
  const uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return {static_cast<uint8_t>(sign | 0x7FU)};
  if (magnitude >= __float_as_uint(448.0F)) return {static_cast<uint8_t>(sign | 0x7EU)};
  if (magnitude < __float_as_uint(0x1p-6F)) {  // denormals count in 2^-9; adding 1.5 * 2^23 rounds
    const float steps = __uint_as_float(magnitude) * 0x1p+9F + 0x1.8p+23F;
    return {static_cast<uint8_t>(sign | (__float_as_uint(steps) & 0xFFU))};
  }
  const uint32_t rounded = magnitude + 0x7FFFFU + ((magnitude >> 20) & 1U);
  return {static_cast<uint8_t>(sign | ((rounded >> 20) - (120U << 3)))};
}

/// The next bfloat16 towards zero, as the upper half of a float's bits.
__device__ inline float truncated(float value) {
  return __uint_as_float(__float_as_uint(value) & 0xFFFF0000U);
}
/// Two numbers that are bfloat16 already, the first one in the lower half.
__device__ inline uint32_t pair_of(float first, float second) {
  return __float_as_uint(first) >> 16 | (__float_as_uint(second) & 0xFFFF0000U);
}

/// Cuts a number into kParts of 8 bits of mantissa each, whose sum it is (with three: exactly, while none of
/// them is denormal). Infinity and NaN are the first part.
template <int kParts>
__device__ inline void cut_in_parts(float value, float (&parts)[kParts]) {
  const bool is_finite = (__float_as_uint(value) & 0x7F800000U) != 0x7F800000U;
  if (!is_finite) {
    parts[0] = value != value ? __uint_as_float(0x7FC00000U) : value;
    for (int i = 1; i < kParts; ++i) parts[i] = 0.0F;
    return;
  }
  for (int i = 0; i < kParts; ++i) {
    parts[i] = truncated(value);
    value -= parts[i];
  }
}

}  // namespace dovetail::kernels::cuda
