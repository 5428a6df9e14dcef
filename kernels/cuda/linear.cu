// linear over plain weights for CUDA, and the activations that it reads; contracts in kernels/cuda.hpp and
// kernels/linear.hpp, oracle in kernels/ref/linear.cpp. The work is cut as linear_tile.hpp says. Bound by
// reading the weights, once per 8 (64) tokens; with many tokens by the tensor cores.
#include "kernels/cuda/linear_tile.hpp"

namespace dovetail::kernels::cuda {
namespace {

/// In how many bfloat16 a weight is cut: exactly.
template <class Weight>
constexpr int kWeightParts = 1;
template <>
constexpr int kWeightParts<F16> = 2;
template <>
constexpr int kWeightParts<float> = 3;

/// Whether a thread's eight numbers lie on 16 bytes in every row.
template <class Weight>
__device__ bool has_aligned_rows(int64_t k_len) {
  return k_len % (16 / static_cast<int64_t>(sizeof(Weight))) == 0;
}

/// Weights k .. k + 7 of a row, zeros where the row or the matrix ends.
template <class Weight>
__device__ Eight<kWeightParts<Weight>> weights_of(const ProductArgs& args, int64_t row, int64_t k) {
  constexpr int kParts = kWeightParts<Weight>;
  if (row >= args.n_rows || k >= args.k_len) return {};
  const Weight* g_from = static_cast<const Weight*>(args.g_w) + row * args.k_len + k;
  const bool is_whole = k + 8 <= args.k_len && has_aligned_rows<Weight>(args.k_len);
  if constexpr (sizeof(Weight) == 2) {
    if (is_whole) {
      const uint4 v = load16(g_from);
      if constexpr (kParts == 1) return {{{v.x, v.y, v.z, v.w}}};
      const uint32_t words[4] = {v.x, v.y, v.z, v.w};
      float values[8];
      DVT_UNROLL
      for (int i = 0; i < 8; ++i)
        values[i] = widen(Weight{static_cast<uint16_t>(words[i / 2] >> i % 2 * 16)});
      return cut_eight<kParts>(values);
    }
  } else if (is_whole) {
    const uint4 u = load16(g_from), v = load16(g_from + 4);
    const uint32_t words[8] = {u.x, u.y, u.z, u.w, v.x, v.y, v.z, v.w};
    float values[8];
    DVT_UNROLL
    for (int i = 0; i < 8; ++i) values[i] = __uint_as_float(words[i]);
    return cut_eight<kParts>(values);
  }
  float values[8];
  DVT_UNROLL
  for (int i = 0; i < 8; ++i) values[i] = k + i < args.k_len ? widen(g_from[i]) : 0.0F;
  return cut_eight<kParts>(values);
}

template <class Weight, int kTiles>
__global__ void __launch_bounds__(kProductThreads) linear_kernel(ProductArgs args) {
  const int row = lane_of_warp() / 4, pair = lane_of_warp() % 4;
  const int64_t first_row = int64_t{blockIdx.x} * kTileRows;
  const int64_t first_token = int64_t{blockIdx.y} * kTiles * kTileTokens;
  float sums[kTiles][4] = {};
  for (int64_t block = warp_of_block(); block * kBlockLen < args.k_len; block += kProductWarps) {
    const int64_t k = block * kBlockLen + 8 * pair;
    const auto low_row = weights_of<Weight>(args, first_row + row, k);
    const auto high_row = weights_of<Weight>(args, first_row + row + 8, k);
    DVT_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) {
      const int64_t tile_token = first_token + tile * kTileTokens;
      if (tile_token < args.n_tokens)
        multiply_eight(sums[tile], low_row, high_row, activations_of(args, tile_token + row, k));
    }
  }
  store_product(args, sums, first_row, first_token);
}

template <class Weight>
void linear_of(Stream stream, const ProductArgs& args) {
  launch_product(args.n_tokens, args.n_rows, [&](dim3 grid, bool is_one_tile) {
    if (is_one_tile)
      DVT_LAUNCH((linear_kernel<Weight, 1>), grid, kProductThreads, 0, stream, args);
    else
      DVT_LAUNCH((linear_kernel<Weight, 8>), grid, kProductThreads, 0, stream, args);
  });
}

constexpr int kCutThreads = 256;
__global__ void __launch_bounds__(kCutThreads)
    cut_activations_kernel(uint16_t* g_cut, const float* g_x, int64_t n_tokens, int64_t k_len) {
  const int64_t row_len = cut_row_len(k_len), n = n_tokens * row_len;
  const int64_t i = int64_t{blockIdx.x} * kCutThreads + threadIdx.x;
  if (i >= n) return;
  const int64_t k = i % row_len;
  float parts[kCutParts];
  cut_in_parts(k < k_len ? g_x[i / row_len * k_len + k] : 0.0F, parts);
  DVT_UNROLL
  for (int p = 0; p < kCutParts; ++p)
    g_cut[p * n + i] = static_cast<uint16_t>(__float_as_uint(parts[p]) >> 16);
}

}  // namespace

void cut_activations(Stream stream, void* g_cut, const float* g_x, int64_t n_tokens,
                     int64_t k_len) {
  const int64_t n = n_tokens * cut_row_len(k_len);
  if (n == 0) return;
  DVT_LAUNCH(cut_activations_kernel, static_cast<unsigned>(blocks_for(n, kCutThreads)), kCutThreads,
             0, stream, static_cast<uint16_t*>(g_cut), g_x, n_tokens, k_len);
}

void linear(Stream stream, float* g_y, const void* g_cut, const float* g_w, const float* g_bias,
            Store store, int64_t n_tokens, int64_t n_rows, int64_t k_len) {
  linear_of<float>(stream, {g_y, static_cast<const uint16_t*>(g_cut), g_w, g_bias, n_tokens, n_rows,
                            k_len, store});
}
void linear(Stream stream, float* g_y, const void* g_cut, const uint16_t* g_w, const float* g_bias,
            Store store, int64_t n_tokens, int64_t n_rows, int64_t k_len) {
  linear_of<uint16_t>(stream, {g_y, static_cast<const uint16_t*>(g_cut), g_w, g_bias, n_tokens,
                               n_rows, k_len, store});
}
void linear(Stream stream, float* g_y, const void* g_cut, const F16* g_w, const float* g_bias,
            Store store, int64_t n_tokens, int64_t n_rows, int64_t k_len) {
  linear_of<F16>(stream, {g_y, static_cast<const uint16_t*>(g_cut), g_w, g_bias, n_tokens, n_rows,
                          k_len, store});
}

}  // namespace dovetail::kernels::cuda
