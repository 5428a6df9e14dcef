// The last of several blocks to come to a point, which then goes on with what all of them wrote.
#pragma once

#include "kernels/cuda/device.hpp"

namespace dovetail::kernels::cuda {

/// Whether this block is the last of n that call it with this counter, which is zero before and after. The last
/// one sees, through load_fresh(), what the others stored to global memory before.
///
/// All threads of the block call it; s_is_last is shared.
__device__ inline bool is_last_block(uint32_t* g_arrived, uint32_t n, uint32_t& s_is_last) {
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    s_is_last = atomicAdd(g_arrived, 1U) + 1U == n ? 1U : 0U;
    if (s_is_last != 0) *g_arrived = 0;
  }
  __syncthreads();
  __threadfence();
  return s_is_last != 0;
}

}  // namespace dovetail::kernels::cuda
