// linear over packed weights for AVX-512 with VNNI; contract in kernels/linear_quantized.hpp, oracle
// in kernels/ref/linear_quantized.cpp.
// One token is bound by memory, many by arithmetic. A step of a group is one vector: four k of 16
// rows, multiplied and summed in 32 bits by one vpdpbusd a token, so unpacking is cheap beside
// eight tokens and needs no panel. vpdpbusd takes the weights without a sign: those of int8 get 128
// added, which comes off the sum of a block as z does in the 4-bit formats, and 32 in int6.
// Built with -mavx512{f,bw,vl,vnni}: C headers and intrinsics only (a test finds no weak symbols).
#include "kernels/cpu/avx512.hpp"

#include <immintrin.h>
#include <stdint.h>

namespace dovetail::kernels::avx512 {
namespace {

constexpr int kTileTokens = 8;
constexpr int kSteps = 8;  // of four k in a block
constexpr int64_t kAheadBytes = 2048;
constexpr int64_t kTokenBytes = 1 << 20;  // of x, so that a block of tokens stays in L2
constexpr int64_t kMinTokens = 32;

struct Set {
  static __m512 finish(__m512 /*y*/, __m512 sum) { return sum; }
};
struct Add {
  static __m512 finish(__m512 y, __m512 sum) { return _mm512_add_ps(y, sum); }
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
  const uint8_t* x_scale(int64_t t) const { return x(t) + 3 * k_len; }
  const uint8_t* x_sum(int64_t t) const { return x_scale(t) + k_len / kQuantBlock * 4; }
};

/// Four bytes in every lane.
static inline __m512i broadcast4(const uint8_t* p) {
  int32_t bytes;
  __builtin_memcpy(&bytes, p, sizeof bytes);
  return _mm512_set1_epi32(bytes);
}

static inline __m512i widen_bytes(const uint8_t* p) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

/// s(c) of sixteen scale bytes: their bits are the top of a float's exponent and mantissa.
static inline __m512 scales_of(const uint8_t* codes) {
  const __m512i bits = _mm512_slli_epi32(widen_bytes(codes), 18);
  return _mm512_castsi512_ps(_mm512_add_epi32(bits, _mm512_set1_epi32(132 << 23)));
}

/// Each format: the weights of a block as bytes without a sign, one vector a step; the factor that
/// makes their sum one of whole numbers v, and what comes off for each unit of x.
struct Int8 {
  static constexpr int64_t kBlockBytes = kInt8BlockBytes;
  static void load(__m512i (&w)[kSteps], const uint8_t* block) {
    for (int64_t s = 0; s < kSteps; ++s) {
      w[s] = _mm512_xor_si512(_mm512_loadu_si512(block + kPackedRows + 64 * s),
                              _mm512_set1_epi8(static_cast<char>(0x80)));
    }
  }
  static __m512i scaled(__m512i sum) { return sum; }
  static __m512i zero(const uint8_t* /*block*/) { return _mm512_set1_epi32(128); }
};

/// Two steps from each vector of half bytes at q.
static inline void load_nibbles(__m512i (&w)[kSteps], const uint8_t* q) {
  const __m512i low_half = _mm512_set1_epi8(15);
  for (int64_t s = 0; s < kSteps / 2; ++s) {
    const __m512i both = _mm512_loadu_si512(q + 64 * s);
    w[2 * s] = _mm512_and_si512(both, low_half);
    w[2 * s + 1] = _mm512_and_si512(_mm512_srli_epi16(both, 4), low_half);
  }
}

struct Int6 {
  static constexpr int64_t kBlockBytes = kInt6BlockBytes;
  static void load(__m512i (&w)[kSteps], const uint8_t* block) {
    load_nibbles(w, block + kPackedRows);
    const __m512i upper_two = _mm512_set1_epi8(0x30);
    for (int64_t s = 0; s < kSteps; s += 4) {
      const __m512i four = _mm512_loadu_si512(block + kPackedRows + 256 + 16 * s);
      const __m512i upper[4] = {_mm512_slli_epi16(four, 4), _mm512_slli_epi16(four, 2), four,
                                _mm512_srli_epi16(four, 2)};
      for (int64_t j = 0; j < 4; ++j) {
        w[s + j] = _mm512_or_si512(w[s + j], _mm512_and_si512(upper[j], upper_two));
      }
    }
  }
  static __m512i scaled(__m512i sum) { return sum; }
  static __m512i zero(const uint8_t* /*block*/) { return _mm512_set1_epi32(kInt6Zero); }
};

template <class Levels>
struct Nibbles {
  static constexpr int64_t kBlockBytes = kInt4BlockBytes;
  static void load(__m512i (&w)[kSteps], const uint8_t* block) {
    load_nibbles(w, block + 2 * kPackedRows);
    for (__m512i& step : w) step = Levels::of(step);
  }
  static __m512i scaled(__m512i sum) { return _mm512_slli_epi32(sum, Levels::kShift); }
  static __m512i zero(const uint8_t* block) { return widen_bytes(block + kPackedRows); }
};

struct Even {
  static constexpr unsigned kShift = 4;
  static __m512i of(__m512i q) { return q; }
};

struct Grid {
  static constexpr unsigned kShift = 2;
  static __m512i of(__m512i q) {
    alignas(16) static const uint8_t kTable[16] = {
        kInt4qGrid[0],  kInt4qGrid[1],  kInt4qGrid[2],  kInt4qGrid[3],
        kInt4qGrid[4],  kInt4qGrid[5],  kInt4qGrid[6],  kInt4qGrid[7],
        kInt4qGrid[8],  kInt4qGrid[9],  kInt4qGrid[10], kInt4qGrid[11],
        kInt4qGrid[12], kInt4qGrid[13], kInt4qGrid[14], kInt4qGrid[15]};
    const __m128i table = _mm_load_si128(reinterpret_cast<const __m128i*>(kTable));
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), q);
  }
};

