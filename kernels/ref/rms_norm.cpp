// Oracle of rms_norm.hpp.
#include <kernels/rms_norm.hpp>

#include <cmath>

namespace dovetail::kernels::ref {

void rms_norm(float* out, const float* x, const float* weight, int64_t n_rows, int64_t row_len,
              float eps, float weight_offset) {
  for (int64_t r = 0; r < n_rows; ++r) {
    const float* in = x + r * row_len;
    float sum = 0.0F;
    for (int64_t i = 0; i < row_len; ++i) sum += in[i] * in[i];
    const float scale = 1.0F / std::sqrt(sum / static_cast<float>(row_len) + eps);
    for (int64_t i = 0; i < row_len; ++i) {
      out[r * row_len + i] = (in[i] * scale) * (weight_offset + weight[i]);
    }
  }
}

}  // namespace dovetail::kernels::ref
