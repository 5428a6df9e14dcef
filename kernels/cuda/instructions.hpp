// Instructions that CUDA C++ has no name for. Their meaning in words, and the emulated twins:
// tests/support/cuda_emulation/cuda_emulation/instructions.hpp.
#pragma once

#include "kernels/cuda/device.hpp"

namespace dovetail::kernels::cuda {

#if defined(__CUDACC__)

/// 16 bytes at a multiple of 16, in one load or store.
__device__ inline uint4 load16(const void* p) {
  return *static_cast<const uint4*>(p);
}
__device__ inline void store16(void* p, const uint4& value) {
  *static_cast<uint4*>(p) = value;
}

/// What another block of the launch has stored: past this processor's own cache.
__device__ inline float load_fresh(const float* g_from) {
  return __ldcg(g_from);
}

/// Starts a copy of 16 bytes to shared memory; copy_commit() closes a group of them, copy_wait<n>() waits
/// for all groups of this thread but the last n.
__device__ inline void copy16_async(void* s_to, const void* g_from) {
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(s_to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(g_from) : "memory");
}
__device__ inline void copy_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int kLeft>
__device__ inline void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

/// Four 8 x 8 matrices of 16-bit numbers: lane l names row l % 8 of matrix l / 8 (16 bytes in shared
/// memory), and gets elements 2 * (l % 4) and the next of row l / 4 of each.
__device__ inline void load_matrices(uint32_t (&out)[4], const void* s_row) {
  const auto row = static_cast<uint32_t>(__cvta_generic_to_shared(s_row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(row)
               : "memory");
}

/// sum += a * b for a 16 x 16, b 16 x 8 of bfloat16 and sum 16 x 8 of float. With row = lane / 4 and
/// pair = lane % 4, a lane has
///   a    pairs of columns (2 pair, 2 pair + 1) of rows row, row + 8, then the same 8 columns further
///   b    pairs of rows (2 pair, 2 pair + 1) of column row, then the same 8 rows further
///   sum  columns 2 pair, 2 pair + 1 of rows row, row + 8
__device__ inline void multiply_bf16(float (&sum)[4], const uint32_t (&a)[4],
                                     const uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// Programmatic dependent launch: lets the next kernel start; waits for what the kernel before wrote.
__device__ inline void launch_dependents() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
__device__ inline void wait_for_dependency() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

#else

using cuda_emulation::copy16_async;
using cuda_emulation::copy_commit;
using cuda_emulation::copy_wait;
using cuda_emulation::launch_dependents;
using cuda_emulation::load16;
using cuda_emulation::load_fresh;
using cuda_emulation::load_matrices;
using cuda_emulation::multiply_bf16;
using cuda_emulation::store16;
using cuda_emulation::wait_for_dependency;

#endif

}  // namespace dovetail::kernels::cuda
