// linear for CUDA, and the activations that it reads; contracts in kernels/cuda.hpp and kernels/linear.hpp,
// oracles in kernels/ref/linear.cpp and, for packed weights, the product with the numbers of unpack_row. Bound by
// reading the weights, once per 8 (64) tokens; with many tokens by the tensor cores; int4 and int6 by taking
// them apart.
// grid, block  x: 16 rows of the matrix; y: 8 * kTiles tokens; 128 threads, whose work linear_tile.hpp says
// shared       2 KiB for one tile, 16 KiB for eight
// Occupancy is limited by registers (the table of tests/kernels/cuda/resources.txt).
#include "kernels/cuda/weight_rows.hpp"

namespace dovetail::kernels::cuda {
namespace {

struct LinearArgs {
  float* g_y;
  const uint16_t* g_cut;
  const void* g_w;
  const float *g_bias, *g_residual;
  int64_t n_tokens, n_rows, k_len;
};

/// A thread's eight numbers of one token, or zeros past the last one.
__device__ inline Eight<kCutParts> activations_of(const LinearArgs& args, int64_t token,
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

template <class Rows, int kTiles>
__global__ void __launch_bounds__(kProductThreads) linear_kernel(LinearArgs args) {
  DVT_SHARED(float, s_sums, [kProductWarps][kTiles * kTileTokens][kTileRows]);
  const int64_t first_row = int64_t{blockIdx.x} * kTileRows;
  const int64_t first_token = int64_t{blockIdx.y} * kTiles * kTileTokens;
  const int64_t tiles_left = blocks_for(args.n_tokens - first_token, kTileTokens);
  WarpProduct<Rows, 1> product(Rows(args.g_w, first_row, args.n_rows, args.k_len), args.k_len);
  float sums[kTiles][4] = {};
  product.add_to(
      sums, tiles_left < kTiles ? static_cast<int>(tiles_left) : kTiles, [&](int tile, int64_t k) {
        return activations_of(args, first_token + tile * kTileTokens + lane_of_warp() / 4, k);
      });
  share_sums<kTiles>(s_sums, sums);
  for (int i = static_cast<int>(threadIdx.x); i < kTiles * kTileTokens * kTileRows;
       i += kProductThreads) {
    const int64_t token = first_token + i / kTileRows, n = first_row + i % kTileRows;
    if (token >= args.n_tokens || n >= args.n_rows) continue;
    float sum = sum_of(s_sums, i / kTileRows, i % kTileRows);
    if (args.g_bias != nullptr) sum += args.g_bias[n];
    const int64_t at = token * args.n_rows + n;
    args.g_y[at] = args.g_residual != nullptr ? args.g_residual[at] + sum : sum;
  }
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

void linear(Stream stream, float* g_y, const void* g_cut, const Matrix& w, const float* g_bias,
            const float* g_residual, int64_t n_tokens) {
  if (n_tokens == 0 || w.n_rows == 0) return;
  const LinearArgs args{
      g_y,    static_cast<const uint16_t*>(g_cut), w.g_w, g_bias, g_residual, n_tokens, w.n_rows,
      w.k_len};
  const int64_t tokens = n_tokens <= kTileTokens ? kTileTokens : 8 * kTileTokens;
  const dim3 grid(static_cast<unsigned>(blocks_for(w.n_rows, kTileRows)),
                  static_cast<unsigned>(blocks_for(n_tokens, tokens)));
  with_rows(w.numbers, [&]<class Rows>() {
    if (tokens == kTileTokens)
      DVT_LAUNCH((linear_kernel<Rows, 1>), grid, kProductThreads, 0, stream, args);
    else
      DVT_LAUNCH((linear_kernel<Rows, 8>), grid, kProductThreads, 0, stream, args);
  });
}

}  // namespace dovetail::kernels::cuda
