// Oracle of softmax.hpp.
#include <kernels/softmax.hpp>

#include <cmath>

namespace dovetail::kernels::ref {

void softmax(float* out, const float* x, int64_t n_rows, int64_t row_len) {
  for (int64_t r = 0; r < n_rows; ++r) {
    const float* in = x + r * row_len;
    float* to = out + r * row_len;

    float greatest = -INFINITY;
    for (int64_t i = 0; i < row_len; ++i) greatest = in[i] > greatest ? in[i] : greatest;

    float sum = 0.0F;
    for (int64_t i = 0; i < row_len; ++i) {
      to[i] = std::exp(in[i] - greatest);
      sum += to[i];
    }
    for (int64_t i = 0; i < row_len; ++i) to[i] /= sum;
  }
}

}  // namespace dovetail::kernels::ref
