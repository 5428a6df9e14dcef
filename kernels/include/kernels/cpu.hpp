// The CPU variants of every op, as one table with a row for each instruction set.
#pragma once

#include <optional>
#include <string_view>

#include <kernels/argmax.hpp>
#include <kernels/attend.hpp>
#include <kernels/convert.hpp>
#include <kernels/gather_rows.hpp>
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

namespace dovetail::kernels {

/// Instruction sets with a row of their own; of those of one processor the best is last.
enum class Isa {
  kPortable,  // C++ for any machine
  kAvx2,      // x86-64 with AVX2, FMA and F16C
  kAvx512,    // the same with AVX-512 F, BW, VL and VNNI besides
  kNeon,      // AArch64; with the dot products of ARMv8.2 where the processor has them
};

inline constexpr Isa kIsas[] = {Isa::kPortable, Isa::kAvx2, Isa::kAvx512, Isa::kNeon};

/// One row: every op of one instruction set. The contract of each is in its header.
struct CpuKernels {
  const char* name;  // what a config or a test calls the row: "portable", "avx2", "avx512", "neon"

  LinearF32Fn* linear_f32;
  LinearF32Fn* linear_add_f32;
  LinearBf16Fn* linear_bf16;
  LinearBf16Fn* linear_add_bf16;
  LinearF16Fn* linear_f16;
  LinearF16Fn* linear_add_f16;
  QuantizeActivationsFn* quantize_activations;
  LinearQuantizedFn* linear_int8;
  LinearQuantizedFn* linear_add_int8;
  LinearQuantizedFn* linear_int4;
  LinearQuantizedFn* linear_add_int4;
  LinearQuantizedFn* linear_int4q;
  LinearQuantizedFn* linear_add_int4q;
  LinearQuantizedFn* linear_int6;
  LinearQuantizedFn* linear_add_int6;
  LinearQuantizedFn* linear_q4_0;
  LinearQuantizedFn* linear_add_q4_0;
  LinearQuantizedFn* linear_q8_0;
  LinearQuantizedFn* linear_add_q8_0;
  LinearQuantizedFn* linear_q4_k;
  LinearQuantizedFn* linear_add_q4_k;
  LinearQuantizedFn* linear_q6_k;
  LinearQuantizedFn* linear_add_q6_k;
  QuantizeRowsFn* quantize_rows_int8;
  QuantizeRowsFn* quantize_rows_int4;
  QuantizeRowsFn* quantize_rows_int4q;
  QuantizeRowsFn* quantize_rows_int6;
  UnpackRowFn* unpack_row_int8;
  UnpackRowFn* unpack_row_int4;
  UnpackRowFn* unpack_row_int4q;
  UnpackRowFn* unpack_row_int6;
  AttendF32Fn* attend_f32;
  AttendBf16Fn* attend_bf16;
  AttendInt8Fn* attend_int8;
  AttendMergeFn* attend_merge;
  CacheWriteF32Fn* cache_write_f32;
  CacheWriteBf16Fn* cache_write_bf16;
  CacheWriteInt8Fn* cache_write_int8;
  RmsNormFn* rms_norm;
  RopeTableFn* rope_table;
  RopeHalfSplitFn* rope_half_split;
  BinaryFn* add;
  BinaryFn* mul;
  BinaryFn* silu_mul;
  UnaryFn* exp;
  UnaryFn* silu;
  UnaryFn* gelu_tanh;
  SoftmaxFn* softmax;
  ArgmaxFn* argmax;
  GatherRowsF32Fn* gather_rows_f32;
  GatherRowsBf16Fn* gather_rows_bf16;
  GatherRowsF16Fn* gather_rows_f16;
  Bf16ToF32Fn* bf16_to_f32;
  F32ToBf16Fn* f32_to_bf16;
  F16ToF32Fn* f16_to_f32;
  ReadStreamFn* read_stream;
  ReadStreamFn* read_stream_ahead;
};

/// Whether this build has the row and this machine (processor and system) can run it.
///
/// threads   any; asks the processor each time, so keep the answer.
bool can_run(Isa isa);

/// The best instruction set that this machine can run.
Isa detect_isa();

/// The instruction set of that name; nothing for a name that no row has.
std::optional<Isa> find_isa(std::string_view name);

/// The row of an instruction set.
///
/// owner     static; the tables never change.
/// errors    none: the caller has asked can_run(isa).
const CpuKernels& cpu_kernels(Isa isa);

}  // namespace dovetail::kernels
