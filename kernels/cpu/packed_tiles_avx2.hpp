// Products with packed weights for AVX2: the walk over groups, blocks and tokens, and panels, whatever the
// format. Contracts in kernels/linear_quantized.hpp and kernels/linear_gguf.hpp.
// One token is bound by memory: groups of 16 rows are read from end to end, each byte once. More
// tokens are bound by arithmetic. A step takes four k of 16 rows, two vectors, so that each
// broadcast of x serves both. From kPanelTokens on, a part of a group is unpacked into a panel once
// for a whole block of tokens: LevelPanel or WordPanel. The sum of a block is exact, so all of these
// give the same bits.
//
// A Format has
//   Panel                             LevelPanel or WordPanel
//   group_bytes(k_len)                of 16 rows
//   block_at(group, b)                where the bytes of block b of a group begin
//   kBlockBytes                       what a block takes, for fetching ahead
//   fill(panel, group, b)             unpacks a block into a panel
//   add_products(total, x, group, b)  adds a block's products with few tokens, straight from the packed
//                                     bytes
//   finished(group, h, total)         outputs of eight rows from their sums
// LevelFormat and WordFormat make one of what their formats differ in.
// The namespace is unnamed and everything included is C, as in avx2_math.hpp.
#pragma once

#include <immintrin.h>
#include <stdint.h>

#include <kernels/linear_quantized.hpp>

#include "kernels/cpu/avx2_math.hpp"
#include "kernels/cpu/packed_operands.hpp"

namespace dovetail::kernels::avx2 {
namespace {

constexpr int kTileTokens = 4;
constexpr int kSteps = 8;             // of four k in a block
constexpr int kHalves = 2;            // vectors of eight rows in a group
constexpr int64_t kPanelTokens = 12;  // from here on a panel pays
constexpr int64_t kPanelBlocks = 16;  // 16 rows x 512 k: 10 or 17 KiB
constexpr int64_t kMaxTokens = 256;   // of a block; 16 KiB of partial sums on the stack
constexpr int64_t kMinTokens = 32;
constexpr int64_t kTokenBytes = 384 * 1024;  // of x, so that a block of tokens stays in L2
constexpr int64_t kAheadBytes = 8192;        // into L2
constexpr int64_t kLine = 64;                // bytes

struct Set {
  static __m256 finish(__m256 /*y*/, __m256 sum) { return sum; }
};
struct Add {
  static __m256 finish(__m256 y, __m256 sum) { return _mm256_add_ps(y, sum); }
};

static inline __m256i load_bytes(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}

/// Four bytes in every lane.
static inline __m256i broadcast4(const void* p) {
  return _mm256_castps_si256(_mm256_broadcast_ss(static_cast<const float*>(p)));
}

/// One number in every lane.
static inline __m256 broadcast_float(const uint8_t* p) {
  return _mm256_broadcast_ss(reinterpret_cast<const float*>(p));
}

/// Has a value in a register here and now. GCC would else gather products before it adds them, and
/// spill them.
static inline void settle(__m256i& value) {
  asm("" : "+x"(value));
}

static inline __m256i widen_bytes(const uint8_t* p) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}

static inline __m256 add_block(__m256 total, __m256i inner, __m256 scale, __m256 x_scale) {
  const __m256 factor = _mm256_mul_ps(scale, x_scale);
  return _mm256_fmadd_ps(_mm256_cvtepi32_ps(inner), factor, total);
}

/// The sum without what a zero that was added to every weight adds to it.
static inline __m256i without(__m256i sum, __m256i zero, __m256i x_sum) {
  return _mm256_sub_epi32(sum, _mm256_madd_epi16(zero, x_sum));
}

/// Eight of the floats that a panel's block begins with.
static inline __m256 factor_at(const uint8_t* panel, int h) {
  return _mm256_load_ps(reinterpret_cast<const float*>(panel) + 8 * h);
}

/// The levels of two steps of eight rows.
struct Pair {
  __m256i even;
  __m256i odd;
};

static inline Pair nibbles(const uint8_t* q) {
  const __m256i low_half = _mm256_set1_epi8(15);
  const __m256i both = load_bytes(q);
  return {_mm256_and_si256(both, low_half), _mm256_and_si256(_mm256_srli_epi16(both, 4), low_half)};
}

/// Signed bytes of one step and eight rows, each in the upper half of 16 bits: the first two of each
/// row's four, and the last two.
static inline Pair upper_bytes(__m256i levels) {
  const __m256i first = _mm256_set1_epi32(static_cast<int32_t>(0x01800080U));
  const __m256i last = _mm256_set1_epi32(static_cast<int32_t>(0x03800280U));
  const __m256i row = _mm256_setr_epi32(0, 0x04000400, 0x08000800, 0x0C000C00, 0, 0x04000400,
                                        0x08000800, 0x0C000C00);
  return {_mm256_shuffle_epi8(levels, _mm256_add_epi8(first, row)),
          _mm256_shuffle_epi8(levels, _mm256_add_epi8(last, row))};
}

/// The same, each as 16 bits.
static inline Pair widened(__m256i levels) {
  const Pair upper = upper_bytes(levels);
  return {_mm256_srai_epi16(upper.even, 8), _mm256_srai_epi16(upper.odd, 8)};
}

/// Levels of one block are summed in 16 bits and widened at its end, times a factor: of 4-bit levels
/// 2 * 15 * 127 * 8 = 30480.
template <int16_t kFactor>
struct WholeBlock {
  static void add(__m256i& sum, __m256i even, __m256i x_even, __m256i odd, __m256i x_odd) {
    sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(even, x_even));
    settle(sum);
    sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(odd, x_odd));
    settle(sum);
  }
  static __m256i total(__m256i sum) { return _mm256_madd_epi16(sum, _mm256_set1_epi16(kFactor)); }
};

