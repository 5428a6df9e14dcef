// quantize_rows for AVX2; contract in kernels/weight_formats.hpp, oracle in
// kernels/ref/weight_formats.cpp.
// Bound by arithmetic. Eight rows at once, one in each lane: a block of them is turned round, so
// that every step of the oracle's search is one instruction and sums keep its order. The search
// keeps only scale and z of the best try; its levels are found once more at the end.
// Built with -mavx2: C headers and intrinsics only (a test finds no weak symbols here).
#include "kernels/cpu/avx2.hpp"

#include <immintrin.h>
#include <stdint.h>

#include "kernels/cpu/avx2_math.hpp"

namespace dovetail::kernels::avx2 {
namespace {

// As in the oracle.
constexpr float kGreatestScale = 8064.0F;
constexpr float kLeastRow = 1e-30F;
constexpr float kHeadroom = 1.0625F;
constexpr int kCodesUp = 2;
constexpr int kCodesDown = 3;
constexpr float kPhases[] = {-5.0F, 0.0F, 5.0F};

struct Rows {
  const float* at[kLanes];
};

/// One block of eight rows, turned round: x[k] holds k of every row.
void load_block(__m256 (&x)[kQuantBlock], const Rows& rows, int64_t k) {
  for (int64_t i = 0; i < kQuantBlock; i += kLanes) {
    __m256 r[kLanes];
    for (int j = 0; j < kLanes; ++j) r[j] = _mm256_loadu_ps(rows.at[j] + k + i);
    __m256 pair[kLanes];
    for (int j = 0; j < kLanes; j += 2) {
      pair[j] = _mm256_unpacklo_ps(r[j], r[j + 1]);
      pair[j + 1] = _mm256_unpackhi_ps(r[j], r[j + 1]);
    }
    __m256 quad[kLanes];
    for (int j = 0; j < kLanes; j += 4) {
      quad[j] = _mm256_shuffle_ps(pair[j], pair[j + 2], 0x44);
      quad[j + 1] = _mm256_shuffle_ps(pair[j], pair[j + 2], 0xEE);
      quad[j + 2] = _mm256_shuffle_ps(pair[j + 1], pair[j + 3], 0x44);
      quad[j + 3] = _mm256_shuffle_ps(pair[j + 1], pair[j + 3], 0xEE);
    }
    for (int j = 0; j < 4; ++j) {
      x[i + j] = _mm256_permute2f128_ps(quad[j], quad[j + 4], 0x20);
      x[i + j + 4] = _mm256_permute2f128_ps(quad[j], quad[j + 4], 0x31);
    }
  }
}

static inline __m256 round_even(__m256 x) {
  return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline __m256 clamp(__m256 x, float low, float high) {
  return _mm256_min_ps(_mm256_max_ps(x, _mm256_set1_ps(low)), _mm256_set1_ps(high));
}

static inline __m256i clamp_code(__m256i code) {
  return _mm256_min_epi32(_mm256_max_epi32(code, _mm256_setzero_si256()), _mm256_set1_epi32(255));
}

static inline __m256i code_spanning(__m256 s) {
  const __m256i bits = _mm256_add_epi32(_mm256_castps_si256(s), _mm256_set1_epi32((1 << 18) - 1));
  return clamp_code(_mm256_sub_epi32(_mm256_srai_epi32(bits, 18), _mm256_set1_epi32(132 << 5)));
}

static inline __m256 scale_of_code(__m256i code) {
  const __m256i bits = _mm256_slli_epi32(code, 18);
  return _mm256_castsi256_ps(_mm256_add_epi32(bits, _mm256_set1_epi32(132 << 23)));
}

/// Level 15 of each 4-bit format.
constexpr float kInt4Top = 240.0F;
constexpr float kInt4qTop = 4.0F * kInt4qGrid[15];

struct Level {
  __m256i q;
  __m256 worth;
};

struct Int4 {
  static constexpr float kTop = kInt4Top;
  static Level nearest(__m256 t) {
    const __m256 q = clamp(round_even(_mm256_mul_ps(t, _mm256_set1_ps(0.0625F))), 0.0F, 15.0F);
    return {_mm256_cvtps_epi32(q), _mm256_mul_ps(q, _mm256_set1_ps(16.0F))};
  }
};

/// The middle between levels i and i + 1.
constexpr float middle_of(int i) {
  return static_cast<float>(2 * (kInt4qGrid[i] + kInt4qGrid[i + 1]));
}
constexpr float worth_of(int i) {
  return static_cast<float>(4 * kInt4qGrid[i]);
}

struct Int4q {
  static constexpr float kTop = kInt4qTop;
  /// A binary search over the fifteen middles, its tables in registers.
  static Level nearest(__m256 t) {
    const __m256 second =
        _mm256_setr_ps(middle_of(3), middle_of(11), 0.0F, 0.0F, 0.0F, 0.0F, 0.0F, 0.0F);
    const __m256 third = _mm256_setr_ps(middle_of(1), middle_of(5), middle_of(9), middle_of(13),
                                        0.0F, 0.0F, 0.0F, 0.0F);
    const __m256 fourth = _mm256_setr_ps(middle_of(0), middle_of(2), middle_of(4), middle_of(6),
                                         middle_of(8), middle_of(10), middle_of(12), middle_of(14));
    const auto above = [t](__m256 middle) {  // -1 where t is above it
      return _mm256_castps_si256(_mm256_cmp_ps(t, middle, _CMP_GT_OQ));
    };
    const auto narrow = [&above](__m256 table, __m256i i) {  // 2 i + (t is above table[i])
      return _mm256_sub_epi32(_mm256_add_epi32(i, i), above(_mm256_permutevar8x32_ps(table, i)));
    };
    __m256i q = _mm256_sub_epi32(_mm256_setzero_si256(), above(_mm256_set1_ps(middle_of(7))));
    q = narrow(fourth, narrow(third, narrow(second, q)));

    const __m256 low = _mm256_setr_ps(worth_of(0), worth_of(1), worth_of(2), worth_of(3),
                                      worth_of(4), worth_of(5), worth_of(6), worth_of(7));
    const __m256 high = _mm256_setr_ps(worth_of(8), worth_of(9), worth_of(10), worth_of(11),
                                       worth_of(12), worth_of(13), worth_of(14), worth_of(15));
    const __m256 is_high = _mm256_castsi256_ps(_mm256_slli_epi32(q, 28));  // bit 3 to the sign
    return {q, _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, q), _mm256_permutevar8x32_ps(high, q),
                                is_high)};
  }
};

/// The best try so far, for each of eight rows.
struct Best {
  __m256 lost = _mm256_set1_ps(__builtin_inff());
  __m256i code = _mm256_setzero_si256();
  __m256 zero = _mm256_setzero_ps();