/// kTokens tokens against one group.
template <class Format, class Store, int kTokens>
void tile(const Operands& op, const uint8_t* group, int64_t t, int64_t n, int64_t n_rows) {
  const uint8_t* x[kTokens];
  __m512 total[kTokens];
  for (int i = 0; i < kTokens; ++i) {
    x[i] = op.x(t + i);
    total[i] = _mm512_setzero_ps();
  }
  const int64_t to_scales = 3 * op.k_len;
  const int64_t to_sums = to_scales + op.k_len / kQuantBlock * 4;
  const uint8_t* block = group + kPackedRows * 4;
  for (int64_t b = 0; b < op.k_len / kQuantBlock; ++b, block += Format::kBlockBytes) {
    for (int64_t line = 0; line < (Format::kBlockBytes + 63) / 64; ++line) {
      _mm_prefetch(reinterpret_cast<const char*>(block) + kAheadBytes + 64 * line, _MM_HINT_T0);
    }
    __m512i w[kSteps];
    Format::load(w, block);
    const __m512 scale = scales_of(block);
    const __m512i zero = Format::zero(block);
    for (int i = 0; i < kTokens; ++i) {
      __m512i even = _mm512_setzero_si512();  // two chains, so that products overlap
      __m512i odd = _mm512_setzero_si512();
      for (int s = 0; s < kSteps; s += 2) {
        const uint8_t* at = x[i] + b * kQuantBlock + 4 * s;
        even = _mm512_dpbusd_epi32(even, w[s], broadcast4(at));
        odd = _mm512_dpbusd_epi32(odd, w[s + 1], broadcast4(at + 4));
      }
      const __m512i shift = _mm512_madd_epi16(zero, broadcast4(x[i] + to_sums + 4 * b));
      const __m512i inner = _mm512_sub_epi32(Format::scaled(_mm512_add_epi32(even, odd)), shift);
      const __m512 x_scale = _mm512_castsi512_ps(broadcast4(x[i] + to_scales + 4 * b));
      total[i] =
          _mm512_fmadd_ps(_mm512_cvtepi32_ps(inner), _mm512_mul_ps(scale, x_scale), total[i]);
    }
  }
  const __mmask16 rows =
      static_cast<__mmask16>(n_rows < kPackedRows ? (1U << n_rows) - 1U : 0xFFFFU);
  const __m512 d = _mm512_loadu_ps(group);
  for (int i = 0; i < kTokens; ++i) {
    float* y = op.y + (t + i) * op.y_stride + n;
    const __m512 before = _mm512_maskz_loadu_ps(rows, y);
    _mm512_mask_storeu_ps(y, rows, Store::finish(before, _mm512_mul_ps(d, total[i])));
  }
}

