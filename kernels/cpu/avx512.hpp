// The AVX-512 + VNNI variants. Contracts are in kernels/OP.hpp; for ops that are missing here the
// table takes those of AVX2.
#pragma once

#include <kernels/linear_quantized.hpp>

namespace dovetail::kernels::avx512 {

LinearQuantizedFn linear_int8;
LinearQuantizedFn linear_add_int8;
LinearQuantizedFn linear_int4;
LinearQuantizedFn linear_add_int4;
LinearQuantizedFn linear_int4q;
LinearQuantizedFn linear_add_int4q;

}  // namespace dovetail::kernels::avx512