  void offer(__m256 squares, __m256 s, __m256i tried_code, __m256 tried_zero) {
    const __m256 tried = _mm256_mul_ps(squares, _mm256_mul_ps(s, s));
    const __m256 better = _mm256_cmp_ps(tried, lost, _CMP_LT_OQ);
    lost = _mm256_blendv_ps(lost, tried, better);
    zero = _mm256_blendv_ps(zero, tried_zero, better);
    code = _mm256_blendv_epi8(code, tried_code, _mm256_castps_si256(better));
  }
};

/// The codes and levels of one block of eight rows, as the layout wants them.
struct Found {
  __m256i code;
  __m256i zero;
  __m256i q[kQuantBlock];
};

/// The formats without z: their least and greatest level, the scales that are tried, and what is
/// added to a level to store it.
struct Int8 {
  static constexpr float kLow = -127.0F;
  static constexpr float kHigh = 127.0F;
  static constexpr int kUp = 0;
  static constexpr int kDown = 2;
  static constexpr int kZero = 0;
};
struct Int6 {
  static constexpr float kLow = -32.0F;
  static constexpr float kHigh = 31.0F;
  static constexpr int kUp = kCodesUp;
  static constexpr int kDown = kCodesDown;
  static constexpr int kZero = kInt6Zero;
};

template <class Format>
void search_centred(Found& found, const __m256 (&x)[kQuantBlock]) {
  const __m256 sign = _mm256_set1_ps(-0.0F);
  __m256 greatest = _mm256_setzero_ps();
  for (const __m256 value : x) greatest = _mm256_max_ps(_mm256_andnot_ps(sign, value), greatest);
  const __m256i spanning = code_spanning(_mm256_div_ps(greatest, _mm256_set1_ps(Format::kHigh)));

  const auto nearest = [](__m256 t) { return clamp(round_even(t), Format::kLow, Format::kHigh); };
  Best best;
  for (int step = Format::kUp; step >= -Format::kDown; --step) {
    const __m256i code = clamp_code(_mm256_add_epi32(spanning, _mm256_set1_epi32(step)));
    const __m256 s = scale_of_code(code);
    const __m256 inverse = _mm256_div_ps(_mm256_set1_ps(1.0F), s);
    __m256 lost = _mm256_setzero_ps();
    for (const __m256 value : x) {
      const __m256 t = _mm256_mul_ps(value, inverse);
      const __m256 error = _mm256_sub_ps(t, nearest(t));
      lost = _mm256_add_ps(lost, _mm256_mul_ps(error, error));
    }
    best.offer(lost, s, code, _mm256_setzero_ps());
  }
  const __m256 inverse = _mm256_div_ps(_mm256_set1_ps(1.0F), scale_of_code(best.code));
  for (int64_t i = 0; i < kQuantBlock; ++i) {
    found.q[i] = _mm256_add_epi32(_mm256_cvtps_epi32(nearest(_mm256_mul_ps(x[i], inverse))),
                                  _mm256_set1_epi32(Format::kZero));
  }
  found.code = best.code;
  found.zero = _mm256_setzero_si256();
}

/// z by least squares for the levels that it has at the start, and the squared errors that it
/// leaves, in units of the scale.
struct Tried {
  __m256 zero;
  __m256 lost;
};

template <class Format>
Tried try_from(const __m256 (&x)[kQuantBlock], __m256 inverse, __m256 start) {
  __m256 zero = clamp(round_even(start), 0.0F, 255.0F);
  __m256 shift = _mm256_setzero_ps();
  for (const __m256 value : x) {
    const __m256 t = _mm256_mul_ps(value, inverse);
    const __m256 worth = Format::nearest(_mm256_add_ps(t, zero)).worth;
    shift = _mm256_add_ps(shift, _mm256_sub_ps(worth, t));
  }
  zero = clamp(round_even(_mm256_mul_ps(shift, _mm256_set1_ps(1.0F / kQuantBlock))), 0.0F, 255.0F);
  __m256 lost = _mm256_setzero_ps();
  for (const __m256 value : x) {
    const __m256 t = _mm256_add_ps(_mm256_mul_ps(value, inverse), zero);
    const __m256 error = _mm256_sub_ps(t, Format::nearest(t).worth);
    lost = _mm256_add_ps(lost, _mm256_mul_ps(error, error));
  }
  return {zero, lost};
}

template <class Format>
void search4(Found& found, const __m256 (&x)[kQuantBlock]) {
  __m256 low = _mm256_setzero_ps();
  __m256 high = _mm256_setzero_ps();
  for (const __m256 value : x) {
    low = _mm256_min_ps(value, low);
    high = _mm256_max_ps(value, high);
  }
  const __m256i spanning =
      code_spanning(_mm256_div_ps(_mm256_sub_ps(high, low), _mm256_set1_ps(Format::kTop)));
  const __m256 middle = _mm256_mul_ps(_mm256_add_ps(low, high), _mm256_set1_ps(0.5F));

  Best best;
  for (int step = kCodesUp; step >= -kCodesDown; --step) {
    const __m256i code = clamp_code(_mm256_add_epi32(spanning, _mm256_set1_epi32(step)));
    const __m256 s = scale_of_code(code);
    const __m256 inverse = _mm256_div_ps(_mm256_set1_ps(1.0F), s);
    for (const float phase : kPhases) {
      const __m256 start = _mm256_sub_ps(_mm256_set1_ps(Format::kTop * 0.5F + phase),
                                         _mm256_mul_ps(middle, inverse));
      const Tried tried = try_from<Format>(x, inverse, start);
      best.offer(tried.lost, s, code, tried.zero);
    }
  }
  const __m256 inverse = _mm256_div_ps(_mm256_set1_ps(1.0F), scale_of_code(best.code));
  for (int64_t i = 0; i < kQuantBlock; ++i) {
    found.q[i] = Format::nearest(_mm256_add_ps(_mm256_mul_ps(x[i], inverse), best.zero)).q;
  }
  found.code = best.code;
  found.zero = _mm256_cvtps_epi32(best.zero);
}

/// The low byte of every lane.
void store_bytes(uint8_t* to, __m256i lanes) {
  alignas(32) int32_t values[kLanes];
  _mm256_store_si256(reinterpret_cast<__m256i*>(values), lanes);
  for (int j = 0; j < kLanes; ++j) to[j] = static_cast<uint8_t>(values[j]);
}

/// The low bytes of four vectors, side by side in every lane.
static inline __m256i four_bytes(const __m256i* q) {
  const __m256i byte = _mm256_set1_epi32(255);
  const __m256i low = _mm256_or_si256(_mm256_and_si256(q[0], byte),
                                      _mm256_slli_epi32(_mm256_and_si256(q[1], byte), 8));
  const __m256i high = _mm256_or_si256(_mm256_slli_epi32(_mm256_and_si256(q[2], byte), 16),
                                       _mm256_slli_epi32(q[3], 24));
  return _mm256_or_si256(low, high);
}

/// Each format: its search, its d from the rows' greatest magnitudes and widest blocks, its store.
template <class Format>
struct PackCentred {
  static constexpr int kEmpty = Format::kZero;  // what a row of zeros has for its levels
  static void search(Found& found, const __m256 (&x)[kQuantBlock]) {
    search_centred<Format>(found, x);
  }
  static __m256 row_scale(__m256 greatest, __m256 /*widest*/) {
    return _mm256_div_ps(greatest, _mm256_set1_ps(Format::kHigh * kGreatestScale));
  }
};

struct PackInt8 : PackCentred<Int8> {
  static constexpr int64_t kBlockBytes = kInt8BlockBytes;
  static void store(uint8_t* block, int64_t half, const Found& found) {
    store_bytes(block + half, found.code);
    uint8_t* to = block + kPackedRows + 4 * half;
    for (int64_t k = 0; k < kQuantBlock; k += 4, to += 64) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), four_bytes(found.q + k));
    }
  }
};

