// take_tokens for CUDA; contract in kernels/cuda.hpp. Bound by its launch.
// grid, block  one block of 256 threads; a thread every 256th token, and row of ids. No shared memory.
#include <kernels/cuda.hpp>

#include "kernels/cuda/device.hpp"

namespace dovetail::kernels::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    take_tokens_kernel(int32_t* g_tokens, const int32_t* g_from, int32_t* g_sampled,
                       int64_t n_tokens, int64_t n_rows) {
  for (int64_t i = threadIdx.x; i < n_tokens; i += kThreads) {
    const int32_t from = g_from[i];
    if (from < 0) continue;
    const int32_t id = g_sampled[from];
    g_tokens[i] = id < 0 ? 0 : id;
  }
  __syncthreads();
  for (int64_t r = threadIdx.x; r < n_rows; r += kThreads) g_sampled[n_rows + r] = g_sampled[r];
}

}  // namespace

void take_tokens(Stream stream, int32_t* g_tokens, const int32_t* g_from, int32_t* g_sampled,
                 int64_t n_tokens, int64_t n_rows) {
  DVT_LAUNCH(take_tokens_kernel, 1, kThreads, 0, stream, g_tokens, g_from, g_sampled, n_tokens,
             n_rows);
}

}  // namespace dovetail::kernels::cuda
