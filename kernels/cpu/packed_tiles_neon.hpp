// Products with packed weights for NEON with the dot products of ARMv8.2: the walk over groups, blocks and
// tokens, whatever the format. Contracts in kernels/linear_quantized.hpp and kernels/linear_gguf.hpp.
// One token is bound by memory: groups of 16 rows are read from end to end, each byte once. More
// tokens are bound by arithmetic. `sdot` adds the products of four k of four rows, so a step of the
// layout is four of them, and the step's four numbers of x are one lane. Activations of 16 bits are
// multiplied in two passes, their 8 bits first and then what is left beside those.
// From kPanelTokens on, formats of less than a byte unpack a part of a group to bytes once for a block
// of tokens. The sum of a block is exact, so all of these give the same bits.
//
// A Format has
//   kIsPacked                 whether its levels are less than a byte
//   group_bytes(k_len)        of 16 rows
//   levels_at(group, b)       where the levels of block b of a group begin
//   read(q, p)                steps 2 p and 2 p + 1 of the levels at q
//   kIsFine                   whether it takes activations of 16 bits
//   kHasPartScales            whether each half of a block has scales of its own, which only formats
//                             have that are fine: part_scale(group, b, part, v), integers of four rows
//   scale(group, b, v)        what the sums of four rows are multiplied with
//   own(group, b, v)          what else finish wants
//   finish(total, sum, scale, own, x_scale, x_sum)
//                             adds the sum of a block to the total of four rows
//   finished(group, lane, total)
//                             an output from the sum of all blocks
// The namespace is unnamed and everything included is C.
#pragma once

#include <arm_neon.h>
#include <stdint.h>

#include <kernels/linear_quantized.hpp>

#include "kernels/cpu/packed_operands.hpp"

namespace dovetail::kernels::neon::dotprod {
namespace {

constexpr int kTileTokens = 4;
constexpr int kQuads = 4;             // vectors of four rows in a group
constexpr int kStepBytes = 64;        // four k of 16 rows, a byte each
constexpr int64_t kPanelTokens = 8;   // from here on a panel pays
constexpr int64_t kPanelBlocks = 16;  // 16 rows x 512 k: 8 KiB
constexpr int64_t kMaxTokens = 64;    // of a block; 4 KiB of partial sums on the stack

struct Set {
  static float finish(float /*y*/, float sum) { return sum; }
};
struct Add {
  static float finish(float y, float sum) { return y + sum; }
};

/// Half of a token's block.
struct Half {
  const PackedOperands& op;
  int64_t t;
  int64_t b;
  int part;

