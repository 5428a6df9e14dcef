// Products with packed weights for AVX-512 with VNNI: the walk over groups, blocks and tokens, whatever the
// format. Contracts in kernels/linear_quantized.hpp and kernels/linear_gguf.hpp.
// One token is bound by memory, many by arithmetic. A step of a group is one vector: four k of 16
// rows, multiplied and summed in 32 bits by one vpdpbusd a token, or, with activations of 16 bits,
// two by two vpdpwssd. So unpacking is cheap beside eight tokens and needs no panel.
//
// A Format has
//   kBlockBytes            what a block of 32 k takes, for fetching ahead
//   group_bytes(k_len)     of 16 rows
//   block_at(group, b)     where block b of a group lies
//   Block, load(group, b)  a block of a group in registers
//   add(total, block, x)   total + the block's products with a token's block
//   finished(group, total) outputs from the sums of all blocks
// The namespace is unnamed and everything included is C, as in avx2_math.hpp.
#pragma once

#include <immintrin.h>
#include <stdint.h>

#include <kernels/linear_quantized.hpp>

#include "kernels/cpu/packed_operands.hpp"

namespace dovetail::kernels::avx512 {
namespace {

constexpr int kTileTokens = 8;
constexpr int kSteps = 8;                 // of four k in a block
constexpr int64_t kAheadBytes = 8192;     // into L2
constexpr int64_t kTokenBytes = 1 << 20;  // of x, so that a block of tokens stays in L2
constexpr int64_t kMinTokens = 32;

struct Set {
  static __m512 finish(__m512 /*y*/, __m512 sum) { return sum; }
};
struct Add {
  static __m512 finish(__m512 y, __m512 sum) { return _mm512_add_ps(y, sum); }
};

/// Four bytes in every lane.
inline __m512i broadcast4(const uint8_t* p) {
  int32_t bytes;
  __builtin_memcpy(&bytes, p, sizeof bytes);
  return _mm512_set1_epi32(bytes);
}

inline __m512i widen_bytes(const uint8_t* p) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

/// A block of one token.
struct XBlock {
  const uint8_t* q;
  const uint8_t* q16;
  const uint8_t* scale_at;
  const uint8_t* sum_at;

  __m512 scale() const { return _mm512_castsi512_ps(broadcast4(scale_at)); }
  __m512i sum() const { return broadcast4(sum_at); }
};

/// start + sum_k w[k] * q[k] of bytes without a sign.
inline __m512i dot_bytes(__m512i start, const __m512i (&w)[kSteps], const XBlock& x) {
  __m512i other = _mm512_setzero_si512();  // two chains, so that products overlap
  for (int s = 0; s < kSteps; s += 2) {
    start = _mm512_dpbusd_epi32(start, w[s], broadcast4(x.q + 4 * s));
    other = _mm512_dpbusd_epi32(other, w[s + 1], broadcast4(x.q + 4 * s + 4));
  }
  return _mm512_add_epi32(start, other);
}

/// Two steps from each vector of half bytes at q.
inline void load_nibbles(__m512i (&w)[kSteps], const uint8_t* q) {
  const __m512i low_half = _mm512_set1_epi8(15);
  for (int64_t s = 0; s < kSteps / 2; ++s) {
    const __m512i both = _mm512_loadu_si512(q + 64 * s);
    w[2 * s] = _mm512_and_si512(both, low_half);
    w[2 * s + 1] = _mm512_and_si512(_mm512_srli_epi16(both, 4), low_half);
  }
}

/// The weights of a block as words, two vectors a step: four k of eight rows each.
using Words = __m512i[2 * kSteps];

/// Signed bytes.
inline void load_words(Words& w, const uint8_t* q) {
  for (int64_t v = 0; v < 2 * kSteps; ++v) {
    w[v] = _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(q + 32 * v)));
  }
}

/// sum_k w[k] * q16[k] of sixteen rows.
inline __m512i dot_words(const Words& w, const XBlock& x) {
  __m512i low = _mm512_setzero_si512();  // of rows 0 to 7, the k of a step in two sums
  __m512i high = _mm512_setzero_si512();
  for (int s = 0; s < kSteps; ++s) {
    int64_t four;
    __builtin_memcpy(&four, x.q16 + 8 * s, sizeof four);
    const __m512i q16 = _mm512_set1_epi64(four);
    low = _mm512_dpwssd_epi32(low, w[2 * s], q16);
    high = _mm512_dpwssd_epi32(high, w[2 * s + 1], q16);
  }
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  return _mm512_add_epi32(_mm512_permutex2var_epi32(low, even, high),
                          _mm512_permutex2var_epi32(low, odd, high));
}