/// The low halves of the levels' bytes, two steps in each vector.
void store_nibbles(uint8_t* to, const __m256i (&q)[kQuantBlock]) {
  const __m256i low_half = _mm256_set1_epi8(15);
  for (int64_t k = 0; k < kQuantBlock; k += 8, to += 64) {
    const __m256i lower = _mm256_and_si256(four_bytes(q + k), low_half);
    const __m256i upper = _mm256_and_si256(four_bytes(q + k + 4), low_half);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm256_or_si256(lower, _mm256_slli_epi32(upper, 4)));
  }
}

struct PackInt6 : PackCentred<Int6> {
  static constexpr int64_t kBlockBytes = kInt6BlockBytes;
  static void store(uint8_t* block, int64_t half, const Found& found) {
    store_bytes(block + half, found.code);
    uint8_t* to = block + kPackedRows + 4 * half;
    store_nibbles(to, found.q);
    to += kPackedRows * kQuantBlock / 2;
    const __m256i upper_two = _mm256_set1_epi8(0x30);
    for (int64_t k = 0; k < kQuantBlock; k += 16, to += 64) {
      __m256i four = _mm256_setzero_si256();
      for (int64_t i = 12; i >= 0; i -= 4) {  // the first step comes to the lowest bits
        const __m256i upper = _mm256_and_si256(four_bytes(found.q + k + i), upper_two);
        four = _mm256_or_si256(_mm256_slli_epi32(four, 2), _mm256_srli_epi32(upper, 4));
      }
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), four);
    }
  }
};

