// Steps with few tokens on a CUDA device: several ops in one launch, with the bits of the launches of cuda.hpp that
// they stand for, one after another. What is said there of launches holds here too.
//
// Each weight is read once; what the norm or the activations need again, every block computes for itself.
#pragma once

#include <kernels/cuda.hpp>

namespace dovetail::kernels::cuda {

/// The most tokens of these launches.
constexpr int64_t kDecodeTokens = 8;

/// rms_norm of the activations before a product.
struct DecodeNorm {
  const float* g_weight;  // [k_len]; null: they are taken as they are
  float eps, weight_offset;
};

/// cut_activations(rms_norm(x)) and linear.
///
/// shapes    g_x [n_tokens, k_len]; else as in linear. n_tokens <= kDecodeTokens.
void decode_linear(Stream stream, float* g_y, const float* g_x, const DecodeNorm& norm,
                   const Matrix& w, const float* g_bias, const float* g_residual, int64_t n_tokens);

/// silu_mul of two products of rms_norm(x): y = silu(gate) * up.
///
/// shapes    g_y [n_tokens, n_rows]; both matrices alike, their biases [n_rows] or null.
void decode_gate_up(Stream stream, float* g_y, const float* g_x, const DecodeNorm& norm,
                    const Matrix& gate, const Matrix& up, const float* g_gate_bias,
                    const float* g_up_bias, int64_t n_tokens);

/// What a cache's elements are.
enum class CacheNumbers { kFloat32, kBf16, kInt8 };

/// One of q, k and v: heads of a product, and an rms_norm over each head where it has a weight.
struct DecodeHeads {
  const void* g_w;      // [n heads * head_dim, k_len]
  const float* g_bias;  // [n heads * head_dim] or null
  DecodeNorm norm;      // g_weight [head_dim]
};
/// q, k and v from rms_norm(x): heads normed, q and k turned by rope_half_split, k and v written to the cache.
struct DecodeQkv {
  const float* g_x;  // [n_tokens, k_len]
  DecodeNorm norm;
  DecodeHeads q, k, v;
  MatrixNumbers numbers;  // of all three
  int64_t k_len, n_heads;
  const float *g_cos, *g_sin;  // [n_tokens, half_len]
  int64_t half_len;
  float* g_q;       // out: [n_tokens, n_heads, head_dim]
  KvLayout layout;  // of keys and of values; head_dim <= kMaxHeadDim
  CacheNumbers cache;
  void *g_keys, *g_values;
  StepRows step;        // its tokens are those of x
  float* g_products;    // decode_qkv_products_len() floats
  uint32_t* g_arrived;  // n_heads + 2 * n_kv_heads, zeros before and after
};
constexpr int64_t decode_qkv_products_len(int64_t n_heads, int64_t n_kv_heads, int64_t head_dim) {
  return (n_heads + 2 * n_kv_heads) * kDecodeTokens * head_dim;
}
void decode_qkv(Stream stream, const DecodeQkv& args);

}  // namespace dovetail::kernels::cuda