/// Tokens [t, t_end) against one group.
template <class Format, class Store>
void group_of_rows(const Operands& op, const uint8_t* group, int64_t t, int64_t t_end, int64_t n,
                   int64_t n_rows) {
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
  const Operands op = {y,
                       y_stride,
                       static_cast<const uint8_t*>(xq),
                       quantized_row_bytes(k_len),
                       static_cast<const uint8_t*>(packed),
                       k_len};
  const int64_t group_bytes = kPackedRows * 4 + k_len / kQuantBlock * Format::kBlockBytes;
  const int64_t fit = kTokenBytes / (k_len > 0 ? k_len : 1) / kTileTokens * kTileTokens;
  const int64_t n_block = fit < kMinTokens ? kMinTokens : fit;
  for (int64_t t = 0; t < n_tokens; t += n_block) {
    const int64_t t_end = n_tokens - t < n_block ? n_tokens : t + n_block;
    for (int64_t n = n_begin; n < n_end; n += kPackedRows) {
      group_of_rows<Format, Store>(op, op.packed + n / kPackedRows * group_bytes, t, t_end, n,
                                   n_end - n);
    }
  }
}

}  // namespace

void linear_int8(float* y, int64_t y_stride, const void* xq, const void* packed, int64_t n_tokens,
                 int64_t /*n_rows*/, int64_t k_len, int64_t n_begin, int64_t n_end) {
  stripe<Int8, Set>(y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);
}

void linear_add_int8(float* y, int64_t y_stride, const void* xq, const void* packed,
                     int64_t n_tokens, int64_t /*n_rows*/, int64_t k_len, int64_t n_begin,
                     int64_t n_end) {
  stripe<Int8, Add>(y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);
}

void linear_int4(float* y, int64_t y_stride, const void* xq, const void* packed, int64_t n_tokens,
                 int64_t /*n_rows*/, int64_t k_len, int64_t n_begin, int64_t n_end) {
  stripe<Nibbles<Even>, Set>(y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);
}

void linear_add_int4(float* y, int64_t y_stride, const void* xq, const void* packed,
                     int64_t n_tokens, int64_t /*n_rows*/, int64_t k_len, int64_t n_begin,
                     int64_t n_end) {
  stripe<Nibbles<Even>, Add>(y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);
}

void linear_int4q(float* y, int64_t y_stride, const void* xq, const void* packed, int64_t n_tokens,
                  int64_t /*n_rows*/, int64_t k_len, int64_t n_begin, int64_t n_end) {
  stripe<Nibbles<Grid>, Set>(y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);
}

void linear_add_int4q(float* y, int64_t y_stride, const void* xq, const void* packed,
                      int64_t n_tokens, int64_t /*n_rows*/, int64_t k_len, int64_t n_begin,
                      int64_t n_end) {
  stripe<Nibbles<Grid>, Add>(y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);
}

void linear_int6(float* y, int64_t y_stride, const void* xq, const void* packed, int64_t n_tokens,
                 int64_t /*n_rows*/, int64_t k_len, int64_t n_begin, int64_t n_end) {
  stripe<Int6, Set>(y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);
}

void linear_add_int6(float* y, int64_t y_stride, const void* xq, const void* packed,
                     int64_t n_tokens, int64_t /*n_rows*/, int64_t k_len, int64_t n_begin,
                     int64_t n_end) {
  stripe<Int6, Add>(y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);
}

}  // namespace dovetail::kernels::avx512