template <class Format>
struct PackNibbles {
  static constexpr int64_t kBlockBytes = kInt4BlockBytes;
  static constexpr int kEmpty = 0;
  static void search(Found& found, const __m256 (&x)[kQuantBlock]) { search4<Format>(found, x); }
  static __m256 row_scale(__m256 /*greatest*/, __m256 widest) {
    return _mm256_div_ps(_mm256_mul_ps(widest, _mm256_set1_ps(kHeadroom)),
                         _mm256_set1_ps(Format::kTop * kGreatestScale));
  }
  static void store(uint8_t* block, int64_t half, const Found& found) {
    store_bytes(block + half, found.code);
    store_bytes(block + kPackedRows + half, found.zero);
    store_nibbles(block + 2 * kPackedRows + 4 * half, found.q);
  }
};

/// d of eight rows; zero for rows that count as zeros.
template <class Format>
__m256 row_scales(const Rows& rows, int64_t k_len) {
  __m256 greatest = _mm256_setzero_ps();
  __m256 widest = _mm256_setzero_ps();
  for (int64_t k = 0; k < k_len; k += kQuantBlock) {
    __m256 x[kQuantBlock];
    load_block(x, rows, k);
    __m256 low = _mm256_setzero_ps();
    __m256 high = _mm256_setzero_ps();
    for (const __m256 value : x) {
      low = _mm256_min_ps(value, low);
      high = _mm256_max_ps(value, high);
    }
    const __m256 magnitude = _mm256_max_ps(high, _mm256_sub_ps(_mm256_setzero_ps(), low));
    greatest = _mm256_max_ps(magnitude, greatest);
    widest = _mm256_max_ps(_mm256_sub_ps(high, low), widest);
  }
  const __m256 counts = _mm256_cmp_ps(greatest, _mm256_set1_ps(kLeastRow), _CMP_GE_OQ);
  return _mm256_and_ps(Format::row_scale(greatest, widest), counts);
}

