// decode_qkv for CUDA: norm + q, k and v + norms of heads + rope + cache for up to 8 tokens; contract in
// kernels/cuda_decode.hpp, oracle: the launches of rms_norm, cut_activations, linear, rope_half_split and
// cache_write. Bound by reading the weights.
// grid, block  16 rows of one head of q, k or v; 128 threads
// a thread     of the product: linear_tile.hpp; of its result: row threadIdx.x % 16, token threadIdx.x / 16
// a warp       of the last block of a head: every fourth token, once all of the head's products are there
// shared       6.3 KiB. Occupancy is limited by registers.
// A block asks for its first weights before it looks at the activations.
#include "kernels/cuda/cached_store.hpp"
#include "kernels/cuda/decode_tile.hpp"
#include "kernels/cuda/last_block.hpp"

namespace dovetail::kernels::cuda {
namespace {

enum class Part { kQ, kK, kV };

/// The head that a block works on.
struct Head {
  __device__ Head(const DecodeQkv& args, int64_t of_all) {
    const int64_t n_kv = args.layout.n_kv_heads;
    if (of_all < args.n_heads) {
      part = Part::kQ, index = of_all;
    } else {
      part = of_all < args.n_heads + n_kv ? Part::kK : Part::kV;
      index = (of_all - args.n_heads) % n_kv;
    }
  }
  __device__ const DecodeHeads& of(const DecodeQkv& args) const {
    return part == Part::kQ ? args.q : part == Part::kK ? args.k : args.v;
  }
  Part part;
  int64_t index;  // among those of its part
};

/// One token's row of a head, normed and turned as its part is: s_row [head_dim]. By a warp.
__device__ inline void finish_row(const DecodeQkv& args, const Head& head, int64_t token,
                                  const float* g_product, float* s_row) {
  const int64_t head_dim = args.layout.head_dim;
  const DecodeNorm& norm = head.of(args).norm;
  for (int64_t i = lane_of_warp(); i < head_dim; i += kWarp) s_row[i] = load_fresh(g_product + i);
  __syncwarp();
  if (norm.g_weight != nullptr) {
    const float sum = lanes_sum(sum_of_squares(s_row, lane_of_warp(), kWarp, head_dim));
    const float scale = norm_scale(sum, head_dim, norm.eps);
    for (int64_t i = lane_of_warp(); i < head_dim; i += kWarp)
      s_row[i] = normed(s_row[i], scale, norm.g_weight[i], norm.weight_offset);
    __syncwarp();
  }
  if (head.part == Part::kV) return;
  const float *g_cos = args.g_cos + token * args.half_len,
              *g_sin = args.g_sin + token * args.half_len;
  for (int64_t i = lane_of_warp(); i < args.half_len; i += kWarp) {
    const float c = g_cos[i], s = g_sin[i];
    const float first = s_row[i], second = s_row[i + args.half_len];
    s_row[i] = first * c - second * s;
    s_row[i + args.half_len] = second * c + first * s;
  }
  __syncwarp();
}

template <class Element>
__device__ inline void write_row(const DecodeQkv& args, void* g_base, int64_t head, int64_t token,
                                 const float* s_row) {
  const StepRows& step = args.step;
  store_row(static_cast<Element*>(g_base) +
                row_offset<Element>(args.layout, step.g_pages + step.g_page_begin[token], head,
                                    step.g_positions[token]),
            s_row, args.layout.head_dim);
}
__device__ inline void store_finished(const DecodeQkv& args, const Head& head, int64_t token,
                                      const float* s_row) {
  if (head.part == Part::kQ) {
    store_row(args.g_q + (token * args.n_heads + head.index) * args.layout.head_dim, s_row,
              args.layout.head_dim);
    return;
  }
  void* g_base = head.part == Part::kK ? args.g_keys : args.g_values;
  if (args.cache == CacheNumbers::kFloat32)
    write_row<float>(args, g_base, head.index, token, s_row);
  else if (args.cache == CacheNumbers::kBf16)
    write_row<uint16_t>(args, g_base, head.index, token, s_row);
  else
    write_row<int8_t>(args, g_base, head.index, token, s_row);
}

template <class Rows>
__global__ void __launch_bounds__(kProductThreads, kDecodeBlocks)
    decode_qkv_kernel(DecodeQkv args) {
  DVT_SHARED(float, s_sums, [kProductWarps][kTileTokens][kTileRows]);
  DVT_SHARED(NormScales, s_scales, [1]);
  DVT_SHARED(float, s_rows, [kProductWarps][kMaxHeadDim]);
  DVT_SHARED(uint32_t, s_is_last, [1]);
  const int64_t head_dim = args.layout.head_dim, n_tiles = blocks_for(head_dim, kTileRows);
  const int64_t head_of_all = blockIdx.x / n_tiles;
  const Head head(args, head_of_all);
  const DecodeHeads& heads = head.of(args);
  const int64_t first_of_head = blockIdx.x % n_tiles * kTileRows;
  const int64_t first_row = head.index * head_dim + first_of_head;
  const DecodeInput in{args.g_x, args.norm, args.step.n_tokens, args.k_len};
  WarpProduct<Rows, Rows::kAhead> product(
      Rows(heads.g_w, first_row, (head.index + 1) * head_dim, args.k_len), args.k_len);
  find_scales(s_scales[0], in);
  float sum = product_of(product, in, s_scales[0], s_sums);

  float* g_products = args.g_products + head_of_all * kDecodeTokens * head_dim;
  const int64_t token = threadIdx.x / kTileRows, row = threadIdx.x % kTileRows;
  if (token < in.n_tokens && first_of_head + row < head_dim) {
    if (heads.g_bias != nullptr) sum += heads.g_bias[first_row + row];
    g_products[token * head_dim + first_of_head + row] = sum;
  }
  if (!is_last_block(args.g_arrived + head_of_all, static_cast<uint32_t>(n_tiles), s_is_last[0]))
    return;
  for (int64_t t = warp_of_block(); t < in.n_tokens; t += kProductWarps) {
    float* s_row = s_rows[warp_of_block()];
    finish_row(args, head, t, g_products + t * head_dim, s_row);
    store_finished(args, head, t, s_row);
    __syncwarp();
  }
}

}  // namespace

void decode_qkv(Stream stream, const DecodeQkv& args) {
  if (args.step.n_tokens == 0) return;
  const int64_t n_heads = args.n_heads + 2 * args.layout.n_kv_heads;
  const auto n_blocks =
      static_cast<unsigned>(n_heads * blocks_for(args.layout.head_dim, kTileRows));
  with_rows(args.numbers, [&]<class Rows>() {
    DVT_LAUNCH(decode_qkv_kernel<Rows>, n_blocks, kProductThreads, 0, stream, args);
  });
}

}  // namespace dovetail::kernels::cuda
