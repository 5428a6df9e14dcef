// exp, silu, silu_mul and gelu_tanh for any machine; contract in kernels/pointwise.hpp, oracle in
// kernels/ref/pointwise.cpp. Bound by arithmetic: about 25 operations an element, no branch, so
// that a compiler with SSE2 or NEON does four at a time.
#include "kernels/cpu/portable.hpp"
#include "kernels/cpu/portable_math.hpp"

namespace dovetail::kernels::portable {

void silu_mul(float* out, const float* a, const float* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = silu_of(a[i]) * b[i];
}

void exp(float* out, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = exp_of(x[i]);
}

void silu(float* out, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = silu_of(x[i]);
}

void gelu_tanh(float* out, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    out[i] = x[i] / (1.0F + exp_of(x[i] * (kGeluSlope + kGeluCubic * (x[i] * x[i]))));
}

}  // namespace dovetail::kernels::portable
