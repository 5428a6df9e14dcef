// The arithmetic that portable kernels share: eight-lane sums and the exponential.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include <kernels/bf16.hpp>
#include <kernels/f16.hpp>

namespace dovetail::kernels::portable {

inline constexpr int64_t kLanes = 8;

inline float widen(float value) {
  return value;
}
inline float widen(uint16_t bits) {
  return bf16_to_float(bits);
}
inline float widen(int8_t level) {
  return level;
}
inline float widen(F16 value) {
  return f16_to_float(value.bits);
}

/// The one reduction tree of every eight-lane sum.
inline float reduce(const float (&lane)[kLanes]) {
  return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

/// sum_i a[i] * b[i], lane l over i = l, l + 8, ... ascending.
template <class Element>
float dot(const float* a, const Element* b, int64_t n) {
  float lane[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) lane[l] += a[i + l] * widen(b[i + l]);
  }
  for (int64_t l = 0; l < kLanes && i < n; ++i, ++l) lane[l] += a[i] * widen(b[i]);
  return reduce(lane);
}

/// sum_i x[i] in the same order.
inline float sum(const float* x, int64_t n) {
  float lane[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) lane[l] += x[i + l];
  }
  for (int64_t l = 0; l < kLanes && i < n; ++i, ++l) lane[l] += x[i];
  return reduce(lane);
}

/// 2^n for n in [-126, 127]. Unsigned, so that the garbage which NaN gives wraps instead of
/// trapping.
inline float power_of_two(uint32_t n) {
  return std::bit_cast<float>((n + 127U) << 23);
}

/// e^x, within 2 units in the last place; the accuracy and the ends are those of pointwise.hpp.
/// The C library's expf differs by a bit between processors, and bytes must not.
///
/// x = n ln 2 + r with |r| <= ln 2 / 2, where the Taylor series to r^7 is within 0.1 ulp; 2^n is
/// applied in two halves, so that both ends of the range come out of ordinary rounding.
inline float exp_of(float x) {
  constexpr float kHighest = 89.0F;   // e^89 rounds to infinity
  constexpr float kLowest = -104.0F;  // e^-104 rounds to zero
  constexpr float kLog2E = 0x1.715476p+0F;
  constexpr float kLn2High = 0x1.63p-1F;  // few bits: n * kLn2High is exact
  constexpr float kLn2Low = -0x1.bd0106p-13F;
  constexpr float kRound = 0x1.8p+23F;  // adding it leaves the nearest integer in the low bits

  x = x > kHighest ? kHighest : x;  // NaN passes
  x = x < kLowest ? kLowest : x;
  const float shifted = x * kLog2E + kRound;
  const auto n =
      static_cast<int32_t>(std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRound));
  const float whole = shifted - kRound;
  const float r = (x - whole * kLn2High) - whole * kLn2Low;

  float p = 1.0F / 5040.0F;
  p = p * r + 1.0F / 720.0F;
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = (p * r) * r + r;
  const int32_t half = n >> 1;
  return ((1.0F + p) * power_of_two(static_cast<uint32_t>(half))) *
         power_of_two(static_cast<uint32_t>(n) - static_cast<uint32_t>(half));
}

inline float silu_of(float x) {
  return x / (1.0F + exp_of(-x));
}

}  // namespace dovetail::kernels::portable
