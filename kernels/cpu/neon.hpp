// The NEON (ARMv8-A Advanced SIMD) variants. Contracts are in kernels/OP.hpp; ops that are missing
// here cost too little to have a variant, and the table takes kernels/ref for them.
#pragma once

#include <kernels/attend.hpp>
#include <kernels/convert.hpp>
#include <kernels/kv_cache.hpp>
#include <kernels/linear.hpp>
#include <kernels/linear_gguf.hpp>
#include <kernels/linear_quantized.hpp>
#include <kernels/pointwise.hpp>
#include <kernels/read_stream.hpp>
#include <kernels/rms_norm.hpp>
#include <kernels/rope.hpp>
#include <kernels/softmax.hpp>
#include <kernels/weight_formats.hpp>

namespace dovetail::kernels::neon {

LinearF32Fn linear_f32;
LinearF32Fn linear_add_f32;
LinearBf16Fn linear_bf16;
LinearBf16Fn linear_add_bf16;
LinearF16Fn linear_f16;
LinearF16Fn linear_add_f16;
QuantizeActivationsFn quantize_activations;
QuantizeRowsFn quantize_rows_int8;
QuantizeRowsFn quantize_rows_int4;
QuantizeRowsFn quantize_rows_int4q;
QuantizeRowsFn quantize_rows_int6;
AttendF32Fn attend_f32;
AttendBf16Fn attend_bf16;
AttendInt8Fn attend_int8;
AttendMergeFn attend_merge;
CacheWriteInt8Fn cache_write_int8;
RmsNormFn rms_norm;
RopeHalfSplitFn rope_half_split;
BinaryFn silu_mul;
UnaryFn exp;
UnaryFn silu;
UnaryFn gelu_tanh;
SoftmaxFn softmax;
F32ToBf16Fn f32_to_bf16;
F16ToF32Fn f16_to_f32;
ReadStreamFn read_stream;
ReadStreamFn read_stream_ahead;

/// With the dot products of ARMv8.2.
namespace dotprod {
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
}  // namespace dotprod

}  // namespace dovetail::kernels::neon
