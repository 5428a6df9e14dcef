// f32_to_bf16 and f16_to_f32 for AVX2 + F16C; contract in kernels/convert.hpp, oracle in
// kernels/ref/convert.cpp. Bound by memory.
// Built with -mavx2 -mf16c: C headers and intrinsics only (a test finds no weak symbols here).
#include <string.h>

#include "kernels/cpu/avx2.hpp"
#include "kernels/cpu/avx2_math.hpp"

namespace dovetail::kernels::avx2 {
namespace {

__m128i round8(__m256 value) {
  const __m256i bits = _mm256_castps_si256(value);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
  const __m256i quiet_nan = _mm256_or_si256(bits, _mm256_set1_epi32(0x00400000));
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
  const __m256i chosen = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet_nan, is_nan), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(chosen), _mm256_extracti128_si256(chosen, 1));
}

}  // namespace

void f32_to_bf16(uint16_t* out, const float* x, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), round8(load(x + i)));
  }
  if (i < n) {
    uint16_t rest[kLanes];
    _mm_storeu_si128(reinterpret_cast<__m128i*>(rest), round8(load_first(x + i, n - i)));
    memcpy(out + i, rest, static_cast<size_t>(n - i) * sizeof(uint16_t));
  }
}

void f16_to_f32(float* out, const uint16_t* x, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i));
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(bits));
  }
  if (i < n) {
    uint16_t rest[kLanes] = {};
    memcpy(rest, x + i, static_cast<size_t>(n - i) * sizeof(uint16_t));
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rest));
    store_first(out + i, _mm256_cvtph_ps(bits), n - i);
  }
}

}  // namespace dovetail::kernels::avx2
