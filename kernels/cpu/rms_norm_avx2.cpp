// rms_norm for AVX2 + FMA: that of rms_norm_rows.hpp. Built with -mavx2 -mfma: C headers and intrinsics only (a
// test finds no weak symbols here).
#include "kernels/cpu/avx2.hpp"
#include "kernels/cpu/avx2_math.hpp"
#include "kernels/cpu/rms_norm_rows.hpp"

namespace dovetail::kernels::avx2 {

void rms_norm(float* out, const float* x, const float* weight, int64_t n_rows, int64_t row_len,
              float eps, float weight_offset) {
  rms_norm_rows<Vectors>(out, x, weight, n_rows, row_len, eps, weight_offset);
}

}  // namespace dovetail::kernels::avx2
