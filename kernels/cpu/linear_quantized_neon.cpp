// linear over packed weights for NEON with the dot products of ARMv8.2; contract in
// kernels/linear_quantized.hpp, oracle in kernels/ref/linear_quantized.cpp.
// One token is bound by memory: groups of 16 rows are read from end to end, each byte once. More
// tokens are bound by arithmetic. `sdot` adds the products of four k of four rows, so a step of the
// layout is four of them, and the step's four numbers of x are one lane.
// From kPanelTokens on, formats of less than a byte unpack a part of a group to bytes once for a block
// of tokens. The sum of a block is exact, so all of these give the same bits.
// Built with +dotprod: C headers and intrinsics only (a test finds no weak symbols here).
#include "kernels/cpu/neon.hpp"

#include <arm_neon.h>
#include <stdint.h>

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

/// The operands of one call, as in the contract.
struct Operands {
  float* y;
  int64_t y_stride;
  const uint8_t* xq;
  int64_t x_bytes;  // of a row of xq
  const uint8_t* packed;
  int64_t k_len;

  const int8_t* x(int64_t t) const { return reinterpret_cast<const int8_t*>(xq + t * x_bytes); }
  const float* x_scale(int64_t t) const { return reinterpret_cast<const float*>(x(t) + 3 * k_len); }
  const int32_t* x_sum(int64_t t) const {
    return reinterpret_cast<const int32_t*>(x(t) + 3 * k_len + k_len / kQuantBlock * 4);
  }
};

/// Two steps of 16 rows, ready to multiply.
struct Pair {
  int8x16_t even[kQuads];
  int8x16_t odd[kQuads];
};

