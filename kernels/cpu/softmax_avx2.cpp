// softmax for AVX2 + FMA: that of softmax_rows.hpp. Built with -mavx2 -mfma: C headers and intrinsics only (a
// test finds no weak symbols here).
#include "kernels/cpu/avx2.hpp"
#include "kernels/cpu/avx2_math.hpp"
#include "kernels/cpu/softmax_rows.hpp"

namespace dovetail::kernels::avx2 {

void softmax(float* out, const float* x, int64_t n_rows, int64_t row_len) {
  softmax_rows<Vectors>(out, x, n_rows, row_len);
}

}  // namespace dovetail::kernels::avx2
