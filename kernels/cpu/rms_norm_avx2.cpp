// rms_norm for AVX2 + FMA; contract in kernels/rms_norm.hpp, oracle in kernels/ref/rms_norm.cpp.
// Bound by memory: one read of x and weight, one write of out; a row's second pass hits cache.
// Built with -mavx2 -mfma: C headers and intrinsics only (a test finds no weak symbols here).
#include "kernels/cpu/avx2.hpp"
#include "kernels/cpu/avx2_math.hpp"

namespace dovetail::kernels::avx2 {
namespace {

float sum_of_squares(const float* x, int64_t n) {
  __m256 acc0 = _mm256_setzero_ps();  // two chains, so that adds overlap
  __m256 acc1 = _mm256_setzero_ps();
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    const __m256 a = load(x + i);
    const __m256 b = load(x + i + kLanes);
    acc0 = _mm256_fmadd_ps(a, a, acc0);
    acc1 = _mm256_fmadd_ps(b, b, acc1);
  }
  for (; i < n; i += kLanes) {  // tail: up to 15 elements
    const __m256 a = load_first(x + i, n - i < kLanes ? n - i : kLanes);
    acc0 = _mm256_fmadd_ps(a, a, acc0);
  }
  return reduce(_mm256_add_ps(acc0, acc1));
}

}  // namespace

void rms_norm(float* out, const float* x, const float* weight, int64_t n_rows, int64_t row_len,
              float eps, float weight_offset) {
  const __m256 offset = _mm256_set1_ps(weight_offset);
  for (int64_t r = 0; r < n_rows; ++r, x += row_len, out += row_len) {
    const float mean = sum_of_squares(x, row_len) / static_cast<float>(row_len);
    const __m256 root = _mm256_sqrt_ps(_mm256_set1_ps(mean + eps));
    const __m256 scale = _mm256_div_ps(_mm256_set1_ps(1.0F), root);
    const auto scaled = [&](__m256 value, __m256 w) {
      return _mm256_mul_ps(_mm256_mul_ps(value, scale), _mm256_add_ps(offset, w));
    };
    int64_t i = 0;
    for (; i + kLanes <= row_len; i += kLanes) {
      _mm256_storeu_ps(out + i, scaled(load(x + i), load(weight + i)));
    }
    const int64_t rest = row_len - i;
    if (rest > 0) {
      store_first(out + i, scaled(load_first(x + i, rest), load_first(weight + i, rest)), rest);
    }
  }
}

}  // namespace dovetail::kernels::avx2
