// Linear layers: activations times the transpose of a row-major weight matrix.
#pragma once

#include <cstdint>

#include <kernels/f16.hpp>

namespace dovetail::kernels {

/// A stripe of y = x w^T: for every token t and every n in [n_begin, n_end)
///   y[t, n] = sum_k x[t, k] * w[n, k]
///
/// shapes    x [n_tokens, k_len], token t at x + t * x_stride; w [>= n_end, k_len], dense, aligned
///           to its element only; y [n_tokens, >= n_end], token t at y + t * y_stride. The stripe
///           names columns of the whole y: a lane that owns [n_begin, n_end) passes the same
///           pointers as its neighbours. y overlaps neither x nor w. Strides count elements.
/// numerics  float throughout. An output's value depends on its x row, its w row and the variant
///           alone: never on n_tokens, on the stripe or on its place in a tile. Order: eight
///           partial sums, lane l over k = l, l + 8, ... ascending (avx2 and neon fuse multiply and
///           add), then ((0+1)+(2+3)) + ((4+5)+(6+7)). `ref` adds in ascending k. Either is within
///           k_len * 2^-23 * sum_k |x[t, k] * w[n, k]| of the exact sum.
/// threads   reentrant; allocates nothing (up to 64 KiB of stack), reads no globals. Stripes of one
///           y may run at the same time.
/// errors    none. n_tokens == 0 or an empty stripe does nothing; k_len == 0 gives zeros.
using LinearF32Fn = void(float* y, int64_t y_stride, const float* x, int64_t x_stride,
                         const float* w, int64_t n_tokens, int64_t k_len, int64_t n_begin,
                         int64_t n_end);

/// The same with bfloat16 weights, widened (exactly) as they are read.
using LinearBf16Fn = void(float* y, int64_t y_stride, const float* x, int64_t x_stride,
                          const uint16_t* w, int64_t n_tokens, int64_t k_len, int64_t n_begin,
                          int64_t n_end);

/// The same with weights of half precision, widened (exactly) as they are read.
using LinearF16Fn = void(float* y, int64_t y_stride, const float* x, int64_t x_stride, const F16* w,
                         int64_t n_tokens, int64_t k_len, int64_t n_begin, int64_t n_end);

// linear_add_* have the same types and add the finished sum to y, with one rounding: y = y + sum.
// For the residual stream, and for a bias (fill y with it first).
namespace ref {
LinearF32Fn linear_f32;
LinearF32Fn linear_add_f32;
LinearBf16Fn linear_bf16;
LinearBf16Fn linear_add_bf16;
LinearF16Fn linear_f16;
LinearF16Fn linear_add_f16;
}  // namespace ref

}  // namespace dovetail::kernels
