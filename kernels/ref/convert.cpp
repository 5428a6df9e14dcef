// Oracle of convert.hpp.
#include <kernels/bf16.hpp>
#include <kernels/convert.hpp>

namespace dovetail::kernels::ref {

void bf16_to_f32(float* out, const uint16_t* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = bf16_to_float(x[i]);
}

void f32_to_bf16(uint16_t* out, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = float_to_bf16(x[i]);
}

void f16_to_f32(float* out, const uint16_t* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = f16_to_float(x[i]);
}

}  // namespace dovetail::kernels::ref
