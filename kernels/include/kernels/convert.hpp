// Rows of numbers from one storage format to another.
#pragma once

#include <cstdint>

namespace dovetail::kernels {

/// Widens bfloat16: out[i] = x[i], exact.
///
/// shapes    out, x [n]; they do not overlap.
/// threads   reentrant; allocates nothing, reads no globals.
/// errors    none. n == 0 does nothing.
using Bf16ToF32Fn = void(float* out, const uint16_t* x, int64_t n);

/// Rounds to bfloat16, nearest, ties to even; NaN stays NaN, overflow gives infinity, denormals
/// stay.
///
/// shapes    out, x [n]; they do not overlap.
/// numerics  every variant gives the bits of kernels/ref.
/// threads   reentrant; allocates nothing, reads no globals.
/// errors    none. n == 0 does nothing.
using F32ToBf16Fn = void(uint16_t* out, const float* x, int64_t n);

/// Widens IEEE half precision: out[i] = x[i], exact; a signalling NaN becomes quiet.
///
/// shapes    out, x [n]; they do not overlap.
/// numerics  every variant gives the bits of kernels/ref.
/// threads   reentrant; allocates nothing, reads no globals.
/// errors    none. n == 0 does nothing.
using F16ToF32Fn = void(float* out, const uint16_t* x, int64_t n);

namespace ref {
Bf16ToF32Fn bf16_to_f32;
F32ToBf16Fn f32_to_bf16;
F16ToF32Fn f16_to_f32;
}  // namespace ref

}  // namespace dovetail::kernels
