// The product of 16 rows of a matrix with up to 64 tokens, by the tensor cores.
//
// a block      16 rows of the matrix, 8 * kTiles tokens; 128 threads
// a warp       every fourth block of 32 k, for all the rows and tokens; shared memory brings the four sums
//              together: ((0 + 1) + (2 + 3)), so that an output's bits depend on its two rows alone
// a thread     of a block of k: numbers k = 8 * pair .. + 7 of rows `row` and `row` + 8 of the matrix, and of
//              token `row` of each tile of 8 tokens, with row = lane / 4 and pair = lane % 4. The
//              instruction's columns are those k in another order, the same for both factors.
// shared       4 * 8 * kTiles * 16 floats: 2 KiB for one tile, 16 KiB for eight
#pragma once

#include <kernels/cuda.hpp>

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/instructions.hpp"
#include "kernels/cuda/numbers.hpp"

namespace dovetail::kernels::cuda {

constexpr int kTileRows = 16, kTileTokens = 8, kProductWarps = 4, kProductThreads = 128;
constexpr int kBlockLen = 32;  // k of a block

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

/// The product of a block's rows (weight_rows.hpp) as far as one warp makes it: the first blocks of k are loaded
/// when this is made, each further one kAhead blocks before it is multiplied.
template <class Rows, int kAhead>
class WarpProduct {
 public:
  __device__ WarpProduct(const Rows& rows, int64_t k_len)
      : rows_(rows), n_blocks_(blocks_for(k_len, kBlockLen)) {
    DVT_UNROLL
    for (int i = 0; i < kAhead; ++i) load(i, warp_of_block() + i * kProductWarps);
  }

  /// sums[tile] of the tokens; eight(tile, k) gives numbers k .. k + 7 of this thread's token, cut.
  template <int kTiles, class EightOf>
  __device__ void add_to(float (&sums)[kTiles][4], int n_tiles, const EightOf& eight) {
    for (int64_t first = warp_of_block(); first < n_blocks_; first += kAhead * kProductWarps) {
      DVT_UNROLL
      for (int i = 0; i < kAhead; ++i) {
        const int64_t block = first + i * kProductWarps;
        if (block >= n_blocks_) break;
        const typename Rows::Block weights = ahead_[i];
        load(i, block + kAhead * kProductWarps);
        DVT_UNROLL
        for (int tile = 0; tile < kTiles; ++tile)
          if (tile < n_tiles)
            rows_.multiply(sums[tile], weights,
                           eight(tile, block * kBlockLen + 8 * (lane_of_warp() % 4)));
      }
    }
    DVT_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) rows_.finish(sums[tile]);
  }

 private:
  __device__ void load(int i, int64_t block) {
    if (block < n_blocks_) ahead_[i] = rows_.load(block);
  }

  Rows rows_;
  int64_t n_blocks_;
  typename Rows::Block ahead_[kAhead] = {};
};

/// Where the warps of a block bring their sums together.
template <int kTiles>
using TileSums = float[kProductWarps][kTiles * kTileTokens][kTileRows];

/// All threads call it; afterwards sum_of() has the sums.
template <int kTiles>
__device__ inline void share_sums(TileSums<kTiles>& s_sums, const float (&sums)[kTiles][4]) {
  const int lane = lane_of_warp(), row = lane / 4, pair = lane % 4;
  DVT_UNROLL
  for (int tile = 0; tile < kTiles; ++tile) DVT_UNROLL
  for (int i = 0; i < 4; ++i)
    s_sums[warp_of_block()][tile * kTileTokens + 2 * pair + i % 2][row + 8 * (i / 2)] =
        sums[tile][i];
  __syncthreads();
}
template <class Sums>
__device__ inline float sum_of(const Sums& s_sums, int token, int row) {
  return (s_sums[0][token][row] + s_sums[1][token][row]) +
         (s_sums[2][token][row] + s_sums[3][token][row]);
}

}  // namespace dovetail::kernels::cuda
