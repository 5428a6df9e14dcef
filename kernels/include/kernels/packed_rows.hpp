// Reading the packed layout of weight_formats.hpp, one number at a time.
//
// Not for the ISA files: an inline function compiled there could be the copy that the linker keeps.
#pragma once

#include <cstdint>
#include <cstring>

#include <kernels/weight_formats.hpp>

namespace dovetail::kernels {

/// s(c): what a scale byte stands for, a whole number from 32 to 8064.
inline float scale_of_code(uint8_t code) {
  return static_cast<float>((32U + (code & 31U)) << (code >> 5U));
}

constexpr int64_t block_bytes(WeightFormat format) {
  if (format == WeightFormat::kInt8) return kInt8BlockBytes;
  return format == WeightFormat::kInt6 ? kInt6BlockBytes : kInt4BlockBytes;
}

/// Whether blocks have a z of their own, between their scales and their levels.
constexpr bool has_zeros(WeightFormat format) {
  return format == WeightFormat::kInt4 || format == WeightFormat::kInt4q;
}

constexpr int64_t group_bytes(WeightFormat format, int64_t k_len) {
  return kPackedRows * static_cast<int64_t>(sizeof(float)) +
         k_len / kQuantBlock * block_bytes(format);
}

/// Where things lie in a block, for the row at place `lane` of its group and k within the block.
constexpr int64_t int8_at(int64_t lane, int64_t k) {
  return kPackedRows + (k / 4 * kPackedRows + lane) * 4 + k % 4;
}
constexpr int64_t nibble_at(WeightFormat format, int64_t lane, int64_t k) {
  return (has_zeros(format) ? 2 : 1) * kPackedRows + (k / 8 * kPackedRows + lane) * 4 + k % 4;
}
constexpr unsigned nibble_shift(int64_t k) {
  return k / 4 % 2 == 0 ? 0U : 4U;
}
/// The upper two bits of a level of int6.
constexpr int64_t crumb_at(int64_t lane, int64_t k) {
  return kPackedRows + kPackedRows * kQuantBlock / 2 + (k / 16 * kPackedRows + lane) * 4 + k % 4;
}
constexpr unsigned crumb_shift(int64_t k) {
  return static_cast<unsigned>(k / 4 % 4 * 2);
}

/// What a 4-bit level stands for, before z is taken off.
inline int32_t level_of(WeightFormat format, uint32_t q) {
  return format == WeightFormat::kInt4 ? static_cast<int32_t>(16 * q) : 4 * kInt4qGrid[q];
}

/// The whole number v of w = d * s(c) * v.
inline int32_t packed_value(WeightFormat format, const uint8_t* block, int64_t lane, int64_t k) {
  if (format == WeightFormat::kInt8) return static_cast<int8_t>(block[int8_at(lane, k)]);
  const uint32_t q = (block[nibble_at(format, lane, k)] >> nibble_shift(k)) & 15U;
  if (format == WeightFormat::kInt6) {
    const uint32_t upper = (block[crumb_at(lane, k)] >> crumb_shift(k)) & 3U;
    return static_cast<int32_t>(upper << 4U | q) - kInt6Zero;
  }
  return level_of(format, q) - block[kPackedRows + lane];
}

/// d of the row at place `lane` of a group.
inline float row_scale(const uint8_t* group, int64_t lane) {
  float d;
  std::memcpy(&d, group + lane * static_cast<int64_t>(sizeof d), sizeof d);
  return d;
}

}  // namespace dovetail::kernels
