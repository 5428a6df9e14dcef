// What the decode kernels share: activations read as floats, normed and cut on their way to a product of one tile
// (linear_tile.hpp: 16 rows, up to 8 tokens, 128 threads), each by the one thread of a block that multiplies it.
#pragma once

#include <kernels/cuda_decode.hpp>

#include "kernels/cuda/norm_rows.hpp"
#include "kernels/cuda/weight_rows.hpp"

namespace dovetail::kernels::cuda {

/// Of a multiprocessor, at least: with four warps that each have kAhead blocks of k under way.
constexpr int kDecodeBlocks = 3;
static_assert(kDecodeTokens == kTileTokens && kTileTokens * kTileRows == kProductThreads);

/// The tokens of a step, and the norm before the product.
struct DecodeInput {
  const float* g_x;  // [n_tokens, k_len]
  DecodeNorm norm;
  int64_t n_tokens, k_len;
};

/// Shared memory of the norm: sums of warps, and what each token is multiplied by.
struct NormScales {
  float of_warps[kTileTokens][kLongRowWarps];
  float of_tokens[kTileTokens];
};
/// All threads of the block call it.
__device__ inline void find_scales(NormScales& s, const DecodeInput& in) {
  if (in.norm.g_weight == nullptr) return;
  const bool is_short = in.k_len <= kShortRow;
  const int n_warps = is_short ? 1 : kLongRowWarps;  // that rms_norm has for a row
  const int n_sums = static_cast<int>(in.n_tokens) * n_warps;
  for (int i = warp_of_block(); i < n_sums; i += kProductWarps) {
    const int token = i / n_warps, warp = i % n_warps;
    const float sum = lanes_sum(sum_of_squares(
        in.g_x + token * in.k_len, warp * kWarp + lane_of_warp(), n_warps * kWarp, in.k_len));
    if (lane_of_warp() == 0) s.of_warps[token][warp] = sum;
  }
  __syncthreads();
  const int token = static_cast<int>(threadIdx.x);
  if (token < in.n_tokens) {
    float sum = is_short ? s.of_warps[token][0] : 0.0F;
    for (int w = 0; w < kLongRowWarps && !is_short; ++w) sum += s.of_warps[token][w];
    s.of_tokens[token] = norm_scale(sum, in.k_len, in.norm.eps);
  }
  __syncthreads();
}

__device__ inline void load_eight(const float* g_from, int64_t n_left, bool is_aligned,
                                  float (&out)[8]) {
  if (n_left >= 8 && is_aligned) {
    const uint4 u = load16(g_from), v = load16(g_from + 4);
    const uint32_t words[8] = {u.x, u.y, u.z, u.w, v.x, v.y, v.z, v.w};
    DVT_UNROLL
    for (int i = 0; i < 8; ++i) out[i] = __uint_as_float(words[i]);
    return;
  }
  DVT_UNROLL
  for (int i = 0; i < 8; ++i) out[i] = i < n_left ? g_from[i] : 0.0F;
}

/// Numbers k .. k + 7 of this thread's token, normed and cut; zeros past the last one.
__device__ inline Eight<kCutParts> activations_of(const DecodeInput& in, const NormScales& s,
                                                  int64_t k) {
  const int token = lane_of_warp() / 4;
  if (token >= in.n_tokens || k >= in.k_len) return {};
  const bool is_aligned = in.k_len % 4 == 0;
  float x[8];
  load_eight(in.g_x + token * in.k_len + k, in.k_len - k, is_aligned, x);
  if (in.norm.g_weight != nullptr) {
    float weight[8];
    load_eight(in.norm.g_weight + k, in.k_len - k, is_aligned, weight);
    const float scale = s.of_tokens[token];
    DVT_UNROLL
    for (int i = 0; i < 8; ++i)
      x[i] = k + i < in.k_len ? normed(x[i], scale, weight[i], in.norm.weight_offset) : 0.0F;
  }
  return cut_eight<kCutParts>(x);
}

/// The sum of thread i: row i % 16 of the tile, token i / 16. All threads of the block call it; s_sums must not be
/// in use.
template <class Rows, int kAhead>
__device__ inline float product_of(WarpProduct<Rows, kAhead>& product, const DecodeInput& in,
                                   const NormScales& s, TileSums<1>& s_sums) {
  float sums[1][4] = {};
  product.add_to(sums, 1, [&](int, int64_t k) { return activations_of(in, s, k); });
  share_sums<1>(s_sums, sums);
  return sum_of(s_sums, static_cast<int>(threadIdx.x) / kTileRows,
                static_cast<int>(threadIdx.x) % kTileRows);
}

}  // namespace dovetail::kernels::cuda
