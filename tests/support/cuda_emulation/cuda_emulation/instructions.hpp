// The instructions that kernels reach through wrappers (kernels/cuda/instructions.hpp), by their meaning.
#pragma once

#include <cuda_emulation/launch.hpp>

namespace cuda_emulation {

/// 16 bytes in one load or store; p is a multiple of 16.
uint4 load16(const void* p, Where where = Where::current());
void store16(void* p, const uint4& value, Where where = Where::current());

/// What another block has stored: here there is no cache between them.
inline float load_fresh(const float* from) {
  return *from;
}

/// Starts a copy of 16 bytes to shared memory. They are there once copy_wait() has finished their group, and
/// for other threads after the next barrier.
void copy16_async(void* s_to, const void* g_from, Where where = Where::current());
inline void copy_commit() {
  commit_copies();
}
template <int kLeft>
void copy_wait() {
  finish_copies(kLeft);
}

/// Four 8 x 8 matrices of 16-bit numbers: lane l names row l % 8 of matrix l / 8 (16 bytes in shared memory),
/// and gets elements 2 * (l % 4) and the next of row l / 4 of each.
void load_matrices(uint32_t (&out)[4], const void* s_row, Where where = Where::current());

/// sum += a * b for a 16 x 16, b 16 x 8 of bfloat16 and sum 16 x 8 of float, each lane with its part of
/// them: the fragments of PTX's mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32.
///
/// numerics  products exact; 16 of them and the old sum are added in double and rounded once. A device
///           rounds on its way.
void multiply_bf16(float (&sum)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                   Where where = Where::current());

/// Programmatic dependent launch: the next kernel may start; wait for what the kernel before wrote. Here
/// kernels run one after another.
inline void launch_dependents() {}
inline void wait_for_dependency() {}

}  // namespace cuda_emulation
