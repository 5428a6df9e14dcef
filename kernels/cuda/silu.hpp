// silu on the device: x / (1 + e^-x).
#pragma once

#include "kernels/cuda/device.hpp"

namespace dovetail::kernels::cuda {

__device__ inline float silu_of(float x) {
  return x / (1.0F + expf(-x));
}

}  // namespace dovetail::kernels::cuda