/// Rows `half` to half + 8 of a group; lanes past n are rows of zeros.
template <class Format>
void pack_half(uint8_t* group, int64_t half, const float* src, int64_t n, int64_t k_len) {
  Rows rows;
  for (int64_t j = 0; j < kLanes; ++j) rows.at[j] = src + (j < n ? j * k_len : 0);
  const __m256 present = _mm256_castsi256_ps(first_lanes(n < kLanes ? n : kLanes));
  const __m256 d = _mm256_and_ps(row_scales<Format>(rows, k_len), present);
  const __m256 is_used = _mm256_cmp_ps(d, _mm256_setzero_ps(), _CMP_GT_OQ);
  const __m256 inverse = _mm256_and_ps(_mm256_div_ps(_mm256_set1_ps(1.0F), d), is_used);
  const __m256i used = _mm256_castps_si256(is_used);
  _mm256_storeu_ps(reinterpret_cast<float*>(group) + half, d);

  uint8_t* block = group + kPackedRows * 4;
  for (int64_t k = 0; k < k_len; k += kQuantBlock, block += Format::kBlockBytes) {
    __m256 x[kQuantBlock];
    load_block(x, rows, k);
    for (__m256& value : x) value = _mm256_mul_ps(value, inverse);
    Found found;
    Format::search(found, x);
    found.code = _mm256_and_si256(found.code, used);
    found.zero = _mm256_and_si256(found.zero, used);
    const __m256i empty = _mm256_andnot_si256(used, _mm256_set1_epi32(Format::kEmpty));
    for (__m256i& q : found.q) q = _mm256_or_si256(_mm256_and_si256(q, used), empty);
    Format::store(block, half, found);
  }
}

template <class Format>
void quantize_rows(void* packed, const float* src, int64_t row0, int64_t n, int64_t k_len) {
  const int64_t group_bytes = kPackedRows * 4 + k_len / kQuantBlock * Format::kBlockBytes;
  uint8_t* group = static_cast<uint8_t*>(packed) + row0 / kPackedRows * group_bytes;
  for (int64_t r = 0; r < n; r += kPackedRows, group += group_bytes) {
    pack_half<Format>(group, 0, src + r * k_len, n - r, k_len);
    const int64_t rest = n - r - kLanes;
    if (rest > 0) {
      pack_half<Format>(group, kLanes, src + (r + kLanes) * k_len, rest, k_len);
    } else {
      pack_half<Format>(group, kLanes, src + r * k_len, 0, k_len);  // all lanes are zeros
    }
  }
}

}  // namespace

void quantize_rows_int8(void* packed, const float* src, int64_t row0, int64_t n, int64_t /*n_rows*/,
                        int64_t k_len) {
  quantize_rows<PackInt8>(packed, src, row0, n, k_len);
}

void quantize_rows_int4(void* packed, const float* src, int64_t row0, int64_t n, int64_t /*n_rows*/,
                        int64_t k_len) {
  quantize_rows<PackNibbles<Int4>>(packed, src, row0, n, k_len);
}

void quantize_rows_int4q(void* packed, const float* src, int64_t row0, int64_t n,
                         int64_t /*n_rows*/, int64_t k_len) {
  quantize_rows<PackNibbles<Int4q>>(packed, src, row0, n, k_len);
}

void quantize_rows_int6(void* packed, const float* src, int64_t row0, int64_t n, int64_t /*n_rows*/,
                        int64_t k_len) {
  quantize_rows<PackInt6>(packed, src, row0, n, k_len);
}

}  // namespace dovetail::kernels::avx2
