// exp, silu, silu_mul and gelu_tanh for AVX2 + FMA; contract in kernels/pointwise.hpp, oracle in
// kernels/ref/pointwise.cpp. Bound by arithmetic: about 20 instructions for eight elements.
// Tails take the same instructions under a mask, so that a value does not depend on its place.
// Built with -mavx2 -mfma: C headers and intrinsics only (a test finds no weak symbols here).
#include "kernels/cpu/avx2.hpp"
#include "kernels/cpu/avx2_math.hpp"

namespace dovetail::kernels::avx2 {
namespace {

__m256 silu8(__m256 x) {
  const __m256 negated = _mm256_xor_ps(x, _mm256_set1_ps(-0.0F));
  return _mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1.0F), exp8(negated)));
}

__m256 gelu_tanh8(__m256 x) {
  const __m256 slope =
      _mm256_fmadd_ps(_mm256_set1_ps(kGeluCubic), _mm256_mul_ps(x, x), _mm256_set1_ps(kGeluSlope));
  return _mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1.0F), exp8(_mm256_mul_ps(x, slope))));
}

}  // namespace

void silu_mul(float* out, const float* a, const float* b, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    _mm256_storeu_ps(out + i, _mm256_mul_ps(silu8(load(a + i)), load(b + i)));
  }
  if (i < n) {
    const __m256 gated = _mm256_mul_ps(silu8(load_first(a + i, n - i)), load_first(b + i, n - i));
    store_first(out + i, gated, n - i);
  }
}

void exp(float* out, const float* x, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) _mm256_storeu_ps(out + i, exp8(load(x + i)));
  if (i < n) store_first(out + i, exp8(load_first(x + i, n - i)), n - i);
}

void silu(float* out, const float* x, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) _mm256_storeu_ps(out + i, silu8(load(x + i)));
  if (i < n) store_first(out + i, silu8(load_first(x + i, n - i)), n - i);
}

void gelu_tanh(float* out, const float* x, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) _mm256_storeu_ps(out + i, gelu_tanh8(load(x + i)));
  if (i < n) store_first(out + i, gelu_tanh8(load_first(x + i, n - i)), n - i);
}

}  // namespace dovetail::kernels::avx2
