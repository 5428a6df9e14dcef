// argmax for CUDA; contract in kernels/cuda.hpp, oracle in kernels/ref/argmax.cpp. Bound by memory.
// grid, block  a block of 512 threads a row
// a thread     every 512th element of the row
// shared       a value and an index a warp. Occupancy: not limited.
#include <kernels/cuda.hpp>

#include "kernels/cuda/device.hpp"

namespace dovetail::kernels::cuda {
namespace {

constexpr int kThreads = 512, kWarps = kThreads / kWarp;

/// The best so far; without one the value is -inf and the index past all.
struct Best {
  float value;
  int32_t index;
};
__device__ inline Best better_of(Best a, Best b) {
  const bool b_wins = b.value > a.value || (b.value == a.value && b.index < a.index);
  return b_wins ? b : a;
}
__device__ inline Best best_of_warp(Best best) {
  for (int bit = kWarp / 2; bit > 0; bit /= 2) {
    const float value = __shfl_xor_sync(kAllLanes, best.value, bit);
    const int32_t index = __shfl_xor_sync(kAllLanes, best.index, bit);
    best = better_of(best, {value, index});
  }
  return best;
}

__global__ void __launch_bounds__(kThreads)
    argmax_kernel(int32_t* g_ids, const float* g_x, const uint32_t* g_mask, int64_t row_len) {
  DVT_SHARED(float, s_values, [kWarps]);
  DVT_SHARED(int32_t, s_indices, [kWarps]);
  const float* g_row = g_x + blockIdx.x * row_len;
  Best best{-INFINITY, INT32_MAX};
  for (int64_t i = threadIdx.x; i < row_len; i += kThreads) {
    const bool is_allowed = g_mask == nullptr || (g_mask[i / 32] >> i % 32 & 1U) != 0;
    if (is_allowed && g_row[i] > best.value) best = {g_row[i], static_cast<int32_t>(i)};
  }
  best = best_of_warp(best);
  if (lane_of_warp() == 0) {
    s_values[warp_of_block()] = best.value;
    s_indices[warp_of_block()] = best.index;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int w = 1; w < kWarps; ++w) best = better_of(best, {s_values[w], s_indices[w]});
  g_ids[blockIdx.x] = best.index == INT32_MAX ? -1 : best.index;
}

}  // namespace

void argmax(Stream stream, int32_t* g_ids, const float* g_x, const uint32_t* g_mask, int64_t n_rows,
            int64_t row_len) {
  if (n_rows == 0) return;
  DVT_LAUNCH(argmax_kernel, static_cast<unsigned>(n_rows), kThreads, 0, stream, g_ids, g_x, g_mask,
             row_len);
}

}  // namespace dovetail::kernels::cuda
