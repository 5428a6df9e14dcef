// linear over packed weights for CUDA; contract in kernels/cuda.hpp, formats in kernels/weight_formats.hpp,
// oracle: the product with the numbers of unpack_row. The work is cut as linear_tile.hpp says; a block of k
// is one with a scale of its own, its levels whole numbers that bfloat16 holds exactly. Bound by reading the
// weights, once per 8 (64) tokens; int4 and int6 by taking them apart.
#include "kernels/cuda/linear_tile.hpp"
#include "kernels/cuda/packed_numbers.hpp"

namespace dovetail::kernels::cuda {
namespace {

static_assert(kBlockLen == kQuantBlock && kTileRows == kPackedRows);

template <WeightFormat kFormat, int kTiles>
__global__ void __launch_bounds__(kProductThreads) linear_packed_kernel(ProductArgs args) {
  const int row = lane_of_warp() / 4, pair = lane_of_warp() % 4;
  const int64_t first_row = int64_t{blockIdx.x} * kTileRows;
  const int64_t first_token = int64_t{blockIdx.y} * kTiles * kTileTokens;
  const auto* g_packed = static_cast<const uint8_t*>(args.g_w);
  // Rows that fill up the last group are there, as zeros.
  const PackedRow<kFormat> rows[2] = {{g_packed, first_row + row, args.k_len},
                                      {g_packed, first_row + row + 8, args.k_len}};
  float sums[kTiles][4] = {};
  for (int64_t block = warp_of_block(); block * kBlockLen < args.k_len; block += kProductWarps) {
    Eight<1> weights[2];
    float scales[2];
    DVT_UNROLL
    for (int r = 0; r < 2; ++r) {
      const PackedBlock<kFormat> packed(rows[r], block);
      int32_t levels[8];
      packed.eight_values(8 * pair, levels);
      DVT_UNROLL
      for (int i = 0; i < 4; ++i)
        weights[r].pairs[0][i] =
            pair_of(static_cast<float>(levels[2 * i]), static_cast<float>(levels[2 * i + 1]));
      scales[r] = packed.scale;
    }
    DVT_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) {
      const int64_t tile_token = first_token + tile * kTileTokens;
      if (tile_token >= args.n_tokens) continue;
      float of_block[4] = {};
      multiply_eight(of_block, weights[0], weights[1],
                     activations_of(args, tile_token + row, block * kBlockLen + 8 * pair));
      DVT_UNROLL
      for (int i = 0; i < 4; ++i) sums[tile][i] = fmaf(of_block[i], scales[i / 2], sums[tile][i]);
    }
  }
  DVT_UNROLL
  for (int tile = 0; tile < kTiles; ++tile) DVT_UNROLL
  for (int i = 0; i < 4; ++i) sums[tile][i] *= rows[i / 2].d;
  store_product(args, sums, first_row, first_token);
}

template <WeightFormat kFormat>
void linear_of(Stream stream, const ProductArgs& args) {
  launch_product(args.n_tokens, args.n_rows, [&](dim3 grid, bool is_one_tile) {
    if (is_one_tile)
      DVT_LAUNCH((linear_packed_kernel<kFormat, 1>), grid, kProductThreads, 0, stream, args);
    else
      DVT_LAUNCH((linear_packed_kernel<kFormat, 8>), grid, kProductThreads, 0, stream, args);
  });
}

}  // namespace

void linear_packed(Stream stream, float* g_y, const void* g_cut, const void* g_packed,
                   WeightFormat format, const float* g_bias, Store store, int64_t n_tokens,
                   int64_t n_rows, int64_t k_len) {
  const ProductArgs args{
      g_y, static_cast<const uint16_t*>(g_cut), g_packed, g_bias, n_tokens, n_rows, k_len, store};
  switch (format) {
    case WeightFormat::kInt8:
      return linear_of<WeightFormat::kInt8>(stream, args);
    case WeightFormat::kInt4:
      return linear_of<WeightFormat::kInt4>(stream, args);
    case WeightFormat::kInt4q:
      return linear_of<WeightFormat::kInt4q>(stream, args);
    case WeightFormat::kInt6:
      return linear_of<WeightFormat::kInt6>(stream, args);
  }
}

}  // namespace dovetail::kernels::cuda
