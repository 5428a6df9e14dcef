// Functions of one element at a time: add, mul, exp, silu, silu_mul, gelu_tanh.
#pragma once

#include <cstdint>

namespace dovetail::kernels {

/// add: out[i] = a[i] + b[i].  mul: out[i] = a[i] * b[i].  silu_mul: out[i] = silu(a[i]) * b[i].
///
/// shapes    out, a, b [n]; out may be a or b.
/// numerics  add and mul: the bits of kernels/ref. silu_mul: silu as below, then one product. The
///           value depends on the two inputs and the variant, never on the place in the array.
/// threads   reentrant; allocates nothing, reads no globals.
/// errors    none. n == 0 does nothing.
using BinaryFn = void(float* out, const float* a, const float* b, int64_t n);

/// exp: out[i] = e^x[i].  silu: out[i] = x[i] / (1 + e^-x[i]).
/// gelu_tanh: out[i] = x[i] / (1 + e^-2u) with u = sqrt(2 / pi) * (x[i] + 0.044715 * x[i]^3), which is
/// x[i] / 2 * (1 + tanh(u)).
///
/// shapes    out, x [n]; out may be x.
/// numerics  exp: within 2 units in the last place, denormal results included; above 88.73
///           infinity, below -103.98 zero, NaN for NaN. silu: within 1e-6 relative of kernels/ref.
///           gelu_tanh: within 1e-6 * |x[i]| of kernels/ref.
///           The value depends on the input and the variant, never on the place in the array.
/// threads   reentrant; allocates nothing, reads no globals.
/// errors    none. n == 0 does nothing.
/// source    gelu_tanh: Hendrycks and Gimpel 2016, arXiv:1606.08415.
using UnaryFn = void(float* out, const float* x, int64_t n);

/// Of gelu_tanh: -2 * sqrt(2 / pi), and 0.044715 times it.
constexpr float kGeluSlope = -1.5957691216057308F, kGeluCubic = -0.07135481627260025F;

namespace ref {
BinaryFn add;
BinaryFn mul;
BinaryFn silu_mul;
UnaryFn exp;
UnaryFn silu;
UnaryFn gelu_tanh;
}  // namespace ref

}  // namespace dovetail::kernels
