// rms_norm and mean_rows for CUDA; contracts in kernels/cuda.hpp and kernels/rms_norm.hpp, oracle in
// kernels/ref/rms_norm.cpp. Bound by launches: rows are short.
// grid, block  short rows: a warp each, four in a block; long rows: a block of eight warps each.
// a thread     every 32nd (256th) element of its row
// shared       a float a warp. Occupancy: not limited.
#include <kernels/cuda.hpp>

#include "kernels/cuda/norm_rows.hpp"

namespace dovetail::kernels::cuda {
namespace {

constexpr int kWarpsPerBlock = 4;  // of short rows

/// The sum over a row's threads, to each of them. All threads of the block call it.
template <int kWarps>
__device__ float row_sum(float value) {
  value = lanes_sum(value);
  if constexpr (kWarps > 1) {
    DVT_SHARED(float, s_sums, [kWarps]);
    if (lane_of_warp() == 0) s_sums[warp_of_block()] = value;
    __syncthreads();
    value = 0.0F;
    for (int w = 0; w < kWarps; ++w) value += s_sums[w];
  }
  return value;
}

template <int kWarps>
struct RowOfThread {
  static constexpr int kThreads = kWarps * kWarp;
  static constexpr int kRowsPerBlock = kWarps > 1 ? 1 : kWarpsPerBlock;
  int64_t row = int64_t{blockIdx.x} * kRowsPerBlock + (kWarps > 1 ? 0 : warp_of_block());
  int first = kWarps > 1 ? static_cast<int>(threadIdx.x) : lane_of_warp();
};

template <int kWarps>
__global__ void __launch_bounds__(256)
    rms_norm_kernel(float* g_out, const float* g_x, const float* g_weight, int64_t n_rows,
                    int64_t row_len, float eps, float weight_offset) {
  using Row = RowOfThread<kWarps>;
  const Row at;
  const bool is_inside = at.row < n_rows;
  const float* g_in = g_x + at.row * row_len;
  float sum = is_inside ? sum_of_squares(g_in, at.first, Row::kThreads, row_len) : 0.0F;
  sum = row_sum<kWarps>(sum);
  const float scale = norm_scale(sum, row_len, eps);
  if (is_inside)
    for (int64_t i = at.first; i < row_len; i += Row::kThreads)
      g_out[at.row * row_len + i] = normed(g_in[i], scale, g_weight[i], weight_offset);
}

template <int kWarps>
__global__ void __launch_bounds__(256)
    mean_rows_kernel(float* g_out, const float* g_x, int64_t n_rows, int64_t row_len) {
  using Row = RowOfThread<kWarps>;
  const Row at;
  const bool is_inside = at.row < n_rows;
  float sum = 0.0F;
  if (is_inside)
    for (int64_t i = at.first; i < row_len; i += Row::kThreads) sum += g_x[at.row * row_len + i];
  sum = row_sum<kWarps>(sum);
  if (is_inside && at.first == 0) g_out[at.row] = sum / static_cast<float>(row_len);
}

}  // namespace

void rms_norm(Stream stream, float* g_out, const float* g_x, const float* g_weight, int64_t n_rows,
              int64_t row_len, float eps, float weight_offset) {
  if (n_rows == 0) return;
  if (row_len <= kShortRow)
    DVT_LAUNCH(rms_norm_kernel<1>, static_cast<unsigned>(blocks_for(n_rows, kWarpsPerBlock)),
               kWarpsPerBlock * kWarp, 0, stream, g_out, g_x, g_weight, n_rows, row_len, eps,
               weight_offset);
  else
    DVT_LAUNCH(rms_norm_kernel<kLongRowWarps>, static_cast<unsigned>(n_rows), kLongRowWarps * kWarp,
               0, stream, g_out, g_x, g_weight, n_rows, row_len, eps, weight_offset);
}

void mean_rows(Stream stream, float* g_out, const float* g_x, int64_t n_rows, int64_t row_len) {
  if (n_rows == 0) return;
  if (row_len <= kShortRow)
    DVT_LAUNCH(mean_rows_kernel<1>, static_cast<unsigned>(blocks_for(n_rows, kWarpsPerBlock)),
               kWarpsPerBlock * kWarp, 0, stream, g_out, g_x, n_rows, row_len);
  else
    DVT_LAUNCH(mean_rows_kernel<kLongRowWarps>, static_cast<unsigned>(n_rows),
               kLongRowWarps * kWarp, 0, stream, g_out, g_x, n_rows, row_len);
}

}  // namespace dovetail::kernels::cuda
