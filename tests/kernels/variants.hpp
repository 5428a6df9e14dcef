// The kernel variants that this machine can run, and repeatable numbers to feed them.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include <kernels/bf16.hpp>
#include <kernels/cpu.hpp>

namespace dovetail::kernels {

inline std::vector<const CpuKernels*> variants() {
  std::vector<const CpuKernels*> rows;
  for (const Isa isa : kIsas) {
    if (can_run(isa)) rows.push_back(&cpu_kernels(isa));
  }
  return rows;
}

/// n numbers in [-1, 1), the same for the same seed.
inline std::vector<float> noise(int64_t n, uint32_t seed) {
  std::vector<float> values(static_cast<size_t>(n));
  uint32_t state = seed * 2654435761U + 1U;
  for (float& value : values) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31F;
  }
  return values;
}

inline std::vector<uint16_t> to_bf16(const std::vector<float>& values) {
  std::vector<uint16_t> bits;
  for (const float value : values) bits.push_back(float_to_bf16(value));
  return bits;
}

/// Values in [-1, 1) cut to half precision, without the smallest.
inline std::vector<F16> to_f16(const std::vector<float>& values) {
  std::vector<F16> halves;
  for (const float value : values) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t exponent = (bits >> 23) & 0xFFU;
    const uint32_t magnitude = exponent < 113 ? 0 : (exponent - 112) << 10 | (bits >> 13 & 0x3FFU);
    halves.push_back({static_cast<uint16_t>((bits >> 16 & 0x8000U) | magnitude)});
  }
  return halves;
}

inline bool same_bits(const float* a, const float* b, int64_t n) {
  return n == 0 || std::memcmp(a, b, static_cast<size_t>(n) * sizeof(float)) == 0;
}

/// How many floats lie between a and b; a huge number when one is NaN and the other is not.
inline int64_t ulps_between(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : INT64_MAX;
  const auto ordered = [](float value) {
    const auto bits = static_cast<int64_t>(std::bit_cast<uint32_t>(value));
    return bits < 0x80000000LL ? bits : 0x80000000LL - bits;
  };
  return std::abs(ordered(a) - ordered(b));
}

}  // namespace dovetail::kernels