// The formats: what a block has besides its levels, how to read a pair of steps, and the power of
// two that a level is worth.
struct Int8 {
  static constexpr int64_t kBlockBytes = kInt8BlockBytes;
  static constexpr int64_t kCodeBytes = kPackedRows;
  static constexpr bool kHasZero = false;
  static constexpr bool kIsPacked = false;  // levels are bytes already
  static constexpr int kShift = 0;
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

struct Int6 {
  static constexpr int64_t kBlockBytes = kInt6BlockBytes;
  static constexpr int64_t kCodeBytes = kPackedRows;
  static constexpr bool kHasZero = false;  // it is the same for all, so levels get their sign here
  static constexpr bool kIsPacked = true;
  static constexpr int kShift = 0;
  static Pair read(const uint8_t* q, int p) {
    const uint8x16_t upper_two = vdupq_n_u8(0x30);
    const auto with_sign = [](uint8x16_t level) {
      return vreinterpretq_s8_u8(vsubq_u8(level, vdupq_n_u8(kInt6Zero)));
    };
    Pair pair;
    for (int v = 0; v < kQuads; ++v) {
      const uint8x16_t both = vld1q_u8(q + kStepBytes * p + 16 * v);
      const uint8x16_t four = vld1q_u8(q + kStepBytes * (4 + p / 2) + 16 * v);  // of four steps
      const uint8x16_t even = p % 2 == 0 ? vshlq_n_u8(four, 4) : four;
      const uint8x16_t odd = p % 2 == 0 ? vshlq_n_u8(four, 2) : vshrq_n_u8(four, 2);
      pair.even[v] = with_sign(vorrq_u8(vandq_u8(both, vdupq_n_u8(15)), vandq_u8(even, upper_two)));
      pair.odd[v] = with_sign(vorrq_u8(vshrq_n_u8(both, 4), vandq_u8(odd, upper_two)));
    }
    return pair;
  }
};

template <class Level>
struct Nibbles {
  static constexpr int64_t kBlockBytes = kInt4BlockBytes;
  static constexpr int64_t kCodeBytes = 2 * kPackedRows;
  static constexpr bool kHasZero = true;
  static constexpr bool kIsPacked = true;
  static constexpr int kShift = Level::kShift;
  static Pair read(const uint8_t* q, int p) {
    Pair pair;
    for (int v = 0; v < kQuads; ++v) {
      const uint8x16_t both = vld1q_u8(q + kStepBytes * p + 16 * v);
      pair.even[v] = vreinterpretq_s8_u8(Level::of(vandq_u8(both, vdupq_n_u8(15))));
      pair.odd[v] = vreinterpretq_s8_u8(Level::of(vshrq_n_u8(both, 4)));
    }
    return pair;
  }
};

struct Int4Level {
  static constexpr int kShift = 4;
  static uint8x16_t of(uint8x16_t q) { return q; }
};
/// A copy of kInt4qGrid of this file's own: reading that one by address would define it here.
struct Grid {
  uint8_t level[16];
};
constexpr Grid copy_grid() {
  Grid grid = {};
  for (int i = 0; i < 16; ++i) grid.level[i] = kInt4qGrid[i];
  return grid;
}
constexpr Grid kGrid = copy_grid();

struct Int4qLevel {
  static constexpr int kShift = 2;
  static uint8x16_t of(uint8x16_t q) { return vqtbl1q_u8(vld1q_u8(kGrid.level), q); }
};
using Int4 = Nibbles<Int4Level>;
using Int4q = Nibbles<Int4qLevel>;

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

/// s(c) of four scale bytes: their bits are the top of a float's exponent and mantissa.
static inline float32x4_t scales_of(uint32x4_t codes) {
  return vreinterpretq_f32_u32(vaddq_u32(vshlq_n_u32(codes, 18), vdupq_n_u32(132U << 23U)));
}

/// Adds kTokens tokens' products with blocks [b, b + n_blocks) of a group to sums [kTokens][16].
/// `block` is the first of them, `q` its levels, `q_stride` the bytes to the next one's.
template <class Format, class Levels, int kTokens>
void add_blocks(float* sums, const Operands& op, int64_t t, const uint8_t* block, const uint8_t* q,
                int64_t q_stride, int64_t b, int64_t n_blocks) {
  float32x4_t total[kTokens][kQuads];
  for (int i = 0; i < kTokens; ++i) {
    for (int v = 0; v < kQuads; ++v) total[i][v] = vld1q_f32(sums + i * kPackedRows + 4 * v);
  }
  for (const int64_t end = b + n_blocks; b < end;
       ++b, block += Format::kBlockBytes, q += q_stride) {
    int32x4_t sum[kTokens][kQuads];
    for (int i = 0; i < kTokens; ++i) {
      for (int v = 0; v < kQuads; ++v) sum[i][v] = vdupq_n_s32(0);
    }
    int8x16_t x[kTokens];
    for (int i = 0; i < kTokens; ++i) x[i] = vld1q_s8(op.x(t + i) + b * kQuantBlock);
    add_pair<Levels, 0>(sum, q, x);
    add_pair<Levels, 1>(sum, q, x);
    for (int i = 0; i < kTokens; ++i) x[i] = vld1q_s8(op.x(t + i) + b * kQuantBlock + 16);
    add_pair<Levels, 2>(sum, q, x);
    add_pair<Levels, 3>(sum, q, x);

    const uint8x16_t codes = vld1q_u8(block);
    for (int v = 0; v < kQuads; ++v) {
      const float32x4_t scale = scales_of(widen_bytes(codes, v));
      for (int i = 0; i < kTokens; ++i) {
        int32x4_t inner = vshlq_n_s32(sum[i][v], Format::kShift);
        if constexpr (Format::kHasZero) {
          const uint32x4_t zero = widen_bytes(vld1q_u8(block + kPackedRows), v);
          inner = vmlsq_n_s32(inner, vreinterpretq_s32_u32(zero), op.x_sum(t + i)[b]);
        }
        const float32x4_t factor = vmulq_n_f32(scale, op.x_scale(t + i)[b]);
        total[i][v] = vfmaq_f32(total[i][v], vcvtq_f32_s32(inner), factor);
      }
    }
  }
  for (int i = 0; i < kTokens; ++i) {
    for (int v = 0; v < kQuads; ++v) vst1q_f32(sums + i * kPackedRows + 4 * v, total[i][v]);
  }
}

/// The same for any number of tokens.
template <class Format, class Levels>
void add_tokens(float* sums, const Operands& op, int64_t t, int64_t n_tokens, const uint8_t* block,
                const uint8_t* q, int64_t q_stride, int64_t b, int64_t n_blocks) {
  const int64_t t_end = t + n_tokens;
  for (; t + kTileTokens <= t_end; t += kTileTokens, sums += kTileTokens * kPackedRows) {
    add_blocks<Format, Levels, kTileTokens>(sums, op, t, block, q, q_stride, b, n_blocks);
  }
  if (t_end - t == 3) add_blocks<Format, Levels, 3>(sums, op, t, block, q, q_stride, b, n_blocks);
  if (t_end - t == 2) add_blocks<Format, Levels, 2>(sums, op, t, block, q, q_stride, b, n_blocks);
  if (t_end - t == 1) add_blocks<Format, Levels, 1>(sums, op, t, block, q, q_stride, b, n_blocks);
}

/// The levels of some blocks as bytes, in the order of Int8.
constexpr int64_t kPanelBlockBytes = kPackedRows * kQuantBlock;

template <class Format>
void fill_panel(uint8_t* panel, const uint8_t* block, int64_t n_blocks) {
  for (; n_blocks > 0; --n_blocks, block += Format::kBlockBytes) {
    for (int p = 0; p < kQuantBlock / 8; ++p, panel += 2 * kStepBytes) {
      const Pair pair = Format::read(block + Format::kCodeBytes, p);
      for (int v = 0; v < kQuads; ++v) {
        vst1q_u8(panel + 16 * v, vreinterpretq_u8_s8(pair.even[v]));
        vst1q_u8(panel + kStepBytes + 16 * v, vreinterpretq_u8_s8(pair.odd[v]));
      }
    }
  }
}

/// All blocks of a group for one block of tokens.
template <class Format>
void add_group(float* sums, const Operands& op, const uint8_t* group, int64_t t, int64_t n_tokens) {
  const uint8_t* block = group + kPackedRows * 4;
  const int64_t n_blocks = op.k_len / kQuantBlock;
  if (n_tokens < kPanelTokens) {
    add_tokens<Format, Format>(sums, op, t, n_tokens, block, block + Format::kCodeBytes,
                               Format::kBlockBytes, 0, n_blocks);
    return;
  }
  alignas(64) uint8_t panel[kPanelBlocks * kPanelBlockBytes];
  for (int64_t b = 0; b < n_blocks; b += kPanelBlocks) {
    const int64_t here = n_blocks - b < kPanelBlocks ? n_blocks - b : kPanelBlocks;
    if constexpr (Format::kIsPacked) {
      fill_panel<Format>(panel, block, here);
      add_tokens<Format, Int8>(sums, op, t, n_tokens, block, panel, kPanelBlockBytes, b, here);
    } else {
      add_tokens<Format, Format>(sums, op, t, n_tokens, block, block + Format::kCodeBytes,
                                 Format::kBlockBytes, b, here);
    }
    block += here * Format::kBlockBytes;
  }
}

/// One block of tokens against one group.
template <class Format, class Store>
void multiply_group(const Operands& op, const uint8_t* group, int64_t t, int64_t n_tokens,
                    int64_t n, int64_t n_rows) {
  alignas(64) float sums[kMaxTokens * kPackedRows];
  for (int64_t i = 0; i < n_tokens * kPackedRows; ++i) sums[i] = 0.0F;
  add_group<Format>(sums, op, group, t, n_tokens);

  const auto* d = reinterpret_cast<const float*>(group);
  for (int64_t i = 0; i < n_tokens; ++i) {
    float* y = op.y + (t + i) * op.y_stride + n;
    for (int64_t lane = 0; lane < kPackedRows && lane < n_rows; ++lane) {
      y[lane] = Store::finish(y[lane], d[lane] * sums[i * kPackedRows + lane]);
    }
  }
}

template <class Format, class Store>
void stripe(const Operands& op, int64_t n_tokens, int64_t n_begin, int64_t n_end) {
  const int64_t group_bytes = kPackedRows * 4 + op.k_len / kQuantBlock * Format::kBlockBytes;
  for (int64_t t = 0; t < n_tokens; t += kMaxTokens) {
    const int64_t here = n_tokens - t < kMaxTokens ? n_tokens - t : kMaxTokens;
    for (int64_t n = n_begin; n < n_end; n += kPackedRows) {
      const uint8_t* group = op.packed + n / kPackedRows * group_bytes;
      multiply_group<Format, Store>(op, group, t, here, n, n_end - n);
    }
  }
}

Operands operands(float* y, int64_t y_stride, const void* xq, const void* packed, int64_t k_len) {
  return {y,
          y_stride,
          static_cast<const uint8_t*>(xq),
          quantized_row_bytes(k_len),
          static_cast<const uint8_t*>(packed),
          k_len};
}

}  // namespace

