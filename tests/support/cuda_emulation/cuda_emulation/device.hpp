// What kernel sources are compiled against for the CPU, in place of CUDA's own names.
//
// Names and meaning are CUDA's; kernels/cuda/device.hpp includes this where nvcc is not the compiler.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>

#include <cuda_emulation/instructions.hpp>
#include <cuda_emulation/launch.hpp>

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): CUDA's names
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

#define threadIdx (::cuda_emulation::current_indices.thread)
#define blockIdx (::cuda_emulation::current_indices.block)
#define blockDim (::cuda_emulation::current_indices.n_threads)
#define gridDim (::cuda_emulation::current_indices.n_blocks)

/// DVT_SHARED(float, s_sums, [8]): an array in shared memory.
#define DVT_SHARED(type, name, dims)                        \
  static const char name##_tag = 0;                         \
  auto& name = *static_cast<std::add_pointer_t<type dims>>( \
      ::cuda_emulation::shared_array(&name##_tag, sizeof(type dims), 16))
/// The bytes that the launch asked for.
#define DVT_SHARED_DYNAMIC(name) \
  auto* const name = static_cast<unsigned char*>(::cuda_emulation::dynamic_shared_array())
#define DVT_LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
  ::cuda_emulation::launch(stream, {#kernel, grid, block, shared_bytes}, kernel, __VA_ARGS__)

inline void __syncthreads(cuda_emulation::Where where = cuda_emulation::Where::current()) {
  cuda_emulation::meet_block(where);
}
inline void __syncwarp(unsigned mask = 0xffffffffU,
                       cuda_emulation::Where where = cuda_emulation::Where::current()) {
  cuda_emulation::meet_warp({"__syncwarp", mask, where, nullptr, nullptr});
}
inline void __threadfence() {}
inline void __threadfence_block() {}

namespace cuda_emulation {

template <class T>
struct Shuffle {
  T value;
  int from;  // lane whose value it gets; its own where that is out of the segment
  T result;
};
template <class T>
void apply_shuffle(void* const data[32], uint32_t mask) {
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1U)) continue;
    auto& mine = *static_cast<Shuffle<T>*>(data[lane]);
    // A lane that the mask leaves out has no value to give.
    const bool is_there = mask >> mine.from & 1U;
    if (is_there)
      mine.result = static_cast<Shuffle<T>*>(data[mine.from])->value;
    else
      std::memset(&mine.result, 0xff, sizeof mine.result);
  }
}
template <class T>
T shuffle(const char* name, unsigned mask, T value, int from, const Where& where) {
  Shuffle<T> mine{value, from, value};
  meet_warp({name, mask, where, &apply_shuffle<T>, &mine});
  return mine.result;
}
inline int lane_index() {
  const Indices& i = current_indices;
  return static_cast<int>((i.thread.x + i.n_threads.x * (i.thread.y + i.n_threads.y * i.thread.z)) %
                          32);
}

struct Vote {
  bool value;
  unsigned ballot;
};
inline unsigned vote(const char* name, unsigned mask, bool value, const Where& where) {
  Vote mine{value, 0};
  meet_warp({name, mask, where,
             [](void* const data[32], uint32_t lanes) {
               unsigned ballot = 0;
               for (unsigned l = 0; l < 32; ++l)
                 if (lanes >> l & 1U) ballot |= unsigned{static_cast<Vote*>(data[l])->value} << l;
               for (unsigned l = 0; l < 32; ++l)
                 if (lanes >> l & 1U) static_cast<Vote*>(data[l])->ballot = ballot;
             },
             &mine});
  return mine.ballot;
}

}  // namespace cuda_emulation

template <class T>
T __shfl_sync(unsigned mask, T value, int from, int width = 32,
              cuda_emulation::Where where = cuda_emulation::Where::current()) {
  const int lane = cuda_emulation::lane_index();
  return cuda_emulation::shuffle("__shfl_sync", mask, value, lane / width * width + from % width,
                                 where);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32,
                  cuda_emulation::Where where = cuda_emulation::Where::current()) {
  const int lane = cuda_emulation::lane_index(), from = lane ^ bits;
  const bool is_inside = from / width <= lane / width;
  return cuda_emulation::shuffle("__shfl_xor_sync", mask, value, is_inside ? from : lane, where);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, int delta, int width = 32,
                   cuda_emulation::Where where = cuda_emulation::Where::current()) {
  const int lane = cuda_emulation::lane_index();
  return cuda_emulation::shuffle("__shfl_down_sync", mask, value,
                                 lane % width + delta < width ? lane + delta : lane, where);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, int delta, int width = 32,
                 cuda_emulation::Where where = cuda_emulation::Where::current()) {
  const int lane = cuda_emulation::lane_index();
  return cuda_emulation::shuffle("__shfl_up_sync", mask, value,
                                 lane % width >= delta ? lane - delta : lane, where);
}
inline unsigned __ballot_sync(unsigned mask, bool value,
                              cuda_emulation::Where where = cuda_emulation::Where::current()) {
  return cuda_emulation::vote("__ballot_sync", mask, value, where);
}
inline int __any_sync(unsigned mask, bool value,
                      cuda_emulation::Where where = cuda_emulation::Where::current()) {
  return cuda_emulation::vote("__any_sync", mask, value, where) != 0;
}
inline int __all_sync(unsigned mask, bool value,
                      cuda_emulation::Where where = cuda_emulation::Where::current()) {
  return cuda_emulation::vote("__all_sync", mask, value, where) == mask;
}

// Threads change only where they meet, so that plain operations are atomic.
template <class T>
T atomicAdd(T* p, T value) {
  const T old = *p;
  *p = old + value;
  return old;
}
template <class T>
T atomicMax(T* p, T value) {
  const T old = *p;
  if (value > old) *p = value;
  return old;
}
template <class T>
T atomicMin(T* p, T value) {
  const T old = *p;
  if (value < old) *p = value;
  return old;
}
template <class T>
T atomicExch(T* p, T value) {
  const T old = *p;
  *p = value;
  return old;
}
template <class T>
T atomicCAS(T* p, T expected, T value) {
  const T old = *p;
  if (old == expected) *p = value;
  return old;
}

inline float __uint_as_float(unsigned bits) {
  return std::bit_cast<float>(bits);
}
inline unsigned __float_as_uint(float value) {
  return std::bit_cast<unsigned>(value);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
