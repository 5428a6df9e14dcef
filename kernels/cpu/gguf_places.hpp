// Where the parts of the packed formats of GGUF lie, for the files of one ISA each. The layouts are those
// of kernels/linear_gguf.hpp.
// The namespace is unnamed and everything included is C, as in avx2_math.hpp.
#pragma once

#include <stdint.h>

#include <kernels/linear_gguf.hpp>

namespace dovetail::kernels {
namespace {

/// A head of kHeadBytes, and behind it kBlocks blocks of 32 k: kScaleBytes and kLevelBytes each.
template <int64_t kBlocks, int64_t kHead, int64_t kScales, int64_t kLevels>
struct GgufPlaces {
  static constexpr int64_t kScaleBytes = kScales;
  static constexpr int64_t kBlockBytes = kScales + kLevels;
  static constexpr int64_t kGroupBytes = kHead + kBlocks * kBlockBytes;  // of kBlocks * 32 k
  static int64_t group_bytes(int64_t k_len) {
    return k_len / (kBlocks * kQuantBlock) * kGroupBytes;
  }
  static const uint8_t* head_at(const uint8_t* group, int64_t b) {
    return group + b / kBlocks * kGroupBytes;
  }
  /// Where block b of a group begins: its scales, if it has any, and its levels.
  static const uint8_t* block_at(const uint8_t* group, int64_t b) {
    return head_at(group, b) + kHead + b % kBlocks * kBlockBytes;
  }
  static const uint8_t* levels_at(const uint8_t* group, int64_t b) {
    return block_at(group, b) + kScales;
  }
};

constexpr int64_t kHalvesBytes = 2 * kPackedRows;  // a float16 for each row
constexpr int64_t kNibblesBytes = kPackedRows * kQuantBlock / 2;
constexpr int64_t kBytesBytes = kPackedRows * kQuantBlock;

using PlacesQ4_0 = GgufPlaces<1, kHalvesBytes, 0, kNibblesBytes>;
using PlacesQ8_0 = GgufPlaces<1, kHalvesBytes, 0, kBytesBytes>;
using PlacesQ4_K = GgufPlaces<8, 2 * kHalvesBytes, 2 * kPackedRows, kNibblesBytes>;
using PlacesQ6_K = GgufPlaces<8, kHalvesBytes, 2 * kPackedRows, kBytesBytes>;

}  // namespace
}  // namespace dovetail::kernels
