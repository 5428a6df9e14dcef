// softmax for any machine; contract in kernels/softmax.hpp, oracle in kernels/ref/softmax.cpp.
// Bound by arithmetic: the exponential.
#include <cmath>

#include "kernels/cpu/portable.hpp"
#include "kernels/cpu/portable_math.hpp"

namespace dovetail::kernels::portable {

void softmax(float* out, const float* x, int64_t n_rows, int64_t row_len) {
  for (int64_t r = 0; r < n_rows; ++r) {
    const float* in = x + r * row_len;
    float* to = out + r * row_len;

    float greatest = -INFINITY;
    for (int64_t i = 0; i < row_len; ++i) greatest = in[i] > greatest ? in[i] : greatest;
    for (int64_t i = 0; i < row_len; ++i) to[i] = exp_of(in[i] - greatest);
    const float total = sum(to, row_len);
    for (int64_t i = 0; i < row_len; ++i) to[i] /= total;
  }
}

}  // namespace dovetail::kernels::portable
