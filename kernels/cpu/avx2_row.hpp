// The AVX2 row of the table, where there is one: avx2_row.cpp on x86-64, x86_absent.cpp elsewhere.
#pragma once

#include <kernels/cpu.hpp>

namespace dovetail::kernels {

/// Null in a build for another kind of processor.
const CpuKernels* avx2_row();

/// Whether the processor has AVX2, FMA and F16C and the system keeps their registers.
bool machine_has_avx2();

}  // namespace dovetail::kernels
