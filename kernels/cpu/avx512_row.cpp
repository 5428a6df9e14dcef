// The AVX-512 row of the table: that of AVX2 with its products replaced. Those of quantised weights have
// the same bits in every row. Built without -mavx512*: it runs on every x86-64.
#include "kernels/cpu/avx512_row.hpp"

#include "kernels/cpu/avx2_row.hpp"
#include "kernels/cpu/avx512.hpp"

namespace dovetail::kernels {

const CpuKernels* avx512_row() {
  static const CpuKernels row = [] {
    CpuKernels made = *avx2_row();
    made.name = "avx512";
    made.linear_f32 = avx512::linear_f32;
    made.linear_add_f32 = avx512::linear_add_f32;
    made.linear_bf16 = avx512::linear_bf16;
    made.linear_add_bf16 = avx512::linear_add_bf16;
    made.linear_f16 = avx512::linear_f16;
    made.linear_add_f16 = avx512::linear_add_f16;
    made.quantize_activations = avx512::quantize_activations;
    made.linear_int8 = avx512::linear_int8;
    made.linear_add_int8 = avx512::linear_add_int8;
    made.linear_int4 = avx512::linear_int4;
    made.linear_add_int4 = avx512::linear_add_int4;
    made.linear_int4q = avx512::linear_int4q;
    made.linear_add_int4q = avx512::linear_add_int4q;
    made.linear_int6 = avx512::linear_int6;
    made.linear_add_int6 = avx512::linear_add_int6;
    made.linear_q4_0 = avx512::linear_q4_0;
    made.linear_add_q4_0 = avx512::linear_add_q4_0;
    made.linear_q8_0 = avx512::linear_q8_0;
    made.linear_add_q8_0 = avx512::linear_add_q8_0;
    made.linear_q4_k = avx512::linear_q4_k;
    made.linear_add_q4_k = avx512::linear_add_q4_k;
    made.linear_q6_k = avx512::linear_q6_k;
    made.linear_add_q6_k = avx512::linear_add_q6_k;
    made.attend_f32 = avx512::attend_f32;
    made.attend_bf16 = avx512::attend_bf16;
    made.attend_int8 = avx512::attend_int8;
    made.attend_merge = avx512::attend_merge;
    made.rms_norm = avx512::rms_norm;
    made.rope_half_split = avx512::rope_half_split;
    made.silu_mul = avx512::silu_mul;
    made.exp = avx512::exp;
    made.silu = avx512::silu;
    made.gelu_tanh = avx512::gelu_tanh;
    made.softmax = avx512::softmax;
    return made;
  }();
  return &row;
}

bool machine_has_avx512() {
  return machine_has_avx2() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
}

}  // namespace dovetail::kernels
