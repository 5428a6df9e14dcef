// The table of CPU kernels, and which row this machine takes.
#include "kernels/cpu/avx2_row.hpp"
#include "kernels/cpu/avx512_row.hpp"
#include "kernels/cpu/neon_row.hpp"
#include "kernels/cpu/portable.hpp"

namespace dovetail::kernels {
namespace {

constexpr CpuKernels kPortableRow = {
    .name = "portable",
    .linear_f32 = portable::linear_f32,
    .linear_add_f32 = portable::linear_add_f32,
    .linear_bf16 = portable::linear_bf16,
    .linear_add_bf16 = portable::linear_add_bf16,
    .linear_f16 = portable::linear_f16,
    .linear_add_f16 = portable::linear_add_f16,
    .quantize_activations = ref::quantize_activations,
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
    .quantize_rows_int8 = ref::quantize_rows_int8,
    .quantize_rows_int4 = ref::quantize_rows_int4,
    .quantize_rows_int4q = ref::quantize_rows_int4q,
    .quantize_rows_int6 = ref::quantize_rows_int6,
    .unpack_row_int8 = ref::unpack_row_int8,
    .unpack_row_int4 = ref::unpack_row_int4,
    .unpack_row_int4q = ref::unpack_row_int4q,
    .unpack_row_int6 = ref::unpack_row_int6,
    .attend_f32 = portable::attend_f32,
    .attend_bf16 = portable::attend_bf16,
    .attend_int8 = portable::attend_int8,
    .attend_merge = portable::attend_merge,
    .cache_write_f32 = ref::cache_write_f32,
    .cache_write_bf16 = ref::cache_write_bf16,
    .cache_write_int8 = ref::cache_write_int8,
    .rms_norm = portable::rms_norm,
    .rope_table = ref::rope_table,
    .rope_half_split = ref::rope_half_split,
    .add = ref::add,
    .mul = ref::mul,
    .silu_mul = portable::silu_mul,
    .exp = portable::exp,
    .silu = portable::silu,
    .gelu_tanh = portable::gelu_tanh,
    .softmax = portable::softmax,
    .argmax = ref::argmax,
    .gather_rows_f32 = ref::gather_rows_f32,
    .gather_rows_bf16 = ref::gather_rows_bf16,
    .gather_rows_f16 = ref::gather_rows_f16,
    .bf16_to_f32 = ref::bf16_to_f32,
    .f32_to_bf16 = ref::f32_to_bf16,
    .f16_to_f32 = ref::f16_to_f32,
    .read_stream = portable::read_stream,
    .read_stream_ahead = portable::read_stream,
};

}  // namespace

bool can_run(Isa isa) {
  switch (isa) {
    case Isa::kPortable:
      return true;
    case Isa::kAvx2:
      return avx2_row() != nullptr && machine_has_avx2();
    case Isa::kAvx512:
      return avx512_row() != nullptr && machine_has_avx512();
    case Isa::kNeon:
      return neon_row() != nullptr && machine_has_neon();
  }
  return false;
}

Isa detect_isa() {
  Isa best = Isa::kPortable;
  for (const Isa isa : kIsas) {
    if (can_run(isa)) best = isa;
  }
  return best;
}

std::optional<Isa> find_isa(std::string_view name) {
  if (name == "portable") return Isa::kPortable;
  if (name == "avx2") return Isa::kAvx2;
  if (name == "avx512") return Isa::kAvx512;
  if (name == "neon") return Isa::kNeon;
  return std::nullopt;
}

const CpuKernels& cpu_kernels(Isa isa) {
  if (isa == Isa::kAvx512 && avx512_row() != nullptr) return *avx512_row();
  if (isa == Isa::kNeon && neon_row() != nullptr) return *neon_row();
  return isa == Isa::kAvx2 && avx2_row() != nullptr ? *avx2_row() : kPortableRow;
}

}  // namespace dovetail::kernels
