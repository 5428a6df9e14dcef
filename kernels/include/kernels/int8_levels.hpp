// How numbers become int8 levels with one scale: blocks of activations, rows of the cache.
//
// Not for the ISA files: an inline function compiled there could be the copy that the linker keeps.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace dovetail::kernels {

/// Writes the levels of n numbers and gives their scale:
///   scale = max |x| / 127, q = x * (127 / max |x|) to the nearest, ties to even
///
/// numerics  float32, each operation rounded. Numbers with an infinity or a NaN among them keep
///           that as their scale with q = 0, so that every result that reads them is NaN. Where
///           max |x| is below 2^-100 (127 / max |x| could overflow) scale and q are 0.
inline float int8_levels(int8_t* q, const float* x, int64_t n) {
  constexpr float kLeastGreatest = 0x1p-100F;
  constexpr float kRound = 0x1.8p+23F;  // x + kRound - kRound: nearest whole number, ties to even

  uint32_t bits = 0;  // of max |x|; so compared, an infinity or a NaN wins over every number
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t magnitude = std::bit_cast<uint32_t>(x[i]) & 0x7FFFFFFFU;
    bits = magnitude > bits ? magnitude : bits;
  }
  const auto greatest = std::bit_cast<float>(bits);

  for (int64_t i = 0; i < n; ++i) q[i] = 0;
  if (greatest < kLeastGreatest) return 0.0F;
  if (std::isfinite(greatest)) {
    const float inverse = 127.0F / greatest;
    for (int64_t i = 0; i < n; ++i) q[i] = static_cast<int8_t>((x[i] * inverse + kRound) - kRound);
  }
  return greatest / 127.0F;
}

}  // namespace dovetail::kernels
