// decode_linear for CUDA: (norm +) product (+ residual) for up to 8 tokens; contract in kernels/cuda_decode.hpp,
// oracle: the launches of rms_norm, cut_activations and linear. Bound by reading the weights.
// grid, block  16 rows of the matrix; 128 threads
// a thread     of the product: linear_tile.hpp; of the result: row threadIdx.x % 16, token threadIdx.x / 16
// shared       2.3 KiB. Occupancy is limited by registers.
// A block asks for its first weights before it looks at the activations.
#include "kernels/cuda/decode_tile.hpp"

namespace dovetail::kernels::cuda {
namespace {

struct DecodeLinearArgs {
  DecodeInput in;
  float* g_y;
  const void* g_w;
  const float *g_bias, *g_residual;
  int64_t n_rows;
};

template <class Rows>
__global__ void __launch_bounds__(kProductThreads, kDecodeBlocks)
    decode_linear_kernel(DecodeLinearArgs args) {
  DVT_SHARED(float, s_sums, [kProductWarps][kTileTokens][kTileRows]);
  DVT_SHARED(NormScales, s_scales, [1]);
  const int64_t first_row = int64_t{blockIdx.x} * kTileRows;
  WarpProduct<Rows, Rows::kAhead> product(Rows(args.g_w, first_row, args.n_rows, args.in.k_len),
                                          args.in.k_len);
  find_scales(s_scales[0], args.in);
  float sum = product_of(product, args.in, s_scales[0], s_sums);
  const int64_t token = threadIdx.x / kTileRows, row = first_row + threadIdx.x % kTileRows;
  if (token >= args.in.n_tokens || row >= args.n_rows) return;
  if (args.g_bias != nullptr) sum += args.g_bias[row];
  const int64_t at = token * args.n_rows + row;
  args.g_y[at] = args.g_residual != nullptr ? args.g_residual[at] + sum : sum;
}

}  // namespace

void decode_linear(Stream stream, float* g_y, const float* g_x, const DecodeNorm& norm,
                   const Matrix& w, const float* g_bias, const float* g_residual,
                   int64_t n_tokens) {
  if (n_tokens == 0 || w.n_rows == 0) return;
  const DecodeLinearArgs args{
      {g_x, norm, n_tokens, w.k_len}, g_y, w.g_w, g_bias, g_residual, w.n_rows};
  const auto n_blocks = static_cast<unsigned>(blocks_for(w.n_rows, kTileRows));
  with_rows(w.numbers, [&]<class Rows>() {
    DVT_LAUNCH(decode_linear_kernel<Rows>, n_blocks, kProductThreads, 0, stream, args);
  });
}

}  // namespace dovetail::kernels::cuda
