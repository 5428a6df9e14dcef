// New rows into the paged cache for CUDA; contracts in kernels/cuda.hpp and kernels/kv_cache.hpp, oracle in
// kernels/ref/kv_cache.cpp. Bound by memory.
// grid, block  floats: one thread a number, 256 in a block; int8: a warp a row of one head, four in a block.
//              No shared memory. Occupancy: not limited.
#include <kernels/cached_rows.hpp>
#include <kernels/cuda.hpp>

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/numbers.hpp"

namespace dovetail::kernels::cuda {
namespace {

constexpr int kThreads = 256, kWarpsPerBlock = 4;

__device__ inline void store_number(float* g_to, float value) {
  *g_to = value;
}
__device__ inline void store_number(uint16_t* g_to, float value) {
  *g_to = to_bf16(value);
}

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

// int8_levels.hpp, by a warp.
__global__ void __launch_bounds__(kWarpsPerBlock* kWarp)
    cache_write_int8_kernel(int8_t* g_base, KvLayout layout, StepRows step, const float* g_rows) {
  constexpr float kLeastGreatest = 0x1p-100F, kRound = 0x1.8p+23F;
  const int64_t n = int64_t{blockIdx.x} * kWarpsPerBlock + warp_of_block();
  if (n >= step.n_tokens * layout.n_kv_heads) return;
  const int64_t token = n / layout.n_kv_heads, head = n % layout.n_kv_heads;
  const float* g_x = g_rows + n * layout.head_dim;
  int8_t* g_to = g_base + row_offset<int8_t>(layout, step.g_pages + step.g_page_begin[token], head,
                                             step.g_positions[token]);

  uint32_t bits = 0;  // of max |x|; so compared, an infinity or a NaN wins over every number
  for (int64_t i = lane_of_warp(); i < layout.head_dim; i += kWarp) {
    const uint32_t magnitude = __float_as_uint(g_x[i]) & 0x7FFFFFFFU;
    bits = magnitude > bits ? magnitude : bits;
  }
  for (int bit = kWarp / 2; bit > 0; bit /= 2) {
    const uint32_t other = __shfl_xor_sync(kAllLanes, bits, bit);
    bits = other > bits ? other : bits;
  }
  const float greatest = __uint_as_float(bits);
  const bool is_finite = bits < 0x7F800000U, is_zero = greatest < kLeastGreatest;
  const float inverse = is_finite && !is_zero ? 127.0F / greatest : 0.0F;

  const int64_t level_bytes = int8_level_bytes(layout.head_dim);
  for (int64_t i = lane_of_warp(); i < level_bytes; i += kWarp) {
    const bool has_level = i < layout.head_dim && inverse != 0.0F;
    g_to[i] = has_level ? static_cast<int8_t>((g_x[i] * inverse + kRound) - kRound) : int8_t{0};
  }
  if (lane_of_warp() == 0)
    *reinterpret_cast<float*>(g_to + level_bytes) = is_zero ? 0.0F : greatest / 127.0F;
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
