// The AVX-512 + VNNI variants. Contracts are in kernels/OP.hpp; for ops that are missing here the
// table takes those of AVX2.
#pragma once

#include <kernels/attend.hpp>
#include <kernels/linear.hpp>
#include <kernels/linear_gguf.hpp>
#include <kernels/linear_quantized.hpp>
#include <kernels/pointwise.hpp>
#include <kernels/rms_norm.hpp>
#include <kernels/rope.hpp>
#include <kernels/softmax.hpp>

namespace dovetail::kernels::avx512 {

LinearF32Fn linear_f32;
LinearF32Fn linear_add_f32;
LinearBf16Fn linear_bf16;
LinearBf16Fn linear_add_bf16;
LinearF16Fn linear_f16;
LinearF16Fn linear_add_f16;
QuantizeActivationsFn quantize_activations;
LinearQuantizedFn linear_int8;
LinearQuantizedFn linear_add_int8;
LinearQuantizedFn linear_int4;
LinearQuantizedFn linear_add_int4;
LinearQuantizedFn linear_int4q;
LinearQuantizedFn linear_add_int4q;
LinearQuantizedFn linear_int6;
LinearQuantizedFn linear_add_int6;
LinearQuantizedFn linear_q4_0;
LinearQuantizedFn linear_add_q4_0;
LinearQuantizedFn linear_q8_0;
LinearQuantizedFn linear_add_q8_0;
LinearQuantizedFn linear_q4_k;
LinearQuantizedFn linear_add_q4_k;
LinearQuantizedFn linear_q6_k;
LinearQuantizedFn linear_add_q6_k;
AttendF32Fn attend_f32;
AttendBf16Fn attend_bf16;
AttendInt8Fn attend_int8;
AttendMergeFn attend_merge;
RmsNormFn rms_norm;
RopeHalfSplitFn rope_half_split;
BinaryFn silu_mul;
UnaryFn exp;
UnaryFn silu;
UnaryFn gelu_tanh;
SoftmaxFn softmax;

}  // namespace dovetail::kernels::avx512