void linear_int8(float* y, int64_t y_stride, const void* xq, const void* packed, int64_t n_tokens,
                 int64_t /*n_rows*/, int64_t k_len, int64_t n_begin, int64_t n_end) {
  stripe<Int8, Set>(operands(y, y_stride, xq, packed, k_len), n_tokens, n_begin, n_end);
}

void linear_add_int8(float* y, int64_t y_stride, const void* xq, const void* packed,
                     int64_t n_tokens, int64_t /*n_rows*/, int64_t k_len, int64_t n_begin,
                     int64_t n_end) {
  stripe<Int8, Add>(operands(y, y_stride, xq, packed, k_len), n_tokens, n_begin, n_end);
}

void linear_int4(float* y, int64_t y_stride, const void* xq, const void* packed, int64_t n_tokens,
                 int64_t /*n_rows*/, int64_t k_len, int64_t n_begin, int64_t n_end) {
  stripe<Int4, Set>(operands(y, y_stride, xq, packed, k_len), n_tokens, n_begin, n_end);
}

void linear_add_int4(float* y, int64_t y_stride, const void* xq, const void* packed,
                     int64_t n_tokens, int64_t /*n_rows*/, int64_t k_len, int64_t n_begin,
                     int64_t n_end) {
  stripe<Int4, Add>(operands(y, y_stride, xq, packed, k_len), n_tokens, n_begin, n_end);
}

