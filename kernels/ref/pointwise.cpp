// Oracle of pointwise.hpp.
#include <kernels/pointwise.hpp>

#include <cmath>
#include <numbers>

namespace dovetail::kernels::ref {
namespace {

float silu_of(float x) {
  return x / (1.0F + std::exp(-x));
}

}  // namespace

void add(float* out, const float* a, const float* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}

void mul(float* out, const float* a, const float* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = a[i] * b[i];
}

void silu_mul(float* out, const float* a, const float* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = silu_of(a[i]) * b[i];
}

void exp(float* out, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = std::exp(x[i]);
}

void silu(float* out, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = silu_of(x[i]);
}

void gelu_tanh(float* out, const float* x, int64_t n) {
  const double slope = std::sqrt(2.0 / std::numbers::pi);
  for (int64_t i = 0; i < n; ++i) {
    const double v = x[i];
    out[i] = static_cast<float>(v / (1.0 + std::exp(-2.0 * slope * (v + 0.044715 * v * v * v))));
  }
}

}  // namespace dovetail::kernels::ref
