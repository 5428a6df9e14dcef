// Functions of one element at a time: add, mul, exp, silu, silu_mul.
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
///
/// shapes    out, x [n]; out may be x.
/// numerics  exp: within 2 units in the last place, denormal results included; above 88.73
///           infinity, below -103.98 zero, NaN for NaN. silu: within 1e-6 relative of kernels/ref.
///           The value depends on the input and the variant, never on the place in the array.
/// threads   reentrant; allocates nothing, reads no globals.
/// errors    none. n == 0 does nothing.
using UnaryFn = void(float* out, const float* x, int64_t n);

namespace ref {
BinaryFn add;
BinaryFn mul;
BinaryFn silu_mul;
UnaryFn exp;
UnaryFn silu;
}  // namespace ref

}  // namespace dovetail::kernels
