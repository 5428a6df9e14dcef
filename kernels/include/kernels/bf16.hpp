// The value behind the bits of a 16-bit float, one element at a time. Rows of them: convert.hpp.
//
// Not for the ISA files: an inline function compiled there could be the copy that the linker keeps.
#pragma once

#include <bit>
#include <cstdint>

namespace dovetail::kernels {

/// The float that a bfloat16 stands for: exact, NaN payloads included.
inline float bf16_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// The nearest bfloat16, ties to even. Overflow gives infinity, denormals stay, NaN stays NaN (made
/// quiet, sign and upper payload kept).
inline uint16_t float_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = bits + 0x7FFFU + ((bits >> 16) & 1U);
  const uint32_t quiet_nan = bits | 0x00400000U;  // rounding could carry a NaN into infinity
  const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
  return static_cast<uint16_t>((is_nan ? quiet_nan : rounded) >> 16);
}

/// The float that an IEEE half stands for: exact; a signalling NaN becomes quiet, as VCVTPH2PS
/// does.
inline float f16_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000U) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1FU;
  const uint32_t mantissa = bits & 0x3FFU;
  if (exponent == 0) {  // zero or denormal: mantissa * 2^-24, exact in float
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  if (exponent == 0x1F) {
    const uint32_t quiet = mantissa != 0 ? 0x00400000U : 0U;
    return std::bit_cast<float>(sign | 0x7F800000U | (mantissa << 13) | quiet);
  }
  return std::bit_cast<float>(sign | ((exponent + 112U) << 23) | (mantissa << 13));
}

}  // namespace dovetail::kernels