/// Two steps fit 16 bits; the factor comes with the widening.
template <int16_t kFactor>
struct TwoSteps {
  static void add(__m256i& sum, __m256i even, __m256i x_even, __m256i odd, __m256i x_odd) {
    const __m256i both =
        _mm256_add_epi16(_mm256_maddubs_epi16(even, x_even), _mm256_maddubs_epi16(odd, x_odd));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(both, _mm256_set1_epi16(kFactor)));
    settle(sum);
  }
  static __m256i total(__m256i sum) { return sum; }
};

template <class Store>
void store_rows(float* y, __m256 sum, int64_t n_rows) {
  if (n_rows >= kLanes) {
    _mm256_storeu_ps(y, Store::finish(_mm256_loadu_ps(y), sum));
  } else if (n_rows > 0) {
    const __m256i mask = first_lanes(n_rows);
    _mm256_maskstore_ps(y, mask, Store::finish(_mm256_maskload_ps(y, mask), sum));
  }
}

/// Stores one token's outputs for a group.
template <class Format, class Store>
void store_token(const PackedOperands& op, const uint8_t* group, int64_t t, int64_t n,
                 int64_t n_rows, __m256 low, __m256 high) {
  float* y = op.y + t * op.y_stride + n;
  store_rows<Store>(y, Format::finished(group, 0, low), n_rows);
  store_rows<Store>(y + kLanes, Format::finished(group, 1, high), n_rows - kLanes);
}

template <int64_t kBytes>
static inline void prefetch(const uint8_t* block) {
  for (int64_t line = 0; line < (kBytes + 63) / 64; ++line) {
    _mm_prefetch(reinterpret_cast<const char*>(block) + kAheadBytes + 64 * line, _MM_HINT_T1);
  }
}

/// Starts to fetch what the next tile reads of a block.
template <int kTokens>
static inline void prefetch_next_tile(const PackedOperands& op, const uint8_t* const* row,
                                      int64_t at) {
  for (int i = 0; i < kTokens; ++i) {
    _mm_prefetch(reinterpret_cast<const char*>(row[i] + kTokens * op.x_bytes + at), _MM_HINT_T0);
  }
}

/// Fetches the packed bytes that the next panel will be filled from, a few lines with every block of a
/// tile: each panel is read once, too quickly for the processor to run ahead.
class PanelFetch {
 public:
  PanelFetch(const uint8_t* from, int64_t n_bytes, int64_t n_calls)
      : at_(reinterpret_cast<const char*>(from)),
        end_(at_ + n_bytes),
        per_call_(n_bytes / kLine / n_calls + 1) {}
  void some() {
    for (int64_t i = 0; i < per_call_ && at_ < end_; ++i, at_ += kLine) {
      _mm_prefetch(at_, _MM_HINT_T1);
    }
  }

