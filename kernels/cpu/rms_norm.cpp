// rms_norm for any machine; contract in kernels/rms_norm.hpp, oracle in kernels/ref/rms_norm.cpp.
// Bound by memory: one read of x and weight, one write of out; a row's second pass hits cache.
#include <cmath>

#include "kernels/cpu/portable.hpp"
#include "kernels/cpu/portable_math.hpp"

namespace dovetail::kernels::portable {

void rms_norm(float* out, const float* x, const float* weight, int64_t n_rows, int64_t row_len,
              float eps, float weight_offset) {
  for (int64_t r = 0; r < n_rows; ++r) {
    const float* in = x + r * row_len;
    float* to = out + r * row_len;
    const float mean = dot(in, in, row_len) / static_cast<float>(row_len);
    const float scale = 1.0F / std::sqrt(mean + eps);
    for (int64_t i = 0; i < row_len; ++i) to[i] = (in[i] * scale) * (weight_offset + weight[i]);
  }
}

}  // namespace dovetail::kernels::portable