  /// Its q.
  int8x16_t levels() const {
    return vld1q_s8(reinterpret_cast<const int8_t*>(op.x(t)) + b * kQuantBlock + 16 * part);
  }
  /// What q16 has beside them: 64 at most.
  int8x16_t rest() const {
    const auto* q16 = reinterpret_cast<const int16_t*>(op.x(t) + op.x16_at());
    q16 += b * kQuantBlock + 16 * part;
    const int8x16_t q = levels();
    const int8x16_t less = vdupq_n_s8(-kFineSteps);
    return vcombine_s8(vmovn_s16(vmlal_s8(vld1q_s16(q16), vget_low_s8(q), vget_low_s8(less))),
                       vmovn_s16(vmlal_high_s8(vld1q_s16(q16 + 8), q, less)));
  }
};

// What else a token's block has: its scale, and the sum of its q.
static inline float x_scale(const PackedOperands& op, int64_t t, int64_t b) {
  return reinterpret_cast<const float*>(op.x(t) + op.scales_at())[b];
}
static inline int32_t x_sum(const PackedOperands& op, int64_t t, int64_t b) {
  return reinterpret_cast<const int32_t*>(op.x(t) + op.sums_at())[b];
}

/// Two steps of 16 rows, ready to multiply.
struct Pair {
  int8x16_t even[kQuads];
  int8x16_t odd[kQuads];
};

/// Levels that are bytes already: in some formats, and in panels of all.
struct ByteLevels {
  static Pair read(const uint8_t* q, int p) {
    Pair pair;
    const auto* from = reinterpret_cast<const int8_t*>(q) + 2 * kStepBytes * p;
    for (int v = 0; v < kQuads; ++v) {
      pair.even[v] = vld1q_s8(from + 16 * v);
      pair.odd[v] = vld1q_s8(from + kStepBytes + 16 * v);
    }
    return pair;
  }
};

/// Steps 2 kPair and 2 kPair + 1 of a block for kTokens tokens; x holds the half of the block's
/// activations that they are in.
template <class Levels, int kPair, int kTokens>
static inline void add_pair(int32x4_t (&sum)[kTokens][kQuads], const uint8_t* q,
                            const int8x16_t (&x)[kTokens]) {
  constexpr int kLane = 2 * kPair % 4;
  const Pair w = Levels::read(q, kPair);
  for (int i = 0; i < kTokens; ++i) {
    for (int v = 0; v < kQuads; ++v) {
      sum[i][v] = vdotq_laneq_s32(sum[i][v], w.even[v], x[i], kLane);
      sum[i][v] = vdotq_laneq_s32(sum[i][v], w.odd[v], x[i], kLane + 1);
    }
  }
}

/// Four bytes, one in each lane.
static inline uint32x4_t widen_bytes(uint8x16_t bytes, int v) {
  const uint16x8_t half = v < 2 ? vmovl_u8(vget_low_u8(bytes)) : vmovl_high_u8(bytes);
  return v % 2 == 0 ? vmovl_u16(vget_low_u16(half)) : vmovl_high_u16(half);
}

/// total + inner * (scale * x_scale).
static inline float32x4_t add_scaled(float32x4_t total, int32x4_t inner, float32x4_t scale,
                                     float x_scale) {
  return vfmaq_f32(total, vcvtq_f32_s32(inner), vmulq_n_f32(scale, x_scale));
}

/// The levels of some blocks as bytes: block b at q + (b - first) * kPanelBlockBytes.
struct Panel {
  const uint8_t* q;
  int64_t first;
};
constexpr int64_t kPanelBlockBytes = kPackedRows * kQuantBlock;

template <int kTokens>
using Sums = int32x4_t[kTokens][kQuads];

template <int kTokens>
static inline void clear(Sums<kTokens>& sum) {
  for (int i = 0; i < kTokens; ++i) {
    for (int v = 0; v < kQuads; ++v) sum[i][v] = vdupq_n_s32(0);
  }
}

/// From products with q to those in kFineStep.
template <int kTokens>
static inline void to_fine_steps(Sums<kTokens>& sum) {
  static_assert(kFineSteps == 1 << 7, "a shift");
  for (int i = 0; i < kTokens; ++i) {
    for (int v = 0; v < kQuads; ++v) sum[i][v] = vshlq_n_s32(sum[i][v], 7);
  }
}

/// Half a block's products of kTokens tokens, added to sum; of x that which `of` takes from a Half.
template <class Levels, int kPart, int kTokens, class Of>
static inline void add_half(Sums<kTokens>& sum, const uint8_t* q, const PackedOperands& op,
                            int64_t t, int64_t b, const Of& of) {
  int8x16_t x[kTokens];
  for (int i = 0; i < kTokens; ++i) x[i] = of(Half{op, t + i, b, kPart});
  add_pair<Levels, 2 * kPart>(sum, q, x);
  add_pair<Levels, 2 * kPart + 1>(sum, q, x);
}

constexpr auto kLevels = [](const Half& half) { return half.levels(); };
constexpr auto kRest = [](const Half& half) { return half.rest(); };

/// Half a block's products times the scales of that half.
template <class Format, class Levels, int kPart, int kTokens>
static inline void add_scaled_half(Sums<kTokens>& sum, const uint8_t* group, const uint8_t* q,
                                   const PackedOperands& op, int64_t t, int64_t b) {
  Sums<kTokens> part;
  clear<kTokens>(part);
  add_half<Levels, kPart, kTokens>(part, q, op, t, b, kLevels);
  to_fine_steps<kTokens>(part);
  add_half<Levels, kPart, kTokens>(part, q, op, t, b, kRest);
  for (int v = 0; v < kQuads; ++v) {
    const int32x4_t by = Format::part_scale(group, b, kPart, v);
    for (int i = 0; i < kTokens; ++i) sum[i][v] = vmlaq_s32(sum[i][v], part[i][v], by);
  }
}

/// A block's products of kTokens tokens, added to sum, which is zeros.
template <class Format, class Levels, int kTokens>
static inline void add_block(Sums<kTokens>& sum, const uint8_t* group, const uint8_t* q,
                             const PackedOperands& op, int64_t t, int64_t b) {
  if constexpr (Format::kHasPartScales) {
    add_scaled_half<Format, Levels, 0, kTokens>(sum, group, q, op, t, b);
    add_scaled_half<Format, Levels, 1, kTokens>(sum, group, q, op, t, b);
  } else {
    add_half<Levels, 0, kTokens>(sum, q, op, t, b, kLevels);
    add_half<Levels, 1, kTokens>(sum, q, op, t, b, kLevels);
    if constexpr (Format::kIsFine) {
      to_fine_steps<kTokens>(sum);
      add_half<Levels, 0, kTokens>(sum, q, op, t, b, kRest);
      add_half<Levels, 1, kTokens>(sum, q, op, t, b, kRest);
    }
  }
}

/// Adds kTokens tokens' products with blocks [b, b + n_blocks) of a group to sums [kTokens][16]. Levels
/// reads them from the panel, or from the group where there is none.
template <class Format, class Levels, int kTokens>
void add_blocks(float* sums, const PackedOperands& op, int64_t t, const uint8_t* group,
                const Panel& panel, int64_t b, int64_t n_blocks) {
  float32x4_t total[kTokens][kQuads];
  for (int i = 0; i < kTokens; ++i) {
    for (int v = 0; v < kQuads; ++v) total[i][v] = vld1q_f32(sums + i * kPackedRows + 4 * v);
  }
  for (const int64_t end = b + n_blocks; b < end; ++b) {
    const uint8_t* q = panel.q != nullptr ? panel.q + (b - panel.first) * kPanelBlockBytes
                                          : Format::levels_at(group, b);
    Sums<kTokens> sum;
    clear<kTokens>(sum);
    add_block<Format, Levels, kTokens>(sum, group, q, op, t, b);
    for (int v = 0; v < kQuads; ++v) {
      const float32x4_t scale = Format::scale(group, b, v);
      const auto own = Format::own(group, b, v);
      for (int i = 0; i < kTokens; ++i) {
        total[i][v] = Format::finish(total[i][v], sum[i][v], scale, own, x_scale(op, t + i, b),
                                     x_sum(op, t + i, b));
      }
    }
  }
  for (int i = 0; i < kTokens; ++i) {
    for (int v = 0; v < kQuads; ++v) vst1q_f32(sums + i * kPackedRows + 4 * v, total[i][v]);
  }
}

/// The same for any number of tokens.
template <class Format, class Levels>
void add_tokens(float* sums, const PackedOperands& op, int64_t t, int64_t n_tokens,
                const uint8_t* group, const Panel& panel, int64_t b, int64_t n_blocks) {
  const int64_t t_end = t + n_tokens;
  for (; t + kTileTokens <= t_end; t += kTileTokens, sums += kTileTokens * kPackedRows) {
    add_blocks<Format, Levels, kTileTokens>(sums, op, t, group, panel, b, n_blocks);
  }
  if (t_end - t == 3) add_blocks<Format, Levels, 3>(sums, op, t, group, panel, b, n_blocks);
  if (t_end - t == 2) add_blocks<Format, Levels, 2>(sums, op, t, group, panel, b, n_blocks);
  if (t_end - t == 1) add_blocks<Format, Levels, 1>(sums, op, t, group, panel, b, n_blocks);
}

template <class Format>
void fill_panel(uint8_t* to, const uint8_t* levels) {
  for (int p = 0; p < kQuantBlock / 8; ++p, to += 2 * kStepBytes) {
    const Pair pair = Format::read(levels, p);
    for (int v = 0; v < kQuads; ++v) {
      vst1q_u8(to + 16 * v, vreinterpretq_u8_s8(pair.even[v]));
      vst1q_u8(to + kStepBytes + 16 * v, vreinterpretq_u8_s8(pair.odd[v]));
    }
  }
}

/// All blocks of a group for one block of tokens.
template <class Format>
void add_group(float* sums, const PackedOperands& op, const uint8_t* group, int64_t t,
               int64_t n_tokens) {
  const int64_t n_blocks = op.k_len / kQuantBlock;
  const Panel none = {nullptr, 0};
  if (n_tokens < kPanelTokens) {
    return add_tokens<Format, Format>(sums, op, t, n_tokens, group, none, 0, n_blocks);
  }
  alignas(64) uint8_t q[kPanelBlocks * kPanelBlockBytes];
  for (int64_t b = 0; b < n_blocks; b += kPanelBlocks) {
    const int64_t here = n_blocks - b < kPanelBlocks ? n_blocks - b : kPanelBlocks;
    if constexpr (Format::kIsPacked) {
      for (int64_t i = 0; i < here; ++i) {
        fill_panel<Format>(q + i * kPanelBlockBytes, Format::levels_at(group, b + i));
      }
      add_tokens<Format, ByteLevels>(sums, op, t, n_tokens, group, {q, b}, b, here);
    } else {
      add_tokens<Format, Format>(sums, op, t, n_tokens, group, none, b, here);
    }
  }
}

/// One block of tokens against one group.
template <class Format, class Store>
void multiply_group(const PackedOperands& op, const uint8_t* group, int64_t t, int64_t n_tokens,
                    int64_t n, int64_t n_rows) {
  alignas(64) float sums[kMaxTokens * kPackedRows];
  for (int64_t i = 0; i < n_tokens * kPackedRows; ++i) sums[i] = 0.0F;
  add_group<Format>(sums, op, group, t, n_tokens);
  for (int64_t i = 0; i < n_tokens; ++i) {
    float* y = op.y + (t + i) * op.y_stride + n;
    for (int64_t lane = 0; lane < kPackedRows && lane < n_rows; ++lane) {
      const float sum = sums[i * kPackedRows + lane];
      y[lane] = Store::finish(y[lane], Format::finished(group, lane, sum));
    }
  }
}

template <class Format, class Store>
void stripe(float* y, int64_t y_stride, const void* xq, const void* packed, int64_t n_tokens,
            int64_t k_len, int64_t n_begin, int64_t n_end) {
  const auto op = PackedOperands::of(y, y_stride, xq, packed, k_len);
  for (int64_t t = 0; t < n_tokens; t += kMaxTokens) {
    const int64_t here = n_tokens - t < kMaxTokens ? n_tokens - t : kMaxTokens;
    for (int64_t n = n_begin; n < n_end; n += kPackedRows) {
      const uint8_t* group = op.packed + n / kPackedRows * Format::group_bytes(k_len);
      multiply_group<Format, Store>(op, group, t, here, n, n_end - n);
    }
  }
}

}  // namespace
}  // namespace dovetail::kernels::neon::dotprod
