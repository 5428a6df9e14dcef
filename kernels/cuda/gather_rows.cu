// Rows of a table for CUDA; contracts in kernels/cuda.hpp and kernels/gather_rows.hpp, oracles in
// kernels/ref/gather_rows.cpp and kernels/ref/weight_formats.cpp. Bound by memory.
// grid, block  one thread a number of the result, 256 in a block. No shared memory. Occupancy: not limited.
#include <kernels/cuda.hpp>

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/numbers.hpp"
#include "kernels/cuda/packed_numbers.hpp"

namespace dovetail::kernels::cuda {
namespace {

constexpr int kThreads = 256;

__device__ inline int64_t element_of_thread() {
  return int64_t{blockIdx.x} * kThreads + threadIdx.x;
}

template <class Number>
__global__ void __launch_bounds__(kThreads)
    gather_rows_kernel(float* g_out, const Number* g_table, const int32_t* g_ids, int64_t n,
                       int64_t row_len) {
  const int64_t i = element_of_thread();
  if (i < n) g_out[i] = widen(g_table[g_ids[i / row_len] * row_len + i % row_len]);
}

template <WeightFormat kFormat>
__global__ void __launch_bounds__(kThreads)
    gather_packed_rows_kernel(float* g_out, const uint8_t* g_table, const int32_t* g_ids, int64_t n,
                              int64_t row_len) {
  const int64_t i = element_of_thread();
  if (i >= n) return;
  const int64_t row = g_ids[i / row_len], k = i % row_len;
  const PackedRow<kFormat> packed(g_table, row, row_len);
  const PackedBlock<kFormat> block(packed, k / kQuantBlock);
  g_out[i] = packed.d * (block.scale * static_cast<float>(block.value(k % kQuantBlock)));
}

template <class Number>
void gather(Stream stream, float* g_out, const Number* g_table, const int32_t* g_ids, int64_t n_ids,
            int64_t row_len) {
  const int64_t n = n_ids * row_len;
  if (n == 0) return;
  DVT_LAUNCH(gather_rows_kernel<Number>, static_cast<unsigned>(blocks_for(n, kThreads)), kThreads,
             0, stream, g_out, g_table, g_ids, n, row_len);
}
template <WeightFormat kFormat>
void gather_packed(Stream stream, float* g_out, const void* g_table, const int32_t* g_ids,
                   int64_t n_ids, int64_t row_len) {
  const int64_t n = n_ids * row_len;
  if (n == 0) return;
  DVT_LAUNCH(gather_packed_rows_kernel<kFormat>, static_cast<unsigned>(blocks_for(n, kThreads)),
             kThreads, 0, stream, g_out, static_cast<const uint8_t*>(g_table), g_ids, n, row_len);
}

}  // namespace

void gather_rows(Stream stream, float* g_out, const float* g_table, const int32_t* g_ids,
                 int64_t n_ids, int64_t row_len) {
  gather(stream, g_out, g_table, g_ids, n_ids, row_len);
}
void gather_rows(Stream stream, float* g_out, const uint16_t* g_table, const int32_t* g_ids,
                 int64_t n_ids, int64_t row_len) {
  gather(stream, g_out, g_table, g_ids, n_ids, row_len);
}
void gather_rows(Stream stream, float* g_out, const F16* g_table, const int32_t* g_ids,
                 int64_t n_ids, int64_t row_len) {
  gather(stream, g_out, g_table, g_ids, n_ids, row_len);
}

void gather_packed_rows(Stream stream, float* g_out, const void* g_table, WeightFormat format,
                        const int32_t* g_ids, int64_t n_ids, int64_t row_len) {
  const auto gather_as = [&](auto fn) { fn(stream, g_out, g_table, g_ids, n_ids, row_len); };
  switch (format) {
    case WeightFormat::kInt8:
      return gather_as(gather_packed<WeightFormat::kInt8>);
    case WeightFormat::kInt4:
      return gather_as(gather_packed<WeightFormat::kInt4>);
    case WeightFormat::kInt4q:
      return gather_as(gather_packed<WeightFormat::kInt4q>);
    case WeightFormat::kInt6:
      return gather_as(gather_packed<WeightFormat::kInt6>);
  }
}

}  // namespace dovetail::kernels::cuda
