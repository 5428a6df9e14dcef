// softmax for CUDA; contract in kernels/softmax.hpp, oracle in kernels/ref/softmax.cpp. Bound by memory.
// grid, block  a block of 256 threads a row
// a thread     every 256th element of the row
// shared       8 floats. Occupancy: not limited.
#include <kernels/cuda.hpp>

#include "kernels/cuda/device.hpp"

namespace dovetail::kernels::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarp;

__global__ void __launch_bounds__(kThreads)
    softmax_kernel(float* g_out, const float* g_x, int64_t row_len) {
  DVT_SHARED(float, s_greatest, [kWarps]);
  DVT_SHARED(float, s_sums, [kWarps]);
  const float* g_in = g_x + blockIdx.x * row_len;
  float* g_to = g_out + blockIdx.x * row_len;

  float greatest = -INFINITY;  // past NaN: it comes back in the sum
  for (int64_t i = threadIdx.x; i < row_len; i += kThreads) greatest = fmaxf(greatest, g_in[i]);
  greatest = lanes_max(greatest);
  if (lane_of_warp() == 0) s_greatest[warp_of_block()] = greatest;
  __syncthreads();
  for (int w = 0; w < kWarps; ++w) greatest = fmaxf(greatest, s_greatest[w]);

  float sum = 0.0F;
  for (int64_t i = threadIdx.x; i < row_len; i += kThreads) sum += expf(g_in[i] - greatest);
  sum = lanes_sum(sum);
  if (lane_of_warp() == 0) s_sums[warp_of_block()] = sum;
  __syncthreads();
  sum = 0.0F;
  for (int w = 0; w < kWarps; ++w) sum += s_sums[w];

  for (int64_t i = threadIdx.x; i < row_len; i += kThreads)
    g_to[i] = expf(g_in[i] - greatest) / sum;
}

}  // namespace

void softmax(Stream stream, float* g_out, const float* g_x, int64_t n_rows, int64_t row_len) {
  if (n_rows == 0 || row_len == 0) return;
  DVT_LAUNCH(softmax_kernel, static_cast<unsigned>(n_rows), kThreads, 0, stream, g_out, g_x,
             row_len);
}

}  // namespace dovetail::kernels::cuda
