// softmax for AVX-512: that of softmax_rows.hpp. Built with -mavx512{f,bw,vl}: C headers and intrinsics only (a
// test finds no weak symbols here).
#include "kernels/cpu/avx512.hpp"
#include "kernels/cpu/avx512_math.hpp"
#include "kernels/cpu/softmax_rows.hpp"

namespace dovetail::kernels::avx512 {

void softmax(float* out, const float* x, int64_t n_rows, int64_t row_len) {
  softmax_rows<Vectors>(out, x, n_rows, row_len);
}

}  // namespace dovetail::kernels::avx512
