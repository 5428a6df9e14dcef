// Rotary position embedding: the table of a step, and its application to heads.
#pragma once

#include <cstdint>

namespace dovetail::kernels {

/// Cosines and sines of a step's positions, once for all layers and heads:
///   cos[t, i] = cos(float(positions[t]) * inv_freq[i]) * attention_factor, and sin[t, i] alike
///
/// shapes    cos, sin [n_tokens, half_len], dense; positions [n_tokens]; inv_freq [half_len].
/// numerics  the angle is a float product, as in transformers; its cosine and sine are correctly
///           rounded (but for about one value in 2^28), then multiplied by attention_factor.
/// threads   reentrant; allocates nothing.
/// errors    none. n_tokens == 0 or half_len == 0 does nothing.
/// source    Su et al. 2021, arXiv:2104.09864; attention_factor: YaRN, arXiv:2309.00071.
using RopeTableFn = void(float* cos, float* sin, const int32_t* positions, const float* inv_freq,
                         int64_t n_tokens, int64_t half_len, float attention_factor);

/// Rotates the first 2 * half_len elements of every head, element i against i + half_len:
///   out[i]            = x[i]            * cos[t, i] - x[i + half_len] * sin[t, i]
///   out[i + half_len] = x[i + half_len] * cos[t, i] + x[i]            * sin[t, i]
/// The rest of the head is copied.
///
/// shapes    x, out [n_tokens, n_heads, head_dim], token t at x + t * x_stride, out + t *
///           out_stride, heads dense; cos, sin [n_tokens, half_len] from rope_table. 2 * half_len
///           <= head_dim. out may be x with the same stride. Strides count elements.
/// numerics  products and sums rounded one by one: every variant gives the bits of kernels/ref.
/// threads   reentrant; allocates nothing, reads no globals.
/// errors    none. n_tokens == 0 or n_heads == 0 does nothing.
using RopeHalfSplitFn = void(float* out, int64_t out_stride, const float* x, int64_t x_stride,
                             const float* cos, const float* sin, int64_t n_tokens, int64_t n_heads,
                             int64_t head_dim, int64_t half_len);

namespace ref {
RopeTableFn rope_table;
RopeHalfSplitFn rope_half_split;
}  // namespace ref

}  // namespace dovetail::kernels