 private:
  const char* at_;
  const char* end_;
  int64_t per_call_;
};

/// A panel of bytes without a sign. Its blocks are
///   float scale[16]; 4 bytes of the format's own [16]; uint8 level[8 steps][16 rows][4]
/// Levels says how two steps are added and a finished block is (see LevelFormat).
template <class Levels>
struct LevelPanel {
  static constexpr int64_t kBytes = 64 + 64 + 512;
  static constexpr int64_t kXBytes = 1;  // of xq that a panel reads for each k

  /// Adds kTokens tokens' products with blocks [b, b + n_blocks) of the panel to sums [kTokens][16].
  template <int kTokens>
  static void tile(float* sums, const PackedOperands& op, int64_t t, const uint8_t* panel,
                   int64_t b, int64_t n_blocks, PanelFetch& next) {
    const uint8_t* row[kTokens];
    for (int i = 0; i < kTokens; ++i) row[i] = op.x(t + i);
    const int64_t scales_at = op.scales_at();
    const int64_t sums_at = op.sums_at();
    for (const int64_t end = b + n_blocks; b < end; ++b, panel += kBytes) {
      const auto* w = reinterpret_cast<const __m256i*>(panel + 128);
      prefetch_next_tile<kTokens>(op, row, b * kQuantBlock);
      next.some();
      __m256i sum[kTokens][kHalves];
      for (int i = 0; i < kTokens; ++i) sum[i][0] = sum[i][1] = _mm256_setzero_si256();
#pragma GCC unroll 4
      for (int s = 0; s < kSteps / 2; ++s, w += 2 * kHalves) {
        for (int i = 0; i < kTokens; ++i) {
          const __m256i x_even = broadcast4(row[i] + b * kQuantBlock + 8 * s);
          const __m256i x_odd = broadcast4(row[i] + b * kQuantBlock + 8 * s + 4);
          for (int h = 0; h < kHalves; ++h) {
            Levels::add(sum[i][h], _mm256_load_si256(w + h), x_even,
                        _mm256_load_si256(w + kHalves + h), x_odd);
          }
        }
      }
      for (int i = 0; i < kTokens; ++i) {
        const __m256 x_scale = broadcast_float(row[i] + scales_at + 4 * b);
        const __m256i x_sum = broadcast4(row[i] + sums_at + 4 * b);
        for (int h = 0; h < kHalves; ++h) {
          float* to = sums + i * kPackedRows + kLanes * h;
          const __m256i own = _mm256_load_si256(reinterpret_cast<const __m256i*>(panel + 64) + h);
          _mm256_store_ps(to, Levels::finish(_mm256_load_ps(to), sum[i][h], factor_at(panel, h),
                                             own, x_scale, x_sum));
        }
      }
    }
  }
};

/// A panel of 16-bit words. Its blocks are
///   float scale[16]; int16 w[16 pairs of k][16 rows][2]
struct WordPanel {
  static constexpr int64_t kBytes = 64 + 1024;
  static constexpr int64_t kXBytes = 2;

