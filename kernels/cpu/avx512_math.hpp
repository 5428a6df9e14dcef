// The arithmetic that AVX-512 kernels share: avx2_math.hpp in vectors of sixteen floats. A sum's lanes i
// and i + 8 are added first, then AVX2's tree; so its bits are not those of AVX2.
// Everything here is static and everything included is C, as in avx2_math.hpp.
#pragma once

#include "kernels/cpu/avx2_math.hpp"

namespace dovetail::kernels::avx512 {

constexpr int64_t kLanes = 16;

static inline __mmask16 first_lanes(int64_t n) {
  return static_cast<__mmask16>((1U << static_cast<unsigned>(n)) - 1U);
}

/// 32 bytes as they are.
static inline __m256i load_half(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}

static inline __m512 widen(__m256i bf16) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bf16), 16));
}
static inline __m512 widen(__m128i levels) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(levels));
}

namespace {

/// As avx2::Vectors.
struct Vectors {
  using Vec = __m512;
  static constexpr int kLanes = 16;

  static Vec zero() { return _mm512_setzero_ps(); }
  static Vec all(float x) { return _mm512_set1_ps(x); }
  static Vec add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
  static Vec sub(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
  static Vec mul(Vec a, Vec b) { return _mm512_mul_ps(a, b); }
  static Vec div(Vec a, Vec b) { return _mm512_div_ps(a, b); }
  static Vec sqrt(Vec a) { return _mm512_sqrt_ps(a); }
  static Vec negated(Vec a) {
    return _mm512_castsi512_ps(
        _mm512_xor_si512(_mm512_castps_si512(a), _mm512_set1_epi32(INT32_MIN)));
  }
  static Vec fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
  static Vec fnma(Vec a, Vec b, Vec c) { return _mm512_fnmadd_ps(a, b, c); }
  static Vec min(Vec a, Vec b) { return _mm512_min_ps(a, b); }
  static Vec max(Vec a, Vec b) { return _mm512_max_ps(a, b); }
  static Vec rounded(Vec a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT); }
  static Vec times_power_of_two(Vec p, Vec whole) { return _mm512_scalef_ps(p, whole); }

  static Vec load(const float* p) { return _mm512_loadu_ps(p); }
  static Vec load(const uint16_t* p) { return widen(load_half(p)); }
  static Vec load(const int8_t* p) {
    return widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Vec load(const F16* p) { return _mm512_cvtph_ps(load_half(p)); }
  static Vec load_first(const float* p, int64_t n) {
    return _mm512_maskz_loadu_ps(first_lanes(n), p);
  }
  static Vec load_first(const uint16_t* p, int64_t n) {
    return widen(_mm256_maskz_loadu_epi16(first_lanes(n), p));
  }
  static Vec load_first(const int8_t* p, int64_t n) {
    return widen(_mm_maskz_loadu_epi8(first_lanes(n), p));
  }
  static Vec load_first(const F16* p, int64_t n) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first_lanes(n), p));
  }
  static Vec load_aligned(const float* p) { return _mm512_load_ps(p); }
  static Vec broadcast(const float* p) { return _mm512_set1_ps(*p); }
  static void store(float* p, Vec v) { _mm512_storeu_ps(p, v); }
  static void store_first(float* p, Vec v, int64_t n) {
    _mm512_mask_storeu_ps(p, first_lanes(n), v);
  }
  static void store_aligned(float* p, Vec v) { _mm512_store_ps(p, v); }

  static Vec first_of(Vec a, Vec b, int64_t n) {
    return _mm512_mask_blend_ps(first_lanes(n), b, a);
  }
  static __m128 reduce4(Vec a, Vec b, Vec c, Vec d) {
    return avx2::reduce4(folded(a), folded(b), folded(c), folded(d));
  }
  static float reduce(Vec a) { return avx2::reduce(folded(a)); }
  static float greatest(Vec a) { return avx2::greatest(_mm256_max_ps(lower(a), upper(a))); }
  static float first(Vec a) { return _mm512_cvtss_f32(a); }

 private:
  static __m256 lower(Vec v) { return _mm512_castps512_ps256(v); }
  static __m256 upper(Vec v) {
    return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1));
  }
  static __m256 folded(Vec v) { return _mm256_add_ps(lower(v), upper(v)); }
};

}  // namespace
}  // namespace dovetail::kernels::avx512
