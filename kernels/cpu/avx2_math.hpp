// The arithmetic that AVX2 kernels share: loads that widen, masked tails, the reduction tree and
// the exponential.
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

static inline float float_of_bits(uint32_t bits) {
  return _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(static_cast<int>(bits))));
}

constexpr uint32_t kLeastQuantized = (127U - 100U) << 23U;  // bits of 2^-100: see int8_levels.hpp
constexpr uint32_t kInfinityBits = 0x7F800000U;

/// 2^n for n in [-126, 127].
static inline __m256 power_of_two(__m256i n) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}

/// e^x in every lane, within 2 units in the last place; the ends are those of pointwise.hpp.
///
/// x = n ln 2 + r with |r| <= ln 2 / 2, where the Taylor series to r^7 is within 0.1 ulp; 2^n is
/// applied in two halves, so that both ends of the range come out of ordinary rounding.
static inline __m256 exp8(__m256 x) {
  const __m256 highest = _mm256_set1_ps(89.0F);   // e^89 rounds to infinity
  const __m256 lowest = _mm256_set1_ps(-104.0F);  // e^-104 rounds to zero
  const __m256 ln2_high = _mm256_set1_ps(0x1.63p-1F);
  const __m256 ln2_low = _mm256_set1_ps(-0x1.bd0106p-13F);

  x = _mm256_max_ps(lowest, _mm256_min_ps(highest, x));  // NaN in the second operand passes
  const __m256 whole =
      _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(0x1.715476p+0F)), _MM_FROUND_TO_NEAREST_INT);
  const __m256 r = _mm256_fnmadd_ps(whole, ln2_low, _mm256_fnmadd_ps(whole, ln2_high, x));

  __m256 p = _mm256_set1_ps(1.0F / 5040.0F);
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F / 720.0F));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F / 120.0F));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F / 24.0F));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F / 6.0F));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.5F));
  p = _mm256_fmadd_ps(_mm256_mul_ps(p, r), r, r);
  p = _mm256_add_ps(p, _mm256_set1_ps(1.0F));

  const __m256i n = _mm256_cvtps_epi32(whole);
  const __m256i half = _mm256_srai_epi32(n, 1);
  const __m256 scaled = _mm256_mul_ps(p, power_of_two(half));
  return _mm256_mul_ps(scaled, power_of_two(_mm256_sub_epi32(n, half)));
}

}  // namespace dovetail::kernels::avx2
