// linear over packed weights for AVX2 + FMA; contract in kernels/linear_quantized.hpp, oracle in
// kernels/ref/linear_quantized.cpp.
// One token is bound by memory: groups of 16 rows are read from end to end, each byte once. More
// tokens are bound by arithmetic. A step takes four k of 16 rows, two vectors, so that each
// broadcast of x serves both:
//   int4   vpmaddubsw, summed in 16 bits over the whole block: 2 * 15 * 127 * 8 = 30480
//   int4q  the same after a table look-up, in 16 bits over two steps: 4 * 64 * 127 = 32512
//   int6   the same after two more bits are put to each level: 4 * 63 * 127 = 32004
//   int8   for few tokens |x| times w with the sign of x, widened at once; for many, a panel of
//          16-bit weights and vpmaddwd, which needs no signs
// From kPanelTokens on, a part of a group is unpacked into a panel once for a whole block of tokens.
// The sum of a block is exact, so all of these give the same bits.
// Built with -mavx2 -mfma: C headers and intrinsics only (a test finds no weak symbols here).
#include "kernels/cpu/avx2.hpp"

#include <immintrin.h>
#include <stdint.h>

#include "kernels/cpu/avx2_math.hpp"

namespace dovetail::kernels::avx2 {
namespace {

constexpr int kTileTokens = 4;
constexpr int kSteps = 8;             // of four k in a block
constexpr int kHalves = 2;            // vectors of eight rows in a group
constexpr int64_t kPanelTokens = 12;  // from here on a panel pays
constexpr int64_t kPanelBlocks = 16;  // 16 rows x 512 k: 10 or 18 KiB
constexpr int64_t kMaxTokens = 256;   // of a block; 16 KiB of partial sums on the stack
constexpr int64_t kMinTokens = 32;
constexpr int64_t kTokenBytes = 384 * 1024;  // of x, so that a block of tokens stays in L2
constexpr int64_t kAheadBytes = 2048;
constexpr int64_t kLine = 64;  // bytes

struct Set {
  static __m256 finish(__m256 /*y*/, __m256 sum) { return sum; }
};
struct Add {
  static __m256 finish(__m256 y, __m256 sum) { return _mm256_add_ps(y, sum); }
};

/// The operands of one call, as in the contract.
struct Operands {
  float* y;
  int64_t y_stride;
  const uint8_t* xq;
  int64_t x_bytes;  // of a row of xq
  const uint8_t* packed;
  int64_t k_len;

