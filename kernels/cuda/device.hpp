// What every CUDA kernel starts from: CUDA's own names, shared memory, launches.
//
// The sources are compiled twice: by nvcc for devices, and by the C++ compiler against an emulation of a
// device (tests/support/cuda_emulation), which the build that asks for it puts in the include path. So
// they keep to what both have: shared memory is declared by these macros, launches go through
// DVT_LAUNCH, and instructions without a name in CUDA C++ through instructions.hpp.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#include <cuda_runtime.h>

/// DVT_SHARED(float, s_sums, [8]): an array in shared memory.
#define DVT_SHARED(type, name, dims) __shared__ type name dims
/// The bytes that the launch asked for.
#define DVT_SHARED_DYNAMIC(name) extern __shared__ __align__(16) unsigned char name[]
#define DVT_LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
  kernel<<<grid, block, shared_bytes, stream>>>(__VA_ARGS__)
/// Before a loop over registers.
#define DVT_UNROLL _Pragma("unroll")
/// The same, n turns at a time: their loads are under way together.
#define DVT_TEXT(text) #text
#define DVT_UNROLL_BY(n) _Pragma(DVT_TEXT(unroll n))
#else
#include <cuda_emulation/device.hpp>
#define DVT_UNROLL
#define DVT_UNROLL_BY(n)
#endif

namespace dovetail::kernels::cuda {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xFFFFFFFFU;

/// Blocks of `size` that hold n.
__host__ __device__ constexpr int64_t blocks_for(int64_t n, int64_t size) {
  return (n + size - 1) / size;
}

/// Of a one-dimensional block.
__device__ inline int lane_of_warp() {
  return static_cast<int>(threadIdx.x) % kWarp;
}
__device__ inline int warp_of_block() {
  return static_cast<int>(threadIdx.x) / kWarp;
}

/// Sums and maxima over the lanes of a segment of kLanes, each lane getting the same bits.
template <int kLanes = kWarp>
__device__ inline float lanes_sum(float value) {
  for (int bit = kLanes / 2; bit > 0; bit /= 2) value += __shfl_xor_sync(kAllLanes, value, bit);
  return value;
}
template <int kLanes = kWarp>
__device__ inline float lanes_max(float value) {
  for (int bit = kLanes / 2; bit > 0; bit /= 2)
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, bit));
  return value;
}

}  // namespace dovetail::kernels::cuda
