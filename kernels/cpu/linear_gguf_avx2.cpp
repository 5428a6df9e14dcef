// Products with packed weights of GGUF for AVX2 + FMA + F16C; contract in kernels/linear_gguf.hpp, oracle in
// kernels/ref/linear_gguf.cpp.
// One token is bound by memory: groups of 16 rows are read from end to end, each byte once. More tokens are bound by
// arithmetic. A step takes four k of 16 rows, two vectors, so that each broadcast of x serves both:
//   q4_0, q4_k   vpmaddubsw, summed in 16 bits over the whole block: 2 * 15 * 127 * 8 = 30480
//   q6_k         |w| times x with the sign of w, in 16 bits over four steps: 2 * 32 * 127 * 4 = 32512; the scale of the
//                half block comes with the widening
//   q8_0         likewise, widened at once: 2 * 128 * 127 = 32512 (a file may hold -128)
// Built with -mavx2 -mfma -mf16c: C headers and intrinsics only (a test finds no weak symbols here).
#include <immintrin.h>
#include <stdint.h>

#include "kernels/cpu/avx2.hpp"
#include "kernels/cpu/avx2_math.hpp"

namespace dovetail::kernels::avx2 {
namespace {

constexpr int kTileTokens = 4;
constexpr int kSteps = 8;             // of four k in a block
constexpr int kHalves = 2;            // vectors of eight rows in a group
constexpr int64_t kLargeBlocks = 8;   // blocks of 32 that share a head in q4_k and q6_k
constexpr int64_t kTokenBlock = 128;  // so that their x stays in L2 while all groups pass
constexpr int64_t kAheadBytes = 2048;
constexpr int64_t kNibbleBytes = kPackedRows * kQuantBlock / 2,
                  kByteBytes = kPackedRows * kQuantBlock;

static inline __m256i load_bytes(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
/// Four bytes in every lane.
static inline __m256i broadcast4(const void* p) {
  return _mm256_castps_si256(_mm256_broadcast_ss(static_cast<const float*>(p)));
}
static inline __m256 broadcast_float(const uint8_t* p) {
  return _mm256_broadcast_ss(reinterpret_cast<const float*>(p));
}
/// Eight halves as floats.
static inline __m256 halves(const uint8_t* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
static inline __m256 unsigned_bytes(const uint8_t* p) {
  return _mm256_cvtepi32_ps(
      _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
/// Eight signed bytes, each in both 16-bit halves of its lane.
static inline __m256i paired_bytes(const uint8_t* p) {
  const __m256i wide = _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  return _mm256_blend_epi16(wide, _mm256_slli_epi32(wide, 16), 0xAA);
}

/// A row of quantised activations, at block b.
struct Row {
  const uint8_t *q, *scale, *sum;
};

template <int kTokens>
struct Rows {
  const uint8_t* at[kTokens];
  int64_t k_len;

  Row block(int i, int64_t b) const {
    const uint8_t* scales = at[i] + 3 * k_len + 4 * b;
    return {at[i] + b * kQuantBlock, scales, scales + k_len / kQuantBlock * 4};
  }
};

template <int64_t kBytes>
static inline void prefetch(const uint8_t* block) {
  for (int64_t line = 0; line < (kBytes + 63) / 64; ++line)
    _mm_prefetch(reinterpret_cast<const char*>(block) + kAheadBytes + 64 * line, _MM_HINT_T0);
}

/// Sums of level * q of one block, four-bit levels.
template <int kTokens>
static inline void dot_nibbles(__m256i (&inner)[kTokens][kHalves], const uint8_t* levels,
                               const Rows<kTokens>& x, int64_t b) {
  const __m256i low_half = _mm256_set1_epi8(15);
  __m256i sum[kTokens][kHalves];
  for (int i = 0; i < kTokens; ++i) sum[i][0] = sum[i][1] = _mm256_setzero_si256();
#pragma GCC unroll 4
  for (int s = 0; s < kSteps / 2; ++s, levels += 64) {
    __m256i even[kHalves];
    __m256i odd[kHalves];
    for (int h = 0; h < kHalves; ++h) {
      const __m256i both = load_bytes(levels + 32 * h);
      even[h] = _mm256_and_si256(both, low_half);
      odd[h] = _mm256_and_si256(_mm256_srli_epi16(both, 4), low_half);
    }
    for (int i = 0; i < kTokens; ++i) {
      const uint8_t* at = x.at[i] + b * kQuantBlock + 8 * s;
      const __m256i x_even = broadcast4(at);
      const __m256i x_odd = broadcast4(at + 4);
      for (int h = 0; h < kHalves; ++h) {
        sum[i][h] = _mm256_add_epi16(sum[i][h], _mm256_maddubs_epi16(even[h], x_even));
        sum[i][h] = _mm256_add_epi16(sum[i][h], _mm256_maddubs_epi16(odd[h], x_odd));
      }
    }
  }
  const __m256i ones = _mm256_set1_epi16(1);
  for (int i = 0; i < kTokens; ++i)
    for (int h = 0; h < kHalves; ++h) inner[i][h] = _mm256_madd_epi16(sum[i][h], ones);
}

static inline __m256 add(__m256 total, __m256i inner, __m256 factor, const Row& x) {
  return _mm256_fmadd_ps(_mm256_cvtepi32_ps(inner), _mm256_mul_ps(factor, broadcast_float(x.scale)),
                         total);
}

// Each format: kBlocks blocks of 32 behind one head, added to the totals.
struct Q4_0 {
  static constexpr int64_t kBlocks = 1;
  static constexpr int64_t kGroupBytes = 2 * kPackedRows + kNibbleBytes;
  template <int kTokens>
  static void run(__m256 (&total)[kTokens][kHalves], const uint8_t* head, const Rows<kTokens>& x,
                  int64_t b) {
    __m256i inner[kTokens][kHalves];
    prefetch<kGroupBytes>(head);
    dot_nibbles<kTokens>(inner, head + 2 * kPackedRows, x, b);
    for (int h = 0; h < kHalves; ++h) {
      const __m256 d = halves(head + 16 * h);
      for (int i = 0; i < kTokens; ++i) {
        const Row row = x.block(i, b);
        const __m256i shift = _mm256_slli_epi32(broadcast4(row.sum), 3);
        total[i][h] = add(total[i][h], _mm256_sub_epi32(inner[i][h], shift), d, row);
      }
    }
  }
};

struct Q4_K {
  static constexpr int64_t kBlocks = kLargeBlocks;
  static constexpr int64_t kBlockBytes = 2 * kPackedRows + kNibbleBytes;
  static constexpr int64_t kGroupBytes = 4 * kPackedRows + kBlocks * kBlockBytes;
  template <int kTokens>
  static void run(__m256 (&total)[kTokens][kHalves], const uint8_t* head, const Rows<kTokens>& x,
                  int64_t b) {
    const __m256 d[kHalves] = {halves(head), halves(head + 16)};
    const __m256 m[kHalves] = {halves(head + 32), halves(head + 48)};
    const uint8_t* block = head + 4 * kPackedRows;
    for (const int64_t end = b + kBlocks; b < end; ++b, block += kBlockBytes) {
      __m256i inner[kTokens][kHalves];
      prefetch<kBlockBytes>(block);
      dot_nibbles<kTokens>(inner, block + 2 * kPackedRows, x, b);
      for (int h = 0; h < kHalves; ++h) {
        const __m256 scale = _mm256_mul_ps(d[h], unsigned_bytes(block + 8 * h));
        const __m256 offset = _mm256_mul_ps(m[h], unsigned_bytes(block + kPackedRows + 8 * h));
        for (int i = 0; i < kTokens; ++i) {
          const Row row = x.block(i, b);
          const __m256 sum = _mm256_cvtepi32_ps(broadcast4(row.sum));
          total[i][h] = add(total[i][h], inner[i][h], scale, row);
          total[i][h] =
              _mm256_fnmadd_ps(sum, _mm256_mul_ps(offset, broadcast_float(row.scale)), total[i][h]);
        }
      }
    }
  }
};

struct Q8_0 {
  static constexpr int64_t kBlocks = 1;
  static constexpr int64_t kGroupBytes = 2 * kPackedRows + kByteBytes;
  template <int kTokens>
  static void run(__m256 (&total)[kTokens][kHalves], const uint8_t* head, const Rows<kTokens>& x,
                  int64_t b) {
    const __m256i ones = _mm256_set1_epi16(1);
    const uint8_t* levels = head + 2 * kPackedRows;
    __m256i sum[kTokens][kHalves];
    for (int i = 0; i < kTokens; ++i) sum[i][0] = sum[i][1] = _mm256_setzero_si256();
    prefetch<kGroupBytes>(head);
#pragma GCC unroll 8
    for (int s = 0; s < kSteps; ++s, levels += 64) {
      for (int h = 0; h < kHalves; ++h) {
        const __m256i w = load_bytes(levels + 32 * h);
        const __m256i magnitude = _mm256_abs_epi8(w);
        for (int i = 0; i < kTokens; ++i) {
          const __m256i q = broadcast4(x.at[i] + b * kQuantBlock + 4 * s);
          const __m256i pairs = _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(q, w));
          sum[i][h] = _mm256_add_epi32(sum[i][h], _mm256_madd_epi16(pairs, ones));
        }
      }
    }
    for (int h = 0; h < kHalves; ++h) {
      const __m256 d = halves(head + 16 * h);
      for (int i = 0; i < kTokens; ++i) total[i][h] = add(total[i][h], sum[i][h], d, x.block(i, b));
    }
  }
};

struct Q6_K {
  static constexpr int64_t kBlocks = kLargeBlocks;
  static constexpr int64_t kBlockBytes = 2 * kPackedRows + kByteBytes;
  static constexpr int64_t kGroupBytes = 2 * kPackedRows + kBlocks * kBlockBytes;
  template <int kTokens>
  static void run(__m256 (&total)[kTokens][kHalves], const uint8_t* head, const Rows<kTokens>& x,
                  int64_t b) {
    const __m256 d[kHalves] = {halves(head), halves(head + 16)};
    const uint8_t* block = head + 2 * kPackedRows;
    for (const int64_t end = b + kBlocks; b < end; ++b, block += kBlockBytes) {
      __m256i inner[kTokens][kHalves];
      for (int i = 0; i < kTokens; ++i) inner[i][0] = inner[i][1] = _mm256_setzero_si256();
      prefetch<kBlockBytes>(block);
      for (int half = 0; half < 2; ++half) {
        const uint8_t* levels = block + 2 * kPackedRows + half * (kByteBytes / 2);
        __m256i sum[kTokens][kHalves];
        for (int i = 0; i < kTokens; ++i) sum[i][0] = sum[i][1] = _mm256_setzero_si256();
#pragma GCC unroll 4
        for (int s = 0; s < kSteps / 2; ++s, levels += 64) {
          for (int h = 0; h < kHalves; ++h) {
            const __m256i w = load_bytes(levels + 32 * h);
            const __m256i magnitude = _mm256_abs_epi8(w);
            for (int i = 0; i < kTokens; ++i) {
              const __m256i q = broadcast4(x.at[i] + b * kQuantBlock + 16 * half + 4 * s);
              sum[i][h] = _mm256_add_epi16(sum[i][h],
                                           _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(q, w)));
            }
          }
        }
        for (int h = 0; h < kHalves; ++h) {
          const __m256i scale = paired_bytes(block + half * kPackedRows + 8 * h);
          for (int i = 0; i < kTokens; ++i)
            inner[i][h] = _mm256_add_epi32(inner[i][h], _mm256_madd_epi16(sum[i][h], scale));
        }
      }
      for (int h = 0; h < kHalves; ++h)
        for (int i = 0; i < kTokens; ++i)
          total[i][h] = add(total[i][h], inner[i][h], d[h], x.block(i, b));
    }
  }
};

template <bool kAdds>
void store_rows(float* y, __m256 sum, int64_t n_rows) {
  if (n_rows >= kLanes) {
    _mm256_storeu_ps(y, kAdds ? _mm256_add_ps(_mm256_loadu_ps(y), sum) : sum);
  } else if (n_rows > 0) {
    const __m256i mask = first_lanes(n_rows);
    _mm256_maskstore_ps(y, mask, kAdds ? _mm256_add_ps(_mm256_maskload_ps(y, mask), sum) : sum);
  }
}

/// kTokens tokens against one group.
template <class Format, bool kAdds, int kTokens>
void tile(float* y, int64_t y_stride, const uint8_t* xq, const uint8_t* group, int64_t n_rows,
          int64_t k_len) {
  Rows<kTokens> x;
  x.k_len = k_len;
  for (int i = 0; i < kTokens; ++i) x.at[i] = xq + i * quantized_row_bytes(k_len);
  __m256 total[kTokens][kHalves];
  for (int i = 0; i < kTokens; ++i) total[i][0] = total[i][1] = _mm256_setzero_ps();
  for (int64_t b = 0; b < k_len / kQuantBlock; b += Format::kBlocks, group += Format::kGroupBytes)
    Format::template run<kTokens>(total, group, x, b);
  for (int i = 0; i < kTokens; ++i)
    for (int h = 0; h < kHalves; ++h)
      store_rows<kAdds>(y + i * y_stride + kLanes * h, total[i][h], n_rows - kLanes * h);
}

template <class Format, bool kAdds>
void stripe(float* y, int64_t y_stride, const void* xq, const void* packed, int64_t n_tokens,
            int64_t k_len, int64_t n_begin, int64_t n_end) {
  const int64_t group_bytes = k_len / (Format::kBlocks * kQuantBlock) * Format::kGroupBytes;
  const int64_t x_bytes = quantized_row_bytes(k_len);
  for (int64_t t_begin = 0; t_begin < n_tokens; t_begin += kTokenBlock) {
    const int64_t t_end = n_tokens - t_begin < kTokenBlock ? n_tokens : t_begin + kTokenBlock;
    for (int64_t n = n_begin; n < n_end; n += kPackedRows) {
      const uint8_t* group = static_cast<const uint8_t*>(packed) + n / kPackedRows * group_bytes;
      const int64_t n_rows = n_end - n;
      int64_t t = t_begin;
      for (; t < t_end;) {
        float* to = y + t * y_stride + n;
        const uint8_t* x = static_cast<const uint8_t*>(xq) + t * x_bytes;
        const int64_t left = t_end - t;
        if (left >= kTileTokens) {
          tile<Format, kAdds, kTileTokens>(to, y_stride, x, group, n_rows, k_len);
          t += kTileTokens;
        } else if (left >= 2) {
          tile<Format, kAdds, 2>(to, y_stride, x, group, n_rows, k_len);
          t += 2;
        } else {
          tile<Format, kAdds, 1>(to, y_stride, x, group, n_rows, k_len);
          t += 1;
        }
      }
    }
  }
}

}  // namespace

#define DVT_GGUF_FORMAT(name, Format)                                                          \
  void linear_##name(float* y, int64_t y_stride, const void* xq, const void* packed,           \
                     int64_t n_tokens, int64_t /*n_rows*/, int64_t k_len, int64_t n_begin,     \
                     int64_t n_end) {                                                          \
    stripe<Format, false>(y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);           \
  }                                                                                            \
  void linear_add_##name(float* y, int64_t y_stride, const void* xq, const void* packed,       \
                         int64_t n_tokens, int64_t /*n_rows*/, int64_t k_len, int64_t n_begin, \
                         int64_t n_end) {                                                      \
    stripe<Format, true>(y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);            \
  }

DVT_GGUF_FORMAT(q4_0, Q4_0)
DVT_GGUF_FORMAT(q8_0, Q8_0)
DVT_GGUF_FORMAT(q4_k, Q4_K)
DVT_GGUF_FORMAT(q6_k, Q6_K)
#undef DVT_GGUF_FORMAT

}  // namespace dovetail::kernels::avx2
