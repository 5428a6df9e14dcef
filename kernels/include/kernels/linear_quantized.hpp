// Linear layers over quantised weights: activations in int8 or int16 times the transpose of a packed matrix.
#pragma once

#include <cstdint>

#include <kernels/weight_formats.hpp>

namespace dovetail::kernels {

/// The activations of a block are quantised twice with one scale: to 8 bits for weights of 4 to 6,
/// whose own error is greater, and to 16 bits, in steps kFineSteps times as small, for those of 8.
inline constexpr int kFineSteps = 128;
inline constexpr float kFineStep = 1.0F / kFineSteps;

/// Bytes of one row of quantised activations, a multiple of 64:
///   int8 q[k_len]; int16 q16[k_len]; float scale[k_len / 32];
///   int32 sum[k_len / 32] (of the block's q); zeros to the end
///
/// errors    none: k_len is a multiple of kQuantBlock.
int64_t quantized_row_bytes(int64_t k_len);

/// Quantises activations, once for all products that read them: per block of kQuantBlock
///   scale = max |x| / 127, q = t to the nearest, q16 = kFineSteps * t to the nearest
/// with t = x * (127 / max |x|), ties to even.
///
/// shapes    x [n_tokens, k_len], token t at x + t * x_stride elements; token t's row at
///           xq + t * quantized_row_bytes(k_len), xq aligned to 4 bytes (64 is faster).
/// numerics  A block with an infinity or a NaN keeps that as its scale with q = q16 = 0, so that every
///           output that reads it is NaN. A block whose max |x| is below 2^-100 is all zeros. Every
///           variant gives the bytes of kernels/ref.
/// threads   reentrant; allocates nothing, reads no globals.
/// errors    none. n_tokens == 0 does nothing.
using QuantizeActivationsFn = void(void* xq, const float* x, int64_t x_stride, int64_t n_tokens,
                                   int64_t k_len);

/// A stripe of y = x w^T: for every token t and every n in [n_begin, n_end)
///   y[t, n] = d[n] * sum_b (s[n, b] * scale[t, b]) * (sum_{k in b} v[n, k] * q[t, k])
/// with w[n, k] = d[n] * s[n, b] * v[n, k] as weight_formats.hpp has it. With int8 weights q16 is in the
/// place of q, and the sum over b is multiplied with kFineStep, which is exact.
///
/// shapes    xq as above, [n_tokens, k_len]; packed [n_rows, k_len]; y [n_tokens, >= n_end], token
///           t at y + t * y_stride elements. n_begin is a multiple of kPackedRows; n_end is too, or
///           is n_rows. y overlaps neither xq nor packed.
/// numerics  The inner sum is exact, in integers; the outer one is float32, in ascending b, one
///           fused multiply-add a block from zero, its factor s * scale rounded before; the product
///           with d is rounded once. Every variant gives the bits of kernels/ref, for any n_tokens,
///           any stripe and any place in a tile. Within (k_len / 32 + 4) * 2^-24 * sum |w q scale|
///           of the exact sum.
/// threads   reentrant; allocates nothing (up to 40 KiB of stack), reads no globals. Stripes of one
///           y may run at the same time.
/// errors    none. n_tokens == 0 or an empty stripe does nothing; k_len == 0 gives zeros.
using LinearQuantizedFn = void(float* y, int64_t y_stride, const void* xq, const void* packed,
                               int64_t n_tokens, int64_t n_rows, int64_t k_len, int64_t n_begin,
                               int64_t n_end);

// linear_add_* have the same type and add the finished sum to y, with one rounding: y = y + sum.
namespace ref {
QuantizeActivationsFn quantize_activations;
LinearQuantizedFn linear_int8;
LinearQuantizedFn linear_add_int8;
LinearQuantizedFn linear_int4;
LinearQuantizedFn linear_add_int4;
LinearQuantizedFn linear_int4q;
LinearQuantizedFn linear_add_int4q;
LinearQuantizedFn linear_int6;
LinearQuantizedFn linear_add_int6;
}  // namespace ref

}  // namespace dovetail::kernels
