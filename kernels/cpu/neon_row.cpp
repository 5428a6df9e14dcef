// The NEON row of the table. Built without +dotprod: it runs on every AArch64.
#include "kernels/cpu/neon_row.hpp"

#include <sys/auxv.h>

#include "kernels/cpu/neon.hpp"
#include "kernels/cpu/portable.hpp"

namespace dovetail::kernels {
namespace {

constexpr CpuKernels kRow = {
    .name = "neon",
    .linear_f32 = neon::linear_f32,
    .linear_add_f32 = neon::linear_add_f32,
    .linear_bf16 = neon::linear_bf16,
    .linear_add_bf16 = neon::linear_add_bf16,
    .linear_f16 = neon::linear_f16,
    .linear_add_f16 = neon::linear_add_f16,
    .quantize_activations = neon::quantize_activations,
    .linear_int8 = portable::linear_int8,
    .linear_add_int8 = portable::linear_add_int8,
    .linear_int4 = portable::linear_int4,
    .linear_add_int4 = portable::linear_add_int4,
    .linear_int4q = portable::linear_int4q,
    .linear_add_int4q = portable::linear_add_int4q,
    .linear_int6 = portable::linear_int6,
    .linear_add_int6 = portable::linear_add_int6,
    .linear_q4_0 = portable::linear_q4_0,
    .linear_add_q4_0 = portable::linear_add_q4_0,
    .linear_q8_0 = portable::linear_q8_0,
    .linear_add_q8_0 = portable::linear_add_q8_0,
    .linear_q4_k = portable::linear_q4_k,
    .linear_add_q4_k = portable::linear_add_q4_k,
    .linear_q6_k = portable::linear_q6_k,
    .linear_add_q6_k = portable::linear_add_q6_k,
    .quantize_rows_int8 = neon::quantize_rows_int8,
    .quantize_rows_int4 = neon::quantize_rows_int4,
    .quantize_rows_int4q = neon::quantize_rows_int4q,
    .quantize_rows_int6 = neon::quantize_rows_int6,
    .unpack_row_int8 = ref::unpack_row_int8,
    .unpack_row_int4 = ref::unpack_row_int4,
    .unpack_row_int4q = ref::unpack_row_int4q,
    .unpack_row_int6 = ref::unpack_row_int6,
    .attend_f32 = neon::attend_f32,
    .attend_bf16 = neon::attend_bf16,
    .attend_int8 = neon::attend_int8,
    .attend_merge = neon::attend_merge,
    .cache_write_f32 = ref::cache_write_f32,
    .cache_write_bf16 = ref::cache_write_bf16,
    .cache_write_int8 = neon::cache_write_int8,
    .rms_norm = neon::rms_norm,
    .rope_table = ref::rope_table,
    .rope_half_split = neon::rope_half_split,
    .add = ref::add,
    .mul = ref::mul,
    .silu_mul = neon::silu_mul,
    .exp = neon::exp,
    .silu = neon::silu,
    .gelu_tanh = neon::gelu_tanh,
    .softmax = neon::softmax,
    .argmax = ref::argmax,
    .gather_rows_f32 = ref::gather_rows_f32,
    .gather_rows_bf16 = ref::gather_rows_bf16,
    .gather_rows_f16 = ref::gather_rows_f16,
    .bf16_to_f32 = ref::bf16_to_f32,
    .f32_to_bf16 = neon::f32_to_bf16,
    .f16_to_f32 = neon::f16_to_f32,
    .read_stream = neon::read_stream,
    .read_stream_ahead = neon::read_stream_ahead,
};

constexpr CpuKernels with_dot_products(CpuKernels row) {
  row.linear_int8 = neon::dotprod::linear_int8;
  row.linear_add_int8 = neon::dotprod::linear_add_int8;
  row.linear_int4 = neon::dotprod::linear_int4;
  row.linear_add_int4 = neon::dotprod::linear_add_int4;
  row.linear_int4q = neon::dotprod::linear_int4q;
  row.linear_add_int4q = neon::dotprod::linear_add_int4q;
  row.linear_int6 = neon::dotprod::linear_int6;
  row.linear_add_int6 = neon::dotprod::linear_add_int6;
  row.linear_q4_0 = neon::dotprod::linear_q4_0;
  row.linear_add_q4_0 = neon::dotprod::linear_add_q4_0;
  row.linear_q8_0 = neon::dotprod::linear_q8_0;
  row.linear_add_q8_0 = neon::dotprod::linear_add_q8_0;
  row.linear_q4_k = neon::dotprod::linear_q4_k;
  row.linear_add_q4_k = neon::dotprod::linear_add_q4_k;
  row.linear_q6_k = neon::dotprod::linear_q6_k;
  row.linear_add_q6_k = neon::dotprod::linear_add_q6_k;
  return row;
}

constexpr CpuKernels kDotprodRow = with_dot_products(kRow);

bool machine_has(uint64_t feature) {
  return (getauxval(AT_HWCAP) & feature) != 0;
}

}  // namespace

const CpuKernels* neon_row() {
  return machine_has(HWCAP_ASIMDDP) ? &kDotprodRow : &kRow;
}

bool machine_has_neon() {
  return machine_has(HWCAP_ASIMD);
}

}  // namespace dovetail::kernels
