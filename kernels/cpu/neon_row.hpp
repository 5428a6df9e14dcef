// The NEON row of the table, where there is one: neon_row.cpp on AArch64, arm_absent.cpp elsewhere.
#pragma once

#include <kernels/cpu.hpp>

namespace dovetail::kernels {

/// Null in a build for another kind of processor. The products of quantised weights take the dot
/// products of ARMv8.2 where this processor has them, and are portable elsewhere: the same bits.
const CpuKernels* neon_row();

/// Whether the processor has NEON: every AArch64 that Linux runs on, save by special order.
bool machine_has_neon();

}  // namespace dovetail::kernels
