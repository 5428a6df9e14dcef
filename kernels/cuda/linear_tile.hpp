// The product of both kinds of weights: 16 rows of a matrix with up to 64 tokens, by the tensor cores.
//
// grid, block  x: 16 rows of the matrix; y: 8 * kTiles tokens; 128 threads
// a warp       every fourth block of 32 k, for all the rows and tokens; shared memory brings the four sums
//              together: ((0 + 1) + (2 + 3)), so that an output's bits depend on its two rows alone
// a thread     of a block of k: numbers k = 8 * pair .. + 7 of rows `row` and `row` + 8 of the matrix, and of
//              token `row` of each tile of 8 tokens, with row = lane / 4 and pair = lane % 4. The
//              instruction's columns are those k in another order, the same for both factors.
// shared       4 * 8 * kTiles * 16 floats: 2 KiB for one tile, 16 KiB for eight
// Occupancy is limited by registers (the table of tests/kernels/cuda/resources.txt).
#pragma once

#include <kernels/cuda.hpp>

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/instructions.hpp"
#include "kernels/cuda/numbers.hpp"

namespace dovetail::kernels::cuda {

constexpr int kTileRows = 16, kTileTokens = 8, kProductWarps = 4, kProductThreads = 128;
constexpr int kBlockLen = 32;  // k of a block

struct ProductArgs {
  float* g_y;
  const uint16_t* g_cut;
  const void* g_w;
  const float* g_bias;
  int64_t n_tokens, n_rows, k_len;
  Store store;
};

/// Eight numbers along k, cut in parts, as pairs of bfloat16.
template <int kParts>
struct Eight {
  uint32_t pairs[kParts][4];
};
/// The eight numbers, cut.
template <int kParts>
__device__ inline Eight<kParts> cut_eight(const float (&values)[8]) {
  Eight<kParts> out;
  DVT_UNROLL
  for (int i = 0; i < 4; ++i) {
    float first[kParts], second[kParts];
    cut_in_parts(values[2 * i], first);
    cut_in_parts(values[2 * i + 1], second);
    DVT_UNROLL
    for (int p = 0; p < kParts; ++p) out.pairs[p][i] = pair_of(first[p], second[p]);
  }
  return out;
}

/// A thread's eight numbers of one token, or zeros past the last one.
__device__ inline Eight<kCutParts> activations_of(const ProductArgs& args, int64_t token,
                                                  int64_t k) {
  Eight<kCutParts> out{};
  if (token >= args.n_tokens) return out;
  const int64_t row_len = cut_row_len(args.k_len);
  DVT_UNROLL
  for (int p = 0; p < kCutParts; ++p) {
    const uint4 v = load16(args.g_cut + (p * args.n_tokens + token) * row_len + k);
    out.pairs[p][0] = v.x, out.pairs[p][1] = v.y, out.pairs[p][2] = v.z, out.pairs[p][3] = v.w;
  }
  return out;
}

/// sum += the products of a block of k, of all parts that matter: those below 2^-24 of the product do not.
template <int kParts>
__device__ inline void multiply_eight(float (&sum)[4], const Eight<kParts>& low_row,
                                      const Eight<kParts>& high_row, const Eight<kCutParts>& x) {
  DVT_UNROLL
  for (int half = 0; half < 2; ++half) DVT_UNROLL
  for (int p = 0; p < kParts; ++p) DVT_UNROLL
  for (int q = 0; p + q < kCutParts; ++q) {
    const uint32_t a[4] = {low_row.pairs[p][2 * half], high_row.pairs[p][2 * half],
                           low_row.pairs[p][2 * half + 1], high_row.pairs[p][2 * half + 1]};
    const uint32_t b[2] = {x.pairs[q][2 * half], x.pairs[q][2 * half + 1]};
    multiply_bf16(sum, a, b);
  }
}

/// Brings the warps' sums of a block together and stores them.
template <int kTiles>
__device__ inline void store_product(const ProductArgs& args, const float (&sums)[kTiles][4],
                                     int64_t first_row, int64_t first_token) {
  DVT_SHARED(float, s_sums, [kProductWarps][kTiles * kTileTokens][kTileRows]);
  const int lane = lane_of_warp(), row = lane / 4, pair = lane % 4;
  DVT_UNROLL
  for (int tile = 0; tile < kTiles; ++tile) DVT_UNROLL
  for (int i = 0; i < 4; ++i)
    s_sums[warp_of_block()][tile * kTileTokens + 2 * pair + i % 2][row + 8 * (i / 2)] =
        sums[tile][i];
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kTiles * kTileTokens * kTileRows;
       i += kProductThreads) {
    const int64_t token = first_token + i / kTileRows, n = first_row + i % kTileRows;
    if (token >= args.n_tokens || n >= args.n_rows) continue;
    const int t = i / kTileRows, r = i % kTileRows;
    float sum = (s_sums[0][t][r] + s_sums[1][t][r]) + (s_sums[2][t][r] + s_sums[3][t][r]);
    if (args.g_bias != nullptr) sum += args.g_bias[n];
    float* g_to = args.g_y + token * args.n_rows + n;
    *g_to = args.store == Store::kAdd ? *g_to + sum : sum;
  }
}

/// Launches kernel_of(tiles) with as many tiles as suit the tokens.
template <class Launch>
void launch_product(int64_t n_tokens, int64_t n_rows, const Launch& launch) {
  if (n_tokens == 0 || n_rows == 0) return;
  const auto rows = static_cast<unsigned>(blocks_for(n_rows, kTileRows));
  const int64_t tokens = n_tokens <= kTileTokens ? kTileTokens : 8 * kTileTokens;
  launch(dim3(rows, static_cast<unsigned>(blocks_for(n_tokens, tokens))), tokens == kTileTokens);
}

}  // namespace dovetail::kernels::cuda
