// rope_half_split for AVX2; contract in kernels/rope.hpp, oracle in kernels/ref/rope.cpp.
// Bound by memory: one read of x, one write of out; a token's cosines stay in L1 for all its heads.
// No FMA: products and sums are rounded as in the oracle.
// Built with -mavx2 -mfma: C headers and intrinsics only (a test finds no weak symbols here).
#include <string.h>

#include "kernels/cpu/avx2.hpp"
#include "kernels/cpu/avx2_math.hpp"

namespace dovetail::kernels::avx2 {
namespace {

void rotate_head(float* out, const float* x, const float* cos, const float* sin, int64_t half_len) {
  for (int64_t i = 0; i < half_len; i += kLanes) {
    const int64_t n = half_len - i < kLanes ? half_len - i : kLanes;
    const __m256 c = load_first(cos + i, n);
    const __m256 s = load_first(sin + i, n);
    const __m256 first = load_first(x + i, n);
    const __m256 second = load_first(x + half_len + i, n);
    store_first(out + i, _mm256_sub_ps(_mm256_mul_ps(first, c), _mm256_mul_ps(second, s)), n);
    store_first(out + half_len + i,
                _mm256_add_ps(_mm256_mul_ps(second, c), _mm256_mul_ps(first, s)), n);
  }
}

}  // namespace

void rope_half_split(float* out, int64_t out_stride, const float* x, int64_t x_stride,
                     const float* cos, const float* sin, int64_t n_tokens, int64_t n_heads,
                     int64_t head_dim, int64_t half_len) {
  const int64_t n_kept = head_dim - 2 * half_len;
  for (int64_t t = 0; t < n_tokens; ++t) {
    for (int64_t h = 0; h < n_heads; ++h) {
      const float* in = x + t * x_stride + h * head_dim;
      float* to = out + t * out_stride + h * head_dim;
      rotate_head(to, in, cos + t * half_len, sin + t * half_len, half_len);
      if (n_kept > 0 && to != in) {
        memcpy(to + 2 * half_len, in + 2 * half_len, static_cast<size_t>(n_kept) * sizeof(float));
      }
    }
  }
}

}  // namespace dovetail::kernels::avx2
