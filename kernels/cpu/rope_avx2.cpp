// rope_half_split for AVX2: that of rope_rows.hpp. Built with -mavx2 -mfma: C headers and intrinsics only (a
// test finds no weak symbols here).
#include "kernels/cpu/avx2.hpp"
#include "kernels/cpu/avx2_math.hpp"
#include "kernels/cpu/rope_rows.hpp"

namespace dovetail::kernels::avx2 {

void rope_half_split(float* out, int64_t out_stride, const float* x, int64_t x_stride,
                     const float* cos, const float* sin, int64_t n_tokens, int64_t n_heads,
                     int64_t head_dim, int64_t half_len) {
  rope_half_split_rows<Vectors>(out, out_stride, x, x_stride, cos, sin, n_tokens, n_heads, head_dim,
                                half_len);
}

}  // namespace dovetail::kernels::avx2
