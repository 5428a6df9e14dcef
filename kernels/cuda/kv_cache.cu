// New rows into the paged cache for CUDA; contracts in kernels/cuda.hpp and kernels/kv_cache.hpp, oracle in
// kernels/ref/kv_cache.cpp. Bound by memory.
// grid, block  floats: one thread a number, 256 in a block; int8: a warp a row of one head, four in a block.
//              No shared memory. Occupancy: not limited.
#include <kernels/cuda.hpp>

#include "kernels/cuda/cached_store.hpp"

namespace dovetail::kernels::cuda {
namespace {

constexpr int kThreads = 256, kWarpsPerBlock = 4;

template <class Element>
__global__ void __launch_bounds__(kThreads)
    cache_write_kernel(Element* g_base, KvLayout layout, StepRows step, const float* g_rows) {
  const int64_t token_len = layout.n_kv_heads * layout.head_dim;
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= step.n_tokens * token_len) return;
  const int64_t token = i / token_len, head = i % token_len / layout.head_dim;
  const int64_t row = row_offset<Element>(layout, step.g_pages + step.g_page_begin[token], head,
                                          step.g_positions[token]);
  store_number(g_base + row + i % layout.head_dim, g_rows[i]);
}

__global__ void __launch_bounds__(kWarpsPerBlock* kWarp)
    cache_write_int8_kernel(int8_t* g_base, KvLayout layout, StepRows step, const float* g_rows) {
  const int64_t n = int64_t{blockIdx.x} * kWarpsPerBlock + warp_of_block();
  if (n >= step.n_tokens * layout.n_kv_heads) return;
  const int64_t token = n / layout.n_kv_heads, head = n % layout.n_kv_heads;
  store_row(g_base + row_offset<int8_t>(layout, step.g_pages + step.g_page_begin[token], head,
                                        step.g_positions[token]),
            g_rows + n * layout.head_dim, layout.head_dim);
}

template <class Element>
void write_floats(Stream stream, Element* g_base, const KvLayout& layout, const StepRows& step,
                  const float* g_rows) {
  const int64_t n = step.n_tokens * layout.n_kv_heads * layout.head_dim;
  if (n == 0) return;
  DVT_LAUNCH(cache_write_kernel<Element>, static_cast<unsigned>(blocks_for(n, kThreads)), kThreads,
             0, stream, g_base, layout, step, g_rows);
}

}  // namespace

void cache_write(Stream stream, float* g_base, const KvLayout& layout, const StepRows& step,
                 const float* g_rows) {
  write_floats(stream, g_base, layout, step, g_rows);
}
void cache_write(Stream stream, uint16_t* g_base, const KvLayout& layout, const StepRows& step,
                 const float* g_rows) {
  write_floats(stream, g_base, layout, step, g_rows);
}
void cache_write(Stream stream, int8_t* g_base, const KvLayout& layout, const StepRows& step,
                 const float* g_rows) {
  const int64_t n = step.n_tokens * layout.n_kv_heads;
  if (n == 0) return;
  DVT_LAUNCH(cache_write_int8_kernel, static_cast<unsigned>(blocks_for(n, kWarpsPerBlock)),
             kWarpsPerBlock * kWarp, 0, stream, g_base, layout, step, g_rows);
}

}  // namespace dovetail::kernels::cuda
