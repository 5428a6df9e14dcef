// Rotary positions for CUDA; contracts in kernels/cuda.hpp and kernels/rope.hpp, oracle in
// kernels/ref/rope.cpp. Bound by memory; the table's cosines are double, once a step.
// grid, block  rope_table: one thread a number; rope_half_split: one thread a pair, or a number that is
//              copied; 256 in a block. No shared memory. Occupancy: not limited.
#include <kernels/cuda.hpp>

#include "kernels/cuda/device.hpp"

namespace dovetail::kernels::cuda {
namespace {

constexpr int kThreads = 256;

__device__ inline int64_t element_of_thread() {
  return int64_t{blockIdx.x} * kThreads + threadIdx.x;
}

__global__ void __launch_bounds__(kThreads)
    rope_table_kernel(float* g_cos, float* g_sin, const int32_t* g_positions,
                      const float* g_inv_freq, int64_t n, int64_t half_len,
                      float attention_factor) {
  const int64_t i = element_of_thread();
  if (i >= n) return;
  const float angle = static_cast<float>(g_positions[i / half_len]) * g_inv_freq[i % half_len];
  const auto exact = static_cast<double>(angle);
  g_cos[i] = static_cast<float>(cos(exact)) * attention_factor;
  g_sin[i] = static_cast<float>(sin(exact)) * attention_factor;
}

struct RopeArgs {
  float* g_out;
  const float *g_x, *g_cos, *g_sin;
  int64_t out_stride, x_stride, n_tokens, n_heads, head_dim, half_len;
};
__global__ void __launch_bounds__(kThreads) rope_half_split_kernel(RopeArgs args) {
  const int64_t per_head = args.head_dim - args.half_len;  // pairs, and what is copied
  const int64_t element = element_of_thread();
  if (element >= args.n_tokens * args.n_heads * per_head) return;
  const int64_t i = element % per_head, head = element / per_head % args.n_heads;
  const int64_t token = element / (per_head * args.n_heads);
  const float* g_in = args.g_x + token * args.x_stride + head * args.head_dim;
  float* g_to = args.g_out + token * args.out_stride + head * args.head_dim;
  if (i >= args.half_len) {
    g_to[i + args.half_len] = g_in[i + args.half_len];
    return;
  }
  const float c = args.g_cos[token * args.half_len + i], s = args.g_sin[token * args.half_len + i];
  const float first = g_in[i], second = g_in[i + args.half_len];
  g_to[i] = first * c - second * s;
  g_to[i + args.half_len] = second * c + first * s;
}

}  // namespace

void rope_table(Stream stream, float* g_cos, float* g_sin, const int32_t* g_positions,
                const float* g_inv_freq, int64_t n_tokens, int64_t half_len,
                float attention_factor) {
  const int64_t n = n_tokens * half_len;
  if (n == 0) return;
  DVT_LAUNCH(rope_table_kernel, static_cast<unsigned>(blocks_for(n, kThreads)), kThreads, 0, stream,
             g_cos, g_sin, g_positions, g_inv_freq, n, half_len, attention_factor);
}

void rope_half_split(Stream stream, float* g_out, int64_t out_stride, const float* g_x,
                     int64_t x_stride, const float* g_cos, const float* g_sin, int64_t n_tokens,
                     int64_t n_heads, int64_t head_dim, int64_t half_len) {
  const int64_t n = n_tokens * n_heads * (head_dim - half_len);
  if (n == 0) return;
  const RopeArgs args{g_out,    g_x,      g_cos,   g_sin,    out_stride,
                      x_stride, n_tokens, n_heads, head_dim, half_len};
  DVT_LAUNCH(rope_half_split_kernel, static_cast<unsigned>(blocks_for(n, kThreads)), kThreads, 0,
             stream, args);
}

}  // namespace dovetail::kernels::cuda
