// The arithmetic of rms_norm, for the kernel of that name and for those that norm on their way to a product: the
// same sums in the same order.
#pragma once

#include "kernels/cuda/device.hpp"

namespace dovetail::kernels::cuda {

/// Rows up to here are summed by one warp, longer ones by kLongRowWarps.
constexpr int64_t kShortRow = 1024;
constexpr int kLongRowWarps = 8;

/// A thread's share of a row's squares.
__device__ inline float sum_of_squares(const float* row, int64_t first, int64_t step,
                                       int64_t row_len) {
  float sum = 0.0F;
  DVT_UNROLL_BY(8)
  for (int64_t i = first; i < row_len; i += step) sum = fmaf(row[i], row[i], sum);
  return sum;
}
__device__ inline float norm_scale(float sum, int64_t row_len, float eps) {
  return 1.0F / sqrtf(sum / static_cast<float>(row_len) + eps);
}
__device__ inline float normed(float x, float scale, float weight, float weight_offset) {
  return (x * scale) * (weight_offset + weight);
}

}  // namespace dovetail::kernels::cuda