/// What a sum of products starts with where `zero` was added to every weight: of minus_zero the lower 16
/// bits are -zero, and the others nothing.
inline __m512i start_of(__m512i minus_zero, __m512i x_sum) {
  return _mm512_madd_epi16(minus_zero, x_sum);
}

inline __m512i minus(uint16_t zero) {
  return _mm512_set1_epi32(static_cast<uint16_t>(-zero));
}

/// total + inner * (scale * the block's scale of x).
inline __m512 add_scaled(__m512 total, __m512i inner, __m512 scale, const XBlock& x) {
  return _mm512_fmadd_ps(_mm512_cvtepi32_ps(inner), _mm512_mul_ps(scale, x.scale()), total);
}

/// kTokens tokens against one group.
template <class Format, class Store, int kTokens>
void tile(const PackedOperands& op, const uint8_t* group, int64_t t, int64_t n, int64_t n_rows) {
  const uint8_t* x[kTokens];
  __m512 total[kTokens];
  for (int i = 0; i < kTokens; ++i) {
    x[i] = op.x(t + i);
    total[i] = _mm512_setzero_ps();
  }
  const int64_t x16_at = op.x16_at();
  const int64_t scales_at = op.scales_at();
  const int64_t sums_at = op.sums_at();
  for (int64_t b = 0; b < op.k_len / kQuantBlock; ++b) {
    const char* ahead = reinterpret_cast<const char*>(Format::block_at(group, b)) + kAheadBytes;
    for (int64_t line = 0; line < (Format::kBlockBytes + 63) / 64; ++line) {
      _mm_prefetch(ahead + 64 * line, _MM_HINT_T1);
    }
    const typename Format::Block block = Format::load(group, b);
#pragma GCC unroll 8
    for (int i = 0; i < kTokens; ++i) {
      const XBlock here = {x[i] + b * kQuantBlock, x[i] + x16_at + 2 * b * kQuantBlock,
                           x[i] + scales_at + 4 * b, x[i] + sums_at + 4 * b};
      total[i] = Format::add(total[i], block, here);
    }
  }
  const __mmask16 rows =
      static_cast<__mmask16>(n_rows < kPackedRows ? (1U << n_rows) - 1U : 0xFFFFU);
  for (int i = 0; i < kTokens; ++i) {
    float* y = op.y + (t + i) * op.y_stride + n;
    const __m512 before = _mm512_maskz_loadu_ps(rows, y);
    _mm512_mask_storeu_ps(y, rows, Store::finish(before, Format::finished(group, total[i])));
  }
}

/// Tokens [t, t_end) against one group.
template <class Format, class Store>
void group_of_rows(const PackedOperands& op, const uint8_t* group, int64_t t, int64_t t_end,
                   int64_t n, int64_t n_rows) {
  for (; t + kTileTokens <= t_end; t += kTileTokens) {
    tile<Format, Store, kTileTokens>(op, group, t, n, n_rows);
  }
  for (; t + 4 <= t_end; t += 4) tile<Format, Store, 4>(op, group, t, n, n_rows);
  for (; t + 2 <= t_end; t += 2) tile<Format, Store, 2>(op, group, t, n, n_rows);
  if (t < t_end) tile<Format, Store, 1>(op, group, t, n, n_rows);
}

template <class Format, class Store>
void stripe(float* y, int64_t y_stride, const void* xq, const void* packed, int64_t n_tokens,
            int64_t k_len, int64_t n_begin, int64_t n_end) {
  const auto op = PackedOperands::of(y, y_stride, xq, packed, k_len);
  const int64_t fit = kTokenBytes / (k_len > 0 ? k_len : 1) / kTileTokens * kTileTokens;
  const int64_t n_block = fit < kMinTokens ? kMinTokens : fit;
  for (int64_t t = 0; t < n_tokens; t += n_block) {
    const int64_t t_end = n_tokens - t < n_block ? n_tokens : t + n_block;
    for (int64_t n = n_begin; n < n_end; n += kPackedRows) {
      group_of_rows<Format, Store>(op, op.packed + n / kPackedRows * Format::group_bytes(k_len), t,
                                   t_end, n, n_end - n);
    }
  }
}

}  // namespace
}  // namespace dovetail::kernels::avx512
