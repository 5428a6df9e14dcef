// exp, silu, silu_mul and gelu_tanh for AVX-512: those of pointwise_rows.hpp.
// Built with -mavx512{f,bw,vl}: C headers and intrinsics only (a test finds no weak symbols here).
#include "kernels/cpu/avx512.hpp"
#include "kernels/cpu/avx512_math.hpp"
#include "kernels/cpu/pointwise_rows.hpp"

namespace dovetail::kernels::avx512 {

void silu_mul(float* out, const float* a, const float* b, int64_t n) {
  Pointwise<Vectors>::silu_mul(out, a, b, n);
}

void exp(float* out, const float* x, int64_t n) {
  Pointwise<Vectors>::exp(out, x, n);
}

void silu(float* out, const float* x, int64_t n) {
  Pointwise<Vectors>::silu(out, x, n);
}

void gelu_tanh(float* out, const float* x, int64_t n) {
  Pointwise<Vectors>::gelu_tanh(out, x, n);
}

}  // namespace dovetail::kernels::avx512
