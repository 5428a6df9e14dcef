// Reading the packed layouts of linear_gguf.hpp, one number at a time.
//
// Not for the ISA files: an inline function compiled there could be the copy that the linker keeps.
#pragma once

#include <cstdint>
#include <cstring>

#include <kernels/bf16.hpp>
#include <kernels/linear_gguf.hpp>

namespace dovetail::kernels {

/// What tells one format from another. A block is 32 k of a group, a head what comes before kBlocks of them.
template <GgufPacked kFormat>
struct GgufLayout {
  static constexpr bool kIsLarge = kFormat == GgufPacked::kQ4_K || kFormat == GgufPacked::kQ6_K;
  static constexpr bool kIsNibbles = kFormat == GgufPacked::kQ4_0 || kFormat == GgufPacked::kQ4_K;
  static constexpr int64_t kBlocks = kIsLarge ? 8 : 1;
  static constexpr int64_t kHeadBytes = kPackedRows * (kFormat == GgufPacked::kQ4_K ? 4 : 2);
  static constexpr int64_t kScaleBytes =
      kIsLarge ? 2 * kPackedRows : 0;  // of a block, before its levels
  static constexpr int64_t kBlockBytes =
      kScaleBytes + kPackedRows * kQuantBlock / (kIsNibbles ? 2 : 1);
  static constexpr int64_t kGroupBytes = kHeadBytes + kBlocks * kBlockBytes;  // of kBlocks * 32 k
  static constexpr int64_t group_bytes(int64_t k_len) {
    return k_len / (kBlocks * kQuantBlock) * kGroupBytes;
  }
};

/// One block of a group, for the row at place `lane`.
template <GgufPacked kFormat>
struct GgufBlock {
  using Layout = GgufLayout<kFormat>;

  /// Block b of a group.
  GgufBlock(const uint8_t* group, int64_t b)
      : head(group + b / Layout::kBlocks * Layout::kGroupBytes),
        scales(head + Layout::kHeadBytes + b % Layout::kBlocks * Layout::kBlockBytes),
        levels(scales + Layout::kScaleBytes) {}

  float d(int64_t lane) const { return half(head + 2 * lane); }
  /// What levels are multiplied by, of the half with k; 1 where only d is.
  int32_t scale(int64_t lane, int64_t k) const {
    if constexpr (kFormat == GgufPacked::kQ4_K) return scales[lane];
    if constexpr (kFormat == GgufPacked::kQ6_K)
      return static_cast<int8_t>(scales[k / 16 * kPackedRows + lane]);
    return 1;
  }
  /// q4_k: what is taken off.
  float offset(int64_t lane) const {
    return half(head + 2 * (kPackedRows + lane)) * static_cast<float>(scales[kPackedRows + lane]);
  }
  int32_t level(int64_t lane, int64_t k) const {
    if constexpr (!Layout::kIsNibbles)
      return static_cast<int8_t>(levels[(k / 4 * kPackedRows + lane) * 4 + k % 4]);
    const int32_t both = levels[(k / 8 * kPackedRows + lane) * 4 + k % 4];
    const int32_t q = k / 4 % 2 == 0 ? both & 15 : both >> 4;
    return kFormat == GgufPacked::kQ4_0 ? q - 8 : q;
  }

  const uint8_t *head, *scales, *levels;

 private:
  static float half(const uint8_t* p) {
    uint16_t bits = 0;
    std::memcpy(&bits, p, sizeof bits);
    return f16_to_float(bits);
  }
};

}  // namespace dovetail::kernels