  template <int kTokens>
  static void tile(float* sums, const PackedOperands& op, int64_t t, const uint8_t* panel,
                   int64_t b, int64_t n_blocks, PanelFetch& next) {
    const uint8_t* row[kTokens];
    for (int i = 0; i < kTokens; ++i) row[i] = op.x(t + i);
    const int64_t x16_at = op.x16_at();
    const int64_t scales_at = op.scales_at();
    for (const int64_t end = b + n_blocks; b < end; ++b, panel += kBytes) {
      const auto* w = reinterpret_cast<const __m256i*>(panel + 64);
      prefetch_next_tile<kTokens>(op, row, x16_at + 2 * b * kQuantBlock);
      next.some();
      __m256i sum[kTokens][kHalves];
      for (int i = 0; i < kTokens; ++i) sum[i][0] = sum[i][1] = _mm256_setzero_si256();
#pragma GCC unroll 16
      for (int p = 0; p < 2 * kSteps; ++p, w += kHalves) {
        __m256i pairs[kHalves] = {_mm256_load_si256(w), _mm256_load_si256(w + 1)};
        settle(pairs[0]);  // in registers, rather than read again for every token
        settle(pairs[1]);
        for (int i = 0; i < kTokens; ++i) {
          const __m256i pair = broadcast4(row[i] + x16_at + 2 * (b * kQuantBlock + 2 * p));
          for (int h = 0; h < kHalves; ++h) {
            const __m256i product = _mm256_madd_epi16(pairs[h], pair);
            sum[i][h] = _mm256_add_epi32(sum[i][h], product);
            settle(sum[i][h]);
          }
        }
      }
      for (int i = 0; i < kTokens; ++i) {
        const __m256 x_scale = broadcast_float(row[i] + scales_at + 4 * b);
        for (int h = 0; h < kHalves; ++h) {
          float* to = sums + i * kPackedRows + 8 * h;
          const __m256 scale = _mm256_load_ps(reinterpret_cast<const float*>(panel) + 8 * h);
          _mm256_store_ps(to, add_block(_mm256_load_ps(to), sum[i][h], scale, x_scale));
        }
      }
    }
  }
};

/// Rows of few tokens.
template <int kTokens>
struct Rows {
  const uint8_t* at[kTokens];
  int64_t x16_at;
  int64_t scales_at;
  int64_t sums_at;

  __m256i four(int i, int64_t k) const { return broadcast4(at[i] + k); }
  __m256i pair(int i, int64_t k) const { return broadcast4(at[i] + x16_at + 2 * k); }
  __m256 scale(int i, int64_t b) const { return broadcast_float(at[i] + scales_at + 4 * b); }
  __m256i sum(int i, int64_t b) const { return broadcast4(at[i] + sums_at + 4 * b); }
};

template <int kTokens>
using Totals = __m256[kTokens][kHalves];

/// Levels has kBlockBytes, group_bytes, block_at and finished as a Format has them, and
///   scale(group, b, h)   what the sums of eight rows are multiplied with
///   own(group, b, h)     four bytes more of each row
///   levels(block, s, h)  steps 2 s and 2 s + 1 of eight rows, as bytes without a sign
///   add(...)             how they are multiplied and summed: WholeBlock or TwoSteps
///   finish(total, sum, scale, own, x_scale, x_sum)
///                        adds the sum of a block to the total of eight rows
template <class Levels>
struct LevelFormat : Levels {
  using Panel = LevelPanel<Levels>;

  static void fill(uint8_t* panel, const uint8_t* group, int64_t b) {
    const uint8_t* block = Levels::block_at(group, b);
    for (int h = 0; h < kHalves; ++h) {
      _mm256_store_ps(reinterpret_cast<float*>(panel) + kLanes * h, Levels::scale(group, b, h));
      _mm256_store_si256(reinterpret_cast<__m256i*>(panel + 64) + h, Levels::own(group, b, h));
#pragma GCC unroll 4
      for (int s = 0; s < kSteps / 2; ++s) {
        const Pair w = Levels::levels(block, s, h);
        auto* to = reinterpret_cast<__m256i*>(panel + 128) + 2 * kHalves * s + h;
        _mm256_store_si256(to, w.even);
        _mm256_store_si256(to + kHalves, w.odd);
      }
    }
  }

  template <int kTokens>
  [[gnu::always_inline]] static void add_products(Totals<kTokens>& total, const Rows<kTokens>& x,
                                                  const uint8_t* group, int64_t b) {
    const uint8_t* block = Levels::block_at(group, b);
    __m256i sum[kTokens][kHalves];
    for (int i = 0; i < kTokens; ++i) sum[i][0] = sum[i][1] = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (int s = 0; s < kSteps / 2; ++s) {
      const Pair w[kHalves] = {Levels::levels(block, s, 0), Levels::levels(block, s, 1)};
      for (int i = 0; i < kTokens; ++i) {
        const __m256i x_even = x.four(i, b * kQuantBlock + 8 * s);
        const __m256i x_odd = x.four(i, b * kQuantBlock + 8 * s + 4);
        for (int h = 0; h < kHalves; ++h) {
          Levels::add(sum[i][h], w[h].even, x_even, w[h].odd, x_odd);
        }
      }
    }
    for (int h = 0; h < kHalves; ++h) {
      const __m256 scale = Levels::scale(group, b, h);
      const __m256i own = Levels::own(group, b, h);
      for (int i = 0; i < kTokens; ++i) {
        total[i][h] =
            Levels::finish(total[i][h], sum[i][h], scale, own, x.scale(i, b), x.sum(i, b));
      }
    }
  }
};

