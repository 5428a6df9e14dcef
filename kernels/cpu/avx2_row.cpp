// The AVX2 row of the table. Built without -mavx2: it runs on every x86-64.
#include "kernels/cpu/avx2_row.hpp"

#include <cpuid.h>

#include "kernels/cpu/avx2.hpp"

namespace dovetail::kernels {
namespace {

constexpr CpuKernels kRow = {
    .name = "avx2",
    .linear_f32 = avx2::linear_f32,
    .linear_add_f32 = avx2::linear_add_f32,
    .linear_bf16 = avx2::linear_bf16,
    .linear_add_bf16 = avx2::linear_add_bf16,
    .linear_f16 = avx2::linear_f16,
    .linear_add_f16 = avx2::linear_add_f16,
    .quantize_activations = avx2::quantize_activations,
    .linear_int8 = avx2::linear_int8,
    .linear_add_int8 = avx2::linear_add_int8,
    .linear_int4 = avx2::linear_int4,
    .linear_add_int4 = avx2::linear_add_int4,
    .linear_int4q = avx2::linear_int4q,
    .linear_add_int4q = avx2::linear_add_int4q,
    .linear_int6 = avx2::linear_int6,
    .linear_add_int6 = avx2::linear_add_int6,
    .linear_q4_0 = avx2::linear_q4_0,
    .linear_add_q4_0 = avx2::linear_add_q4_0,
    .linear_q8_0 = avx2::linear_q8_0,
    .linear_add_q8_0 = avx2::linear_add_q8_0,
    .linear_q4_k = avx2::linear_q4_k,
    .linear_add_q4_k = avx2::linear_add_q4_k,
    .linear_q6_k = avx2::linear_q6_k,
    .linear_add_q6_k = avx2::linear_add_q6_k,
    .quantize_rows_int8 = avx2::quantize_rows_int8,
    .quantize_rows_int4 = avx2::quantize_rows_int4,
    .quantize_rows_int4q = avx2::quantize_rows_int4q,
    .quantize_rows_int6 = avx2::quantize_rows_int6,
    .unpack_row_int8 = ref::unpack_row_int8,
    .unpack_row_int4 = ref::unpack_row_int4,
    .unpack_row_int4q = ref::unpack_row_int4q,
    .unpack_row_int6 = ref::unpack_row_int6,
    .attend_f32 = avx2::attend_f32,
    .attend_bf16 = avx2::attend_bf16,
    .attend_int8 = avx2::attend_int8,
    .attend_merge = avx2::attend_merge,
    .cache_write_f32 = ref::cache_write_f32,
    .cache_write_bf16 = ref::cache_write_bf16,
    .cache_write_int8 = avx2::cache_write_int8,
    .rms_norm = avx2::rms_norm,
    .rope_table = ref::rope_table,
    .rope_half_split = avx2::rope_half_split,
    .add = ref::add,
    .mul = ref::mul,
    .silu_mul = avx2::silu_mul,
    .exp = avx2::exp,
    .silu = avx2::silu,
    .gelu_tanh = avx2::gelu_tanh,
    .softmax = avx2::softmax,
    .argmax = ref::argmax,
    .gather_rows_f32 = ref::gather_rows_f32,
    .gather_rows_bf16 = ref::gather_rows_bf16,
    .gather_rows_f16 = ref::gather_rows_f16,
    .bf16_to_f32 = ref::bf16_to_f32,
    .f32_to_bf16 = avx2::f32_to_bf16,
    .f16_to_f32 = avx2::f16_to_f32,
    .read_stream = avx2::read_stream,
    .read_stream_ahead = avx2::read_stream_ahead,
};

}  // namespace

const CpuKernels* avx2_row() {
  return &kRow;
}

bool machine_has_avx2() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  // The builtin also checks that the system saves the wide registers; no compiler here knows
  // "f16c".
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

}  // namespace dovetail::kernels
