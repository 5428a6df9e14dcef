// A build for another kind of processor has no row for AArch64.
#include "kernels/cpu/neon_row.hpp"

namespace dovetail::kernels {

const CpuKernels* neon_row() {
  return nullptr;
}

bool machine_has_neon() {
  return false;
}

}  // namespace dovetail::kernels
