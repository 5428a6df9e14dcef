// The AVX-512 row of the table, where there is one: avx512_row.cpp on x86-64, x86_absent.cpp
// elsewhere.
#pragma once

#include <kernels/cpu.hpp>

namespace dovetail::kernels {

/// Null in a build for another kind of processor.
const CpuKernels* avx512_row();

/// Whether the processor has AVX-512 F, BW, VL and VNNI, besides all that the AVX2 row takes, and
/// the system keeps their registers.
bool machine_has_avx512();

}  // namespace dovetail::kernels
