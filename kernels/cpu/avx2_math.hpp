// The arithmetic that AVX2 kernels share: loads that widen, masked tails and the reduction tree.
//
// Everything here is static and everything included is C: an ISA file must define no symbol that
// the linker could take for a file that runs on other machines (a test finds no weak symbols).
#pragma once

#include <immintrin.h>
#include <stdint.h>

#include <kernels/f16.hpp>

namespace dovetail::kernels::avx2 {

constexpr int64_t kLanes = 8;

/// All ones in the first n lanes, n in [0, 8].
static inline __m256i first_lanes(int64_t n) {
  static const int32_t kWindow[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kWindow + kLanes - n));
}

static inline __m256 widen(__m128i bf16) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bf16), 16));
}

/// Eight elements as floats.
static inline __m256 load(const float* p) {
  return _mm256_loadu_ps(p);
}
static inline __m256 load(const uint16_t* p) {
  return widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

static inline __m256 load(const int8_t* p) {
  const __m128i levels = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(levels));
}

static inline __m256 load(const F16* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

/// The first n elements, n in [0, 8], and zeros; reads nothing past them.
static inline __m256 load_first(const float* p, int64_t n) {
  return _mm256_maskload_ps(p, first_lanes(n));
}
static inline __m256 load_first(const uint16_t* p, int64_t n) {
  alignas(16) uint16_t padded[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) padded[i] = p[i];
  return widen(_mm_load_si128(reinterpret_cast<const __m128i*>(padded)));
}

static inline __m256 load_first(const int8_t* p, int64_t n) {
  int8_t padded[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) padded[i] = p[i];
  return load(padded);
}

static inline __m256 load_first(const F16* p, int64_t n) {
  alignas(16) F16 padded[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) padded[i] = p[i];
  return load(padded);
}

static inline void store_first(float* p, __m256 value, int64_t n) {
  _mm256_maskstore_ps(p, first_lanes(n), value);
}

/// The one reduction tree of every eight-lane sum, for four sums at once:
///   ((0+1)+(2+3)) + ((4+5)+(6+7))
static inline __m128 reduce4(__m256 a, __m256 b, __m256 c, __m256 d) {
  const __m256 pairs = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
  return _mm_add_ps(_mm256_castps256_ps128(pairs), _mm256_extractf128_ps(pairs, 1));
}

static inline float reduce(__m256 a) {
  return _mm_cvtss_f32(reduce4(a, a, a, a));
}

/// The greatest lane; NaN lanes may be lost.
static inline float greatest(__m256 a) {
  __m128 m = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  m = _mm_max_ps(m, _mm_movehl_ps(m, m));
  return _mm_cvtss_f32(_mm_max_ss(m, _mm_shuffle_ps(m, m, 1)));
}

/// |x| as bits: so ordered, an infinity or a NaN is above every number.
static inline __m256i magnitude_bits(__m256 x) {
  return _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7FFFFFFF));
}

/// The greatest lane of unsigned integers.
static inline uint32_t greatest_bits(__m256i a) {
  __m128i m = _mm_max_epu32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
  m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4E));
  m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xB1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(m));
}

/// The sum of the lanes of integers.
static inline int32_t total_of(__m256i v) {
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4E));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xB1));
  return _mm_cvtsi128_si32(s);
}

static inline float float_of_bits(uint32_t bits) {
  return _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(static_cast<int>(bits))));
}

constexpr uint32_t kLeastQuantized = (127U - 100U) << 23U;  // bits of 2^-100: see int8_levels.hpp
constexpr uint32_t kInfinityBits = 0x7F800000U;

/// 2^n for n in [-126, 127].
static inline __m256 power_of_two(__m256i n) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}

namespace {

/// Vectors of eight floats, as the headers want them that are written once for all widths:
/// linear_tiles.hpp, attend_tiles.hpp, row_tiles.hpp.
struct Vectors {
  using Vec = __m256;
  static constexpr int kLanes = 8;

  static Vec zero() { return _mm256_setzero_ps(); }
  static Vec all(float x) { return _mm256_set1_ps(x); }
  static Vec add(Vec a, Vec b) { return _mm256_add_ps(a, b); }
  static Vec sub(Vec a, Vec b) { return _mm256_sub_ps(a, b); }
  static Vec mul(Vec a, Vec b) { return _mm256_mul_ps(a, b); }
  static Vec div(Vec a, Vec b) { return _mm256_div_ps(a, b); }
  static Vec sqrt(Vec a) { return _mm256_sqrt_ps(a); }
  static Vec negated(Vec a) { return _mm256_xor_ps(a, _mm256_set1_ps(-0.0F)); }
  static Vec fma(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }    // a * b + c
  static Vec fnma(Vec a, Vec b, Vec c) { return _mm256_fnmadd_ps(a, b, c); }  // c - a * b
  static Vec min(Vec a, Vec b) { return _mm256_min_ps(a, b); }                // b if one is NaN
  static Vec max(Vec a, Vec b) { return _mm256_max_ps(a, b); }                // likewise
  static Vec rounded(Vec a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT); }

  /// p * 2^whole for |whole| <= 150, in two halves, so that both ends of the range come out of
  /// ordinary rounding.
  static Vec times_power_of_two(Vec p, Vec whole) {
    const __m256i n = _mm256_cvtps_epi32(whole);
    const __m256i half = _mm256_srai_epi32(n, 1);
    return _mm256_mul_ps(_mm256_mul_ps(p, power_of_two(half)),
                         power_of_two(_mm256_sub_epi32(n, half)));
  }

  /// Elements of any type as floats; load_first reads the first n, n in [0, kLanes], and gives zeros
  /// for the others.
  template <class Element>
  static Vec load(const Element* p) {
    return avx2::load(p);
  }
  template <class Element>
  static Vec load_first(const Element* p, int64_t n) {
    return avx2::load_first(p, n);
  }
  static Vec load_aligned(const float* p) { return _mm256_load_ps(p); }
  static Vec broadcast(const float* p) { return _mm256_broadcast_ss(p); }
  static void store(float* p, Vec v) { _mm256_storeu_ps(p, v); }
  static void store_first(float* p, Vec v, int64_t n) { avx2::store_first(p, v, n); }
  static void store_aligned(float* p, Vec v) { _mm256_store_ps(p, v); }

  /// The first n lanes of a and the others of b.
  static Vec first_of(Vec a, Vec b, int64_t n) {
    return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(first_lanes(n)));
  }
  static __m128 reduce4(Vec a, Vec b, Vec c, Vec d) { return avx2::reduce4(a, b, c, d); }
  static float reduce(Vec a) { return avx2::reduce(a); }
  static float greatest(Vec a) { return avx2::greatest(a); }
  static float first(Vec a) { return _mm256_cvtss_f32(a); }
};

}  // namespace
}  // namespace dovetail::kernels::avx2