void linear_int4q(float* y, int64_t y_stride, const void* xq, const void* packed, int64_t n_tokens,
                  int64_t /*n_rows*/, int64_t k_len, int64_t n_begin, int64_t n_end) {
  stripe<Int4q, Set>(operands(y, y_stride, xq, packed, k_len), n_tokens, n_begin, n_end);
}

void linear_add_int4q(float* y, int64_t y_stride, const void* xq, const void* packed,
                      int64_t n_tokens, int64_t /*n_rows*/, int64_t k_len, int64_t n_begin,
                      int64_t n_end) {
  stripe<Int4q, Add>(operands(y, y_stride, xq, packed, k_len), n_tokens, n_begin, n_end);
}

void linear_int6(float* y, int64_t y_stride, const void* xq, const void* packed, int64_t n_tokens,
                 int64_t /*n_rows*/, int64_t k_len, int64_t n_begin, int64_t n_end) {
  stripe<Int6, Set>(operands(y, y_stride, xq, packed, k_len), n_tokens, n_begin, n_end);
}

void linear_add_int6(float* y, int64_t y_stride, const void* xq, const void* packed,
                     int64_t n_tokens, int64_t /*n_rows*/, int64_t k_len, int64_t n_begin,
                     int64_t n_end) {
  stripe<Int6, Add>(operands(y, y_stride, xq, packed, k_len), n_tokens, n_begin, n_end);
}

}  // namespace dovetail::kernels::neon::dotprod