/// Weights of 16 bits, multiplied with activations of 16 bits. Words has kBlockBytes, group_bytes,
/// block_at and finished as a Format has them, and
///   scale(group, b, h)   what the sums of eight rows are multiplied with
///   words(block, s, h)   step s of eight rows: its first two k, and its last two
template <class Words>
struct WordFormat : Words {
  using Panel = WordPanel;

  static void fill(uint8_t* panel, const uint8_t* group, int64_t b) {
    const uint8_t* block = Words::block_at(group, b);
    for (int h = 0; h < kHalves; ++h) {
      _mm256_store_ps(reinterpret_cast<float*>(panel) + kLanes * h, Words::scale(group, b, h));
      for (int s = 0; s < kSteps; ++s) {
        const Pair w = Words::words(block, s, h);
        auto* to = reinterpret_cast<__m256i*>(panel + 64) + 4 * s + h;
        _mm256_store_si256(to, w.even);
        _mm256_store_si256(to + kHalves, w.odd);
      }
    }
  }

  template <int kTokens>
  [[gnu::always_inline]] static void add_products(Totals<kTokens>& total, const Rows<kTokens>& x,
                                                  const uint8_t* group, int64_t b) {
    const uint8_t* block = Words::block_at(group, b);
    __m256i sum[kTokens][kHalves];
    for (int i = 0; i < kTokens; ++i) sum[i][0] = sum[i][1] = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int s = 0; s < kSteps; ++s) {
      const Pair w[kHalves] = {Words::words(block, s, 0), Words::words(block, s, 1)};
      for (int i = 0; i < kTokens; ++i) {
        const __m256i first = x.pair(i, b * kQuantBlock + 4 * s);
        const __m256i last = x.pair(i, b * kQuantBlock + 4 * s + 2);
        for (int h = 0; h < kHalves; ++h) {
          sum[i][h] = _mm256_add_epi32(sum[i][h], _mm256_madd_epi16(w[h].even, first));
          settle(sum[i][h]);
          sum[i][h] = _mm256_add_epi32(sum[i][h], _mm256_madd_epi16(w[h].odd, last));
          settle(sum[i][h]);
        }
      }
    }
    for (int h = 0; h < kHalves; ++h) {
      const __m256 scale = Words::scale(group, b, h);
      for (int i = 0; i < kTokens; ++i) {
        total[i][h] = add_block(total[i][h], sum[i][h], scale, x.scale(i, b));
      }
    }
  }
};

template <class Format, class Store, int kTokens>
void direct_tile(const PackedOperands& op, const uint8_t* group, int64_t t, int64_t n,
                 int64_t n_rows) {
  Rows<kTokens> x;
  x.x16_at = op.x16_at();
  x.scales_at = op.scales_at();
  x.sums_at = op.sums_at();
  for (int i = 0; i < kTokens; ++i) x.at[i] = op.x(t + i);
  Totals<kTokens> total;
  for (int i = 0; i < kTokens; ++i) total[i][0] = total[i][1] = _mm256_setzero_ps();
  for (int64_t b = 0; b < op.k_len / kQuantBlock; ++b) {
    prefetch<Format::kBlockBytes>(Format::block_at(group, b));
    Format::template add_products<kTokens>(total, x, group, b);
  }
  for (int i = 0; i < kTokens; ++i) {
    store_token<Format, Store>(op, group, t + i, n, n_rows, total[i][0], total[i][1]);
  }
}

