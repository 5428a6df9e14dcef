// softmax for AVX2 + FMA; contract in kernels/softmax.hpp, oracle in kernels/ref/softmax.cpp.
// Bound by arithmetic: the exponential. Tails are masked, and their missing lanes weigh nothing.
// Built with -mavx2 -mfma: C headers and intrinsics only (a test finds no weak symbols here).
#include <math.h>

#include "kernels/cpu/avx2.hpp"
#include "kernels/cpu/avx2_math.hpp"

namespace dovetail::kernels::avx2 {
namespace {

float greatest_of(const float* x, int64_t n) {
  __m256 best = _mm256_set1_ps(-INFINITY);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) best = _mm256_max_ps(load(x + i), best);  // NaN loses
  if (i < n) {
    const __m256 mask = _mm256_castsi256_ps(first_lanes(n - i));
    best = _mm256_blendv_ps(best, _mm256_max_ps(load_first(x + i, n - i), best), mask);
  }
  return greatest(best);
}

void softmax_row(float* out, const float* x, int64_t n) {
  const __m256 top = _mm256_set1_ps(greatest_of(x, n));
  __m256 acc = _mm256_setzero_ps();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const __m256 p = exp8(_mm256_sub_ps(load(x + i), top));
    _mm256_storeu_ps(out + i, p);
    acc = _mm256_add_ps(acc, p);
  }
  if (i < n) {
    const __m256 mask = _mm256_castsi256_ps(first_lanes(n - i));
    const __m256 p = exp8(_mm256_sub_ps(load_first(x + i, n - i), top));
    store_first(out + i, p, n - i);
    acc = _mm256_add_ps(acc, _mm256_and_ps(p, mask));
  }

  const __m256 total = _mm256_set1_ps(reduce(acc));
  for (i = 0; i + kLanes <= n; i += kLanes) {
    _mm256_storeu_ps(out + i, _mm256_div_ps(load(out + i), total));
  }
  if (i < n) store_first(out + i, _mm256_div_ps(load_first(out + i, n - i), total), n - i);
}

}  // namespace

void softmax(float* out, const float* x, int64_t n_rows, int64_t row_len) {
  for (int64_t r = 0; r < n_rows; ++r) softmax_row(out + r * row_len, x + r * row_len, row_len);
}

}  // namespace dovetail::kernels::avx2
