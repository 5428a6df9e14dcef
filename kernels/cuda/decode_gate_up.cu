// decode_gate_up for CUDA: norm + two products + SwiGLU for up to 8 tokens; contract in kernels/cuda_decode.hpp,
// oracle: the launches of rms_norm, cut_activations, linear and silu_mul. Bound by reading the weights.
// grid, block  16 rows of both matrices; 128 threads
// a thread     of the products: linear_tile.hpp; of the result: row threadIdx.x % 16, token threadIdx.x / 16
// shared       4.3 KiB. Occupancy is limited by registers.
// A block asks for its first weights before it looks at the activations.
#include "kernels/cuda/decode_tile.hpp"
#include "kernels/cuda/silu.hpp"

namespace dovetail::kernels::cuda {
namespace {

struct GateUpArgs {
  DecodeInput in;
  float* g_y;
  const void *g_gate, *g_up;
  const float *g_gate_bias, *g_up_bias;
  int64_t n_rows;
};

template <class Rows>
__global__ void __launch_bounds__(kProductThreads, kDecodeBlocks)
    decode_gate_up_kernel(GateUpArgs args) {
  DVT_SHARED(float, s_gate, [kProductWarps][kTileTokens][kTileRows]);
  DVT_SHARED(float, s_up, [kProductWarps][kTileTokens][kTileRows]);
  DVT_SHARED(NormScales, s_scales, [1]);
  const int64_t first_row = int64_t{blockIdx.x} * kTileRows, k_len = args.in.k_len;
  constexpr int kAhead = Rows::kAhead / 2;  // of each
  WarpProduct<Rows, kAhead> gate(Rows(args.g_gate, first_row, args.n_rows, k_len), k_len);
  WarpProduct<Rows, kAhead> up(Rows(args.g_up, first_row, args.n_rows, k_len), k_len);
  find_scales(s_scales[0], args.in);
  float gate_sum = product_of(gate, args.in, s_scales[0], s_gate);
  float up_sum = product_of(up, args.in, s_scales[0], s_up);
  const int64_t token = threadIdx.x / kTileRows, row = first_row + threadIdx.x % kTileRows;
  if (token >= args.in.n_tokens || row >= args.n_rows) return;
  if (args.g_gate_bias != nullptr) gate_sum += args.g_gate_bias[row];
  if (args.g_up_bias != nullptr) up_sum += args.g_up_bias[row];
  args.g_y[token * args.n_rows + row] = silu_of(gate_sum) * up_sum;
}

}  // namespace

void decode_gate_up(Stream stream, float* g_y, const float* g_x, const DecodeNorm& norm,
                    const Matrix& gate, const Matrix& up, const float* g_gate_bias,
                    const float* g_up_bias, int64_t n_tokens) {
  if (n_tokens == 0 || gate.n_rows == 0) return;
  const GateUpArgs args{{g_x, norm, n_tokens, gate.k_len},
                        g_y,
                        gate.g_w,
                        up.g_w,
                        g_gate_bias,
                        g_up_bias,
                        gate.n_rows};
  const auto n_blocks = static_cast<unsigned>(blocks_for(gate.n_rows, kTileRows));
  with_rows(gate.numbers, [&]<class Rows>() {
    DVT_LAUNCH(decode_gate_up_kernel<Rows>, n_blocks, kProductThreads, 0, stream, args);
  });
}

}  // namespace dovetail::kernels::cuda