template <class Format, class Store>
void direct_group(const PackedOperands& op, const uint8_t* group, int64_t n_tokens, int64_t n,
                  int64_t n_rows) {
  int64_t t = 0;
  for (; t + kTileTokens <= n_tokens; t += kTileTokens) {
    direct_tile<Format, Store, kTileTokens>(op, group, t, n, n_rows);
  }
  if (n_tokens - t == 3) direct_tile<Format, Store, 3>(op, group, t, n, n_rows);
  if (n_tokens - t == 2) direct_tile<Format, Store, 2>(op, group, t, n, n_rows);
  if (n_tokens - t == 1) direct_tile<Format, Store, 1>(op, group, t, n, n_rows);
}

/// One block of tokens against one group.
template <class Format, class Store>
void panel_group(const PackedOperands& op, const uint8_t* group, int64_t t_begin, int64_t n_tokens,
                 int64_t n, int64_t n_rows) {
  using Panel = typename Format::Panel;
  alignas(64) uint8_t panel[kPanelBlocks * Panel::kBytes];
  alignas(64) float sums[kMaxTokens * kPackedRows];
  for (int64_t i = 0; i < n_tokens * kPackedRows; i += kLanes) {
    _mm256_store_ps(sums + i, _mm256_setzero_ps());
  }
  const int64_t all = op.k_len / kQuantBlock;
  for (int64_t b = 0; b < all; b += kPanelBlocks) {
    const int64_t here = all - b < kPanelBlocks ? all - b : kPanelBlocks;
    for (int64_t i = 0; i < here; ++i) Format::fill(panel + i * Panel::kBytes, group, b + i);
    const uint8_t* next_blocks = Format::block_at(group, b + here);
    PanelFetch next(next_blocks, Format::block_at(group, b + here + kPanelBlocks) - next_blocks,
                    (n_tokens + kTileTokens - 1) / kTileTokens * here);
    int64_t t = 0;
    for (; t + kTileTokens <= n_tokens; t += kTileTokens) {
      Panel::template tile<kTileTokens>(sums + t * kPackedRows, op, t_begin + t, panel, b, here,
                                        next);
    }
    float* rest = sums + t * kPackedRows;
    if (n_tokens - t == 3) Panel::template tile<3>(rest, op, t_begin + t, panel, b, here, next);
    if (n_tokens - t == 2) Panel::template tile<2>(rest, op, t_begin + t, panel, b, here, next);
    if (n_tokens - t == 1) Panel::template tile<1>(rest, op, t_begin + t, panel, b, here, next);
  }
  for (int64_t t = 0; t < n_tokens; ++t) {
    const float* from = sums + t * kPackedRows;
    store_token<Format, Store>(op, group, t_begin + t, n, n_rows, _mm256_load_ps(from),
                               _mm256_load_ps(from + kLanes));
  }
}

/// As many tokens as keep their x in L2.
template <class Format>
int64_t tokens_of_block(int64_t k_len) {
  const int64_t row_bytes = Format::Panel::kXBytes * (k_len > 0 ? k_len : 1);
  const int64_t fit = kTokenBytes / row_bytes / kTileTokens * kTileTokens;
  if (fit > kMaxTokens) return kMaxTokens;
  return fit < kMinTokens ? kMinTokens : fit;
}

template <class Format, class Store>
void stripe(float* y, int64_t y_stride, const void* xq, const void* packed, int64_t n_tokens,
            int64_t k_len, int64_t n_begin, int64_t n_end) {
  const auto op = PackedOperands::of(y, y_stride, xq, packed, k_len);
  const bool with_panel = n_tokens >= kPanelTokens;
  const int64_t n_block = with_panel ? tokens_of_block<Format>(k_len) : n_tokens;
  for (int64_t t = 0; t < n_tokens; t += n_block) {
    const int64_t here = n_tokens - t < n_block ? n_tokens - t : n_block;
    for (int64_t n = n_begin; n < n_end; n += kPackedRows) {
      const uint8_t* group = op.packed + n / kPackedRows * Format::group_bytes(k_len);
      if (with_panel) {
        panel_group<Format, Store>(op, group, t, here, n, n_end - n);
      } else {
        direct_group<Format, Store>(op, group, n_tokens, n, n_end - n);
      }
    }
  }
}

}  // namespace
}  // namespace dovetail::kernels::avx2
