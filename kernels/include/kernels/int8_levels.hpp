// How numbers become int8 levels with one scale: blocks of activations, rows of the cache.
//
// Not for the ISA files: an inline function compiled there could be the copy that the linker keeps.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace dovetail::kernels {

struct Int8Scale {
  float scale;    // of a level: max |x| / 127
  float inverse;  // 127 / max |x|, or 0 where every level is 0
};

/// The scale of n numbers.
///
/// numerics  float32, each operation rounded. Numbers with an infinity or a NaN among them keep
///           that as their scale with levels of 0, so that every result that reads them is NaN.
///           Where max |x| is below 2^-100 (127 / max |x| could overflow) scale and levels are 0.
inline Int8Scale int8_scale(const float* x, int64_t n) {
  constexpr float kLeastGreatest = 0x1p-100F;
  uint32_t bits = 0;  // of max |x|; so compared, an infinity or a NaN wins over every number
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t magnitude = std::bit_cast<uint32_t>(x[i]) & 0x7FFFFFFFU;
    bits = magnitude > bits ? magnitude : bits;
  }
  const auto greatest = std::bit_cast<float>(bits);
  if (greatest < kLeastGreatest) return {0.0F, 0.0F};
  return {greatest / 127.0F, std::isfinite(greatest) ? 127.0F / greatest : 0.0F};
}

/// The nearest whole number, ties to even, of one below 2^22.
inline float nearest_level(float x) {
  constexpr float kRound = 0x1.8p+23F;
  return (x + kRound) - kRound;
}

/// Writes the levels of n numbers, q = x * (127 / max |x|) to the nearest, and gives their scale.
inline float int8_levels(int8_t* q, const float* x, int64_t n) {
  const Int8Scale of = int8_scale(x, n);
  for (int64_t i = 0; i < n; ++i) {
    q[i] = of.inverse == 0.0F ? int8_t{0} : static_cast<int8_t>(nearest_level(x[i] * of.inverse));
  }
  return of.scale;
}

}  // namespace dovetail::kernels
