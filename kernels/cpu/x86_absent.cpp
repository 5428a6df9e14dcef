// A build for another kind of processor has no rows for those of x86-64.
#include "kernels/cpu/avx2_row.hpp"
#include "kernels/cpu/avx512_row.hpp"

namespace dovetail::kernels {

const CpuKernels* avx2_row() {
  return nullptr;
}

bool machine_has_avx2() {
  return false;
}

const CpuKernels* avx512_row() {
  return nullptr;
}

bool machine_has_avx512() {
  return false;
}

}  // namespace dovetail::kernels