  const uint8_t* x(int64_t t) const { return xq + t * x_bytes; }
  // Where a row has its other parts, in bytes.
  int64_t x16_at() const { return k_len; }
  int64_t scales_at() const { return 3 * k_len; }
  int64_t sums_at() const { return 3 * k_len + k_len / kQuantBlock * 4; }
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

/// s(c) of eight scale bytes: their bits are the top of a float's exponent and mantissa.
static inline __m256 scales_of(const uint8_t* codes) {
  const __m256i bits = _mm256_slli_epi32(widen_bytes(codes), 18);
  return _mm256_castsi256_ps(_mm256_add_epi32(bits, _mm256_set1_epi32(132 << 23)));
}

static inline __m256 add_block(__m256 total, __m256i inner, __m256 scale, __m256 x_scale) {
  const __m256 factor = _mm256_mul_ps(scale, x_scale);
  return _mm256_fmadd_ps(_mm256_cvtepi32_ps(inner), factor, total);
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

// The formats whose levels have no sign: where a block has steps 2 s and 2 s + 1 of its half h, what
// comes off for each unit of x, and how two steps' products with one token are added.
struct WithZeros {
  static constexpr int64_t kBlockBytes = kInt4BlockBytes;
  static Pair nibbles_of(const uint8_t* block, int64_t s, int64_t h) {
    return nibbles(block + 2 * kPackedRows + 64 * s + 32 * h);
  }
  static __m256i zero(const uint8_t* block, int64_t h) {
    return widen_bytes(block + kPackedRows + 8 * h);
  }
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

struct Int4 : WithZeros {
  static Pair levels(const uint8_t* block, int64_t s, int64_t h) { return nibbles_of(block, s, h); }
  /// Levels of one block are summed in 16 bits and widened at its end.
  static void add(__m256i& sum, __m256i even, __m256i x_even, __m256i odd, __m256i x_odd) {
    sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(even, x_even));
    settle(sum);
    sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(odd, x_odd));
    settle(sum);
  }
  static __m256i total(__m256i sum) { return _mm256_madd_epi16(sum, _mm256_set1_epi16(16)); }
};

struct Int4q : WithZeros, TwoSteps<4> {
  static Pair levels(const uint8_t* block, int64_t s, int64_t h) {
    alignas(16) static const uint8_t kTable[16] = {
        kInt4qGrid[0],  kInt4qGrid[1],  kInt4qGrid[2],  kInt4qGrid[3],
        kInt4qGrid[4],  kInt4qGrid[5],  kInt4qGrid[6],  kInt4qGrid[7],
        kInt4qGrid[8],  kInt4qGrid[9],  kInt4qGrid[10], kInt4qGrid[11],
        kInt4qGrid[12], kInt4qGrid[13], kInt4qGrid[14], kInt4qGrid[15]};
    const __m256i table =
        _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(kTable)));
    const Pair q = nibbles_of(block, s, h);
    return {_mm256_shuffle_epi8(table, q.even), _mm256_shuffle_epi8(table, q.odd)};
  }
};

struct Int6 : TwoSteps<1> {
  static constexpr int64_t kBlockBytes = kInt6BlockBytes;
  static Pair levels(const uint8_t* block, int64_t s, int64_t h) {
    const __m256i upper_two = _mm256_set1_epi8(0x30);
    const uint8_t* q = block + kPackedRows + 32 * h;
    const Pair low = nibbles(q + 64 * s);
    const __m256i four = load_bytes(q + 256 + 64 * (s / 2));  // the upper bits of four steps
    const __m256i even = s % 2 == 0 ? _mm256_slli_epi16(four, 4) : four;
    const __m256i odd = s % 2 == 0 ? _mm256_slli_epi16(four, 2) : _mm256_srli_epi16(four, 2);
    return {_mm256_or_si256(low.even, _mm256_and_si256(even, upper_two)),
            _mm256_or_si256(low.odd, _mm256_and_si256(odd, upper_two))};
  }
  static __m256i zero(const uint8_t* /*block*/, int64_t /*h*/) {
    return _mm256_set1_epi32(kInt6Zero);
  }
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

/// Multiplies by d and stores one token's outputs for a group.
template <class Store>
void store_token(const Operands& op, const uint8_t* group, int64_t t, int64_t n, int64_t n_rows,
                 __m256 low, __m256 high) {
  const auto* d = reinterpret_cast<const float*>(group);
  float* y = op.y + t * op.y_stride + n;
  store_rows<Store>(y, _mm256_mul_ps(_mm256_loadu_ps(d), low), n_rows);
  store_rows<Store>(y + kLanes, _mm256_mul_ps(_mm256_loadu_ps(d + kLanes), high), n_rows - kLanes);
}

template <int64_t kBytes>
static inline void prefetch(const uint8_t* block) {
  for (int64_t line = 0; line < (kBytes + 63) / 64; ++line) {
    _mm_prefetch(reinterpret_cast<const char*>(block) + kAheadBytes + 64 * line, _MM_HINT_T0);
  }
}

/// kTokens tokens against one group, straight from the packed bytes: levels without a sign.
template <class Format, class Store, int kTokens>
void direct_tile_unsigned(const Operands& op, const uint8_t* group, int64_t t, int64_t n,
                          int64_t n_rows) {
  const uint8_t* x[kTokens];
  for (int i = 0; i < kTokens; ++i) x[i] = op.x(t + i);
  __m256 total[kTokens][kHalves];
  for (int i = 0; i < kTokens; ++i) total[i][0] = total[i][1] = _mm256_setzero_ps();

  const uint8_t* block = group + kPackedRows * 4;
  for (int64_t b = 0; b < op.k_len / kQuantBlock; ++b, block += Format::kBlockBytes) {
    __m256i sum[kTokens][kHalves];
    for (int i = 0; i < kTokens; ++i) sum[i][0] = sum[i][1] = _mm256_setzero_si256();
    prefetch<Format::kBlockBytes>(block);
#pragma GCC unroll 4
    for (int s = 0; s < kSteps / 2; ++s) {
      const Pair w[kHalves] = {Format::levels(block, s, 0), Format::levels(block, s, 1)};
      for (int i = 0; i < kTokens; ++i) {
        const uint8_t* at = x[i] + b * kQuantBlock + 8 * s;
        const __m256i x_even = broadcast4(at);
        const __m256i x_odd = broadcast4(at + 4);
        for (int h = 0; h < kHalves; ++h) {
          Format::add(sum[i][h], w[h].even, x_even, w[h].odd, x_odd);
        }
      }
    }
    for (int h = 0; h < kHalves; ++h) {
      const __m256 scale = scales_of(block + 8 * h);
      const __m256i zero = Format::zero(block, h);
      for (int i = 0; i < kTokens; ++i) {
        const __m256i shift = _mm256_madd_epi16(zero, broadcast4(x[i] + op.sums_at() + 4 * b));
        const __m256i inner = _mm256_sub_epi32(Format::total(sum[i][h]), shift);
        const __m256 x_scale = broadcast_float(x[i] + op.scales_at() + 4 * b);
        total[i][h] = add_block(total[i][h], inner, scale, x_scale);
      }
    }
  }
  for (int i = 0; i < kTokens; ++i) {
    store_token<Store>(op, group, t + i, n, n_rows, total[i][0], total[i][1]);
  }
}

/// The same for int8: |x| times w with the sign of x.
template <class Store, int kTokens>
void direct_tile8(const Operands& op, const uint8_t* group, int64_t t, int64_t n, int64_t n_rows) {
  const __m256i ones = _mm256_set1_epi16(1);
  const uint8_t* row[kTokens];
  for (int i = 0; i < kTokens; ++i) row[i] = op.x(t + i);
  __m256 total[kTokens][kHalves];
  for (int i = 0; i < kTokens; ++i) total[i][0] = total[i][1] = _mm256_setzero_ps();

  const uint8_t* block = group + kPackedRows * 4;
  for (int64_t b = 0; b < op.k_len / kQuantBlock; ++b, block += kInt8BlockBytes) {
    const uint8_t* q = block + kPackedRows;
    __m256i sum[kTokens][kHalves];
    for (int i = 0; i < kTokens; ++i) sum[i][0] = sum[i][1] = _mm256_setzero_si256();
    prefetch<kInt8BlockBytes>(block);
#pragma GCC unroll 8
    for (int s = 0; s < kSteps; ++s, q += 64) {
      const __m256i w[kHalves] = {load_bytes(q), load_bytes(q + 32)};
      for (int i = 0; i < kTokens; ++i) {
        const __m256i x = broadcast4(row[i] + b * kQuantBlock + 4 * s);
        const __m256i magnitude = _mm256_abs_epi8(x);
        for (int h = 0; h < kHalves; ++h) {
          const __m256i pairs = _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(w[h], x));
          sum[i][h] = _mm256_add_epi32(sum[i][h], _mm256_madd_epi16(pairs, ones));
        }
      }
    }
    for (int h = 0; h < kHalves; ++h) {
      const __m256 scale = scales_of(block + 8 * h);
      for (int i = 0; i < kTokens; ++i) {
        const __m256 x_scale = broadcast_float(row[i] + op.scales_at() + 4 * b);
        total[i][h] = add_block(total[i][h], sum[i][h], scale, x_scale);
      }
    }
  }
  for (int i = 0; i < kTokens; ++i) {
    store_token<Store>(op, group, t + i, n, n_rows, total[i][0], total[i][1]);
  }
}

/// Panels, ready to multiply. A block of a panel is
///   int8    float s[16]; int16 w[16 pairs of k][16 rows][2]
///   others  float s[16]; int32 z[16]; uint8 level[8 steps][16 rows][4]
constexpr int64_t kUnsignedPanelBytes = 64 + 64 + 512;
constexpr int64_t kPanel8Bytes = 64 + 1024;

template <class Format>
void fill_panel_unsigned(uint8_t* panel, const uint8_t* block, int64_t n_blocks) {
  for (; n_blocks > 0; --n_blocks, block += Format::kBlockBytes, panel += kUnsignedPanelBytes) {
    for (int h = 0; h < kHalves; ++h) {
      _mm256_store_ps(reinterpret_cast<float*>(panel) + 8 * h, scales_of(block + 8 * h));
      _mm256_store_si256(reinterpret_cast<__m256i*>(panel + 64) + h, Format::zero(block, h));
    }
    auto* to = reinterpret_cast<__m256i*>(panel + 128);
#pragma GCC unroll 4
    for (int s = 0; s < kSteps / 2; ++s, to += 4) {
      for (int h = 0; h < kHalves; ++h) {
        const Pair w = Format::levels(block, s, h);
        _mm256_store_si256(to + h, w.even);
        _mm256_store_si256(to + 2 + h, w.odd);
      }
    }
  }
}

void fill_panel8(uint8_t* panel, const uint8_t* block, int64_t n_blocks) {
  // The first and the last two bytes of each row's four, each in the upper half of 16 bits.
  const __m256i first = _mm256_set1_epi32(static_cast<int32_t>(0x01800080U));
  const __m256i last = _mm256_set1_epi32(static_cast<int32_t>(0x03800280U));
  const __m256i row = _mm256_setr_epi32(0, 0x04000400, 0x08000800, 0x0C000C00, 0, 0x04000400,
                                        0x08000800, 0x0C000C00);
  const __m256i pick_first = _mm256_add_epi8(first, row);
  const __m256i pick_last = _mm256_add_epi8(last, row);
  for (; n_blocks > 0; --n_blocks, block += kInt8BlockBytes, panel += kPanel8Bytes) {
    for (int h = 0; h < kHalves; ++h) {
      _mm256_store_ps(reinterpret_cast<float*>(panel) + 8 * h, scales_of(block + 8 * h));
    }
    auto* to = reinterpret_cast<__m256i*>(panel + 64);
    const uint8_t* q = block + kPackedRows;
    for (int s = 0; s < kSteps; ++s, q += 64, to += 4) {
      for (int h = 0; h < kHalves; ++h) {
        const __m256i w = load_bytes(q + 32 * h);
        _mm256_store_si256(to + h, _mm256_srai_epi16(_mm256_shuffle_epi8(w, pick_first), 8));
        _mm256_store_si256(to + 2 + h, _mm256_srai_epi16(_mm256_shuffle_epi8(w, pick_last), 8));
      }
    }
  }
}

/// Starts to fetch what the next tile reads of a block.
template <int kTokens>
static inline void prefetch_next_tile(const Operands& op, const uint8_t* const* row, int64_t at) {
  for (int i = 0; i < kTokens; ++i) {
    _mm_prefetch(reinterpret_cast<const char*>(row[i] + kTokens * op.x_bytes + at), _MM_HINT_T0);
  }
}

/// Adds kTokens tokens' products with blocks [b, b + n_blocks) of the panel to sums [kTokens][16].
template <class Format, int kTokens>
void panel_tile_unsigned(float* sums, const Operands& op, int64_t t, const uint8_t* panel,
                         int64_t b, int64_t n_blocks) {
  const uint8_t* row[kTokens];
  for (int i = 0; i < kTokens; ++i) row[i] = op.x(t + i);
  const int64_t scales_at = op.scales_at();
  const int64_t sums_at = op.sums_at();
  for (const int64_t end = b + n_blocks; b < end; ++b, panel += kUnsignedPanelBytes) {
    const auto* w = reinterpret_cast<const __m256i*>(panel + 128);
    prefetch_next_tile<kTokens>(op, row, b * kQuantBlock);
    __m256i sum[kTokens][kHalves];
    for (int i = 0; i < kTokens; ++i) sum[i][0] = sum[i][1] = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (int s = 0; s < kSteps / 2; ++s, w += 2 * kHalves) {
      for (int i = 0; i < kTokens; ++i) {
        const __m256i x_even = broadcast4(row[i] + b * kQuantBlock + 8 * s);
        const __m256i x_odd = broadcast4(row[i] + b * kQuantBlock + 8 * s + 4);
        for (int h = 0; h < kHalves; ++h) {
          Format::add(sum[i][h], _mm256_load_si256(w + h), x_even,
                      _mm256_load_si256(w + kHalves + h), x_odd);
        }
      }
    }
    for (int i = 0; i < kTokens; ++i) {
      const __m256 x_scale = broadcast_float(row[i] + scales_at + 4 * b);
      const __m256i x_sum = broadcast4(row[i] + sums_at + 4 * b);
      for (int h = 0; h < kHalves; ++h) {
        const __m256i zero = _mm256_load_si256(reinterpret_cast<const __m256i*>(panel + 64) + h);
        const __m256i shift = _mm256_madd_epi16(zero, x_sum);
        const __m256i inner = _mm256_sub_epi32(Format::total(sum[i][h]), shift);
        float* to = sums + i * kPackedRows + 8 * h;
        const __m256 scale = _mm256_load_ps(reinterpret_cast<const float*>(panel) + 8 * h);
        _mm256_store_ps(to, add_block(_mm256_load_ps(to), inner, scale, x_scale));
      }
    }
  }
}

template <int kTokens>
void panel_tile8(float* sums, const Operands& op, int64_t t, const uint8_t* panel, int64_t b,
                 int64_t n_blocks) {
  const uint8_t* row[kTokens];
  for (int i = 0; i < kTokens; ++i) row[i] = op.x(t + i);
  const int64_t x16_at = op.x16_at();
  const int64_t scales_at = op.scales_at();
  for (const int64_t end = b + n_blocks; b < end; ++b, panel += kPanel8Bytes) {
    const auto* w = reinterpret_cast<const __m256i*>(panel + 64);
    prefetch_next_tile<kTokens>(op, row, x16_at + 2 * b * kQuantBlock);
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

template <class Format>
struct Unsigned {
  static constexpr int64_t kBlockBytes = Format::kBlockBytes;
  static constexpr int64_t kPanelBytes = kUnsignedPanelBytes;
  static constexpr int64_t kXBytes = 1;  // of xq that a panel reads for each k
  template <class Store, int kTokens>
  static void direct(const Operands& op, const uint8_t* group, int64_t t, int64_t n,
                     int64_t n_rows) {
    direct_tile_unsigned<Format, Store, kTokens>(op, group, t, n, n_rows);
  }
  static void fill(uint8_t* panel, const uint8_t* block, int64_t n_blocks) {
    fill_panel_unsigned<Format>(panel, block, n_blocks);
  }
  template <int kTokens>
  static void tile(float* sums, const Operands& op, int64_t t, const uint8_t* panel, int64_t b,
                   int64_t n_blocks) {
    panel_tile_unsigned<Format, kTokens>(sums, op, t, panel, b, n_blocks);
  }
};

struct Bytes {
  static constexpr int64_t kBlockBytes = kInt8BlockBytes;
  static constexpr int64_t kPanelBytes = kPanel8Bytes;
  static constexpr int64_t kXBytes = 2;
  template <class Store, int kTokens>
  static void direct(const Operands& op, const uint8_t* group, int64_t t, int64_t n,
                     int64_t n_rows) {
    direct_tile8<Store, kTokens>(op, group, t, n, n_rows);
  }
  static void fill(uint8_t* panel, const uint8_t* block, int64_t n_blocks) {
    fill_panel8(panel, block, n_blocks);
  }
  template <int kTokens>
  static void tile(float* sums, const Operands& op, int64_t t, const uint8_t* panel, int64_t b,
                   int64_t n_blocks) {
    panel_tile8<kTokens>(sums, op, t, panel, b, n_blocks);
  }
};

template <class Format, class Store>
void direct_group(const Operands& op, const uint8_t* group, int64_t n_tokens, int64_t n,
                  int64_t n_rows) {
  int64_t t = 0;
  for (; t + kTileTokens <= n_tokens; t += kTileTokens) {
    Format::template direct<Store, kTileTokens>(op, group, t, n, n_rows);
  }
  if (n_tokens - t == 3) Format::template direct<Store, 3>(op, group, t, n, n_rows);
  if (n_tokens - t == 2) Format::template direct<Store, 2>(op, group, t, n, n_rows);
  if (n_tokens - t == 1) Format::template direct<Store, 1>(op, group, t, n, n_rows);
}

/// Fetches the packed bytes that the next panel will be filled from, a few lines at every call: each
/// panel is read once, too quickly for the processor to run ahead.
class PanelFetch {
 public:
  PanelFetch(const uint8_t* from, int64_t n_bytes, int64_t n_calls)
      : at_(reinterpret_cast<const char*>(from)), per_call_(n_bytes / kLine / n_calls + 1) {}
  void some() {
    for (int64_t i = 0; i < per_call_; ++i, at_ += kLine) _mm_prefetch(at_, _MM_HINT_T1);
  }

 private:
  const char* at_;
  int64_t per_call_;
};

/// One block of tokens against one group.
template <class Format, class Store>
void panel_group(const Operands& op, const uint8_t* group, int64_t t_begin, int64_t n_tokens,
                 int64_t n, int64_t n_rows) {
  alignas(64) uint8_t panel[kPanelBlocks * Format::kPanelBytes];
  alignas(64) float sums[kMaxTokens * kPackedRows];
  for (int64_t i = 0; i < n_tokens * kPackedRows; i += kLanes) {
    _mm256_store_ps(sums + i, _mm256_setzero_ps());
  }
  const uint8_t* blocks = group + kPackedRows * 4;
  const int64_t all = op.k_len / kQuantBlock;
  for (int64_t b = 0; b < all; b += kPanelBlocks) {
    const int64_t here = all - b < kPanelBlocks ? all - b : kPanelBlocks;
    Format::fill(panel, blocks + b * Format::kBlockBytes, here);
    PanelFetch next(blocks + (b + here) * Format::kBlockBytes, kPanelBlocks * Format::kBlockBytes,
                    (n_tokens + kTileTokens - 1) / kTileTokens);
    int64_t t = 0;
    for (; t + kTileTokens <= n_tokens; t += kTileTokens) {
      next.some();
      Format::template tile<kTileTokens>(sums + t * kPackedRows, op, t_begin + t, panel, b, here);
    }
    float* rest = sums + t * kPackedRows;
    if (n_tokens - t == 3) Format::template tile<3>(rest, op, t_begin + t, panel, b, here);
    if (n_tokens - t == 2) Format::template tile<2>(rest, op, t_begin + t, panel, b, here);
    if (n_tokens - t == 1) Format::template tile<1>(rest, op, t_begin + t, panel, b, here);
  }
  for (int64_t t = 0; t < n_tokens; ++t) {
    const float* from = sums + t * kPackedRows;
    store_token<Store>(op, group, t_begin + t, n, n_rows, _mm256_load_ps(from),
                       _mm256_load_ps(from + kLanes));
  }
}

/// As many tokens as keep their x in L2.
template <class Format>
int64_t tokens_of_block(int64_t k_len) {
  const int64_t row_bytes = Format::kXBytes * (k_len > 0 ? k_len : 1);
  const int64_t fit = kTokenBytes / row_bytes / kTileTokens * kTileTokens;
  if (fit > kMaxTokens) return kMaxTokens;
  return fit < kMinTokens ? kMinTokens : fit;
}

template <class Format, class Store>
void stripe(const Operands& op, int64_t n_tokens, int64_t n_begin, int64_t n_end) {
  const int64_t group_bytes = kPackedRows * 4 + op.k_len / kQuantBlock * Format::kBlockBytes;
  const bool with_panel = n_tokens >= kPanelTokens;
  const int64_t n_block = with_panel ? tokens_of_block<Format>(op.k_len) : n_tokens;
  for (int64_t t = 0; t < n_tokens; t += n_block) {
    const int64_t here = n_tokens - t < n_block ? n_tokens - t : n_block;
    for (int64_t n = n_begin; n < n_end; n += kPackedRows) {
      const uint8_t* group = op.packed + n / kPackedRows * group_bytes;
      if (with_panel) {
        panel_group<Format, Store>(op, group, t, here, n, n_end - n);
      } else {
        direct_group<Format, Store>(op, group, n_tokens, n, n_end - n);
      }
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
  stripe<Bytes, Set>(operands(y, y_stride, xq, packed, k_len), n_tokens, n_begin, n_end);
}

void linear_add_int8(float* y, int64_t y_stride, const void* xq, const void* packed,
                     int64_t n_tokens, int64_t /*n_rows*/, int64_t k_len, int64_t n_begin,
                     int64_t n_end) {
  stripe<Bytes, Add>(operands(y, y_stride, xq, packed, k_len), n_tokens, n_begin, n_end);
}

void linear_int4(float* y, int64_t y_stride, const void* xq, const void* packed, int64_t n_tokens,
                 int64_t /*n_rows*/, int64_t k_len, int64_t n_begin, int64_t n_end) {
  stripe<Unsigned<Int4>, Set>(operands(y, y_stride, xq, packed, k_len), n_tokens, n_begin, n_end);
}

void linear_add_int4(float* y, int64_t y_stride, const void* xq, const void* packed,
                     int64_t n_tokens, int64_t /*n_rows*/, int64_t k_len, int64_t n_begin,
                     int64_t n_end) {
  stripe<Unsigned<Int4>, Add>(operands(y, y_stride, xq, packed, k_len), n_tokens, n_begin, n_end);
}

void linear_int4q(float* y, int64_t y_stride, const void* xq, const void* packed, int64_t n_tokens,
                  int64_t /*n_rows*/, int64_t k_len, int64_t n_begin, int64_t n_end) {
  stripe<Unsigned<Int4q>, Set>(operands(y, y_stride, xq, packed, k_len), n_tokens, n_begin, n_end);
}

void linear_add_int4q(float* y, int64_t y_stride, const void* xq, const void* packed,
                      int64_t n_tokens, int64_t /*n_rows*/, int64_t k_len, int64_t n_begin,
                      int64_t n_end) {
  stripe<Unsigned<Int4q>, Add>(operands(y, y_stride, xq, packed, k_len), n_tokens, n_begin, n_end);
}

void linear_int6(float* y, int64_t y_stride, const void* xq, const void* packed, int64_t n_tokens,
                 int64_t /*n_rows*/, int64_t k_len, int64_t n_begin, int64_t n_end) {
  stripe<Unsigned<Int6>, Set>(operands(y, y_stride, xq, packed, k_len), n_tokens, n_begin, n_end);
}

void linear_add_int6(float* y, int64_t y_stride, const void* xq, const void* packed,
                     int64_t n_tokens, int64_t /*n_rows*/, int64_t k_len, int64_t n_begin,
                     int64_t n_end) {
  stripe<Unsigned<Int6>, Add>(operands(y, y_stride, xq, packed, k_len), n_tokens, n_begin, n_end);
}

}  // namespace dovetail::kernels::avx2
