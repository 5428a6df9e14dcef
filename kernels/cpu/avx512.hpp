// The AVX-512 + VNNI variants. Contracts are in kernels/OP.hpp; for ops that are missing here the
// table takes those of AVX2.
#pragma once

#include <kernels/linear.hpp>
#include <kernels/linear_quantized.hpp>

namespace dovetail::kernels::avx512 {

LinearF32Fn linear_f32;
LinearF32Fn linear_add_f32;
LinearBf16Fn linear_bf16;
LinearBf16Fn linear_add_bf16;
LinearF16Fn linear_f16;
LinearF16Fn linear_add_f16;
LinearQuantizedFn linear_int8;
LinearQuantizedFn linear_add_int8;
LinearQuantizedFn linear_int4;
LinearQuantizedFn linear_add_int4;
LinearQuantizedFn linear_int4q;
LinearQuantizedFn linear_add_int4q;
LinearQuantizedFn linear_int6;
LinearQuantizedFn linear_add_int6;

}  // namespace dovetail::kernels::avx512
