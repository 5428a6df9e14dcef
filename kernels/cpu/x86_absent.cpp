// A build for another kind of processor has no AVX2 row.
#include "kernels/cpu/avx2_row.hpp"

namespace dovetail::kernels {

const CpuKernels* avx2_row() {
  return nullptr;
}

bool machine_has_avx2() {
  return false;
}

}  // namespace dovetail::kernels
