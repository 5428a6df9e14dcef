// rope_half_split on the vectors of any x86-64: V is the Vectors of avx2_math.hpp or avx512_math.hpp.
// Contract in kernels/rope.hpp, oracle in kernels/ref/rope.cpp.
// Bound by memory: one read of x, one write of out; a token's cosines stay in L1 for all its heads.
// No FMA: products and sums are rounded as in the oracle.
// The namespace is unnamed and everything included is C, as in avx2_math.hpp.
#pragma once

#include <stdint.h>
#include <string.h>

namespace dovetail::kernels {
namespace {

template <class V>
void rotate_head(float* out, const float* x, const float* cos, const float* sin, int64_t half_len) {
  using Vec = typename V::Vec;
  const auto rotate = [&](int64_t i, const auto& load, const auto& store) {
    const Vec c = load(cos + i);
    const Vec s = load(sin + i);
    const Vec first = load(x + i);
    const Vec second = load(x + half_len + i);
    store(out + i, V::sub(V::mul(first, c), V::mul(second, s)));
    store(out + half_len + i, V::add(V::mul(second, c), V::mul(first, s)));
  };
  int64_t i = 0;
  for (; i + V::kLanes <= half_len; i += V::kLanes) {
    rotate(
        i, [](const float* p) { return V::load(p); }, [](float* p, Vec v) { V::store(p, v); });
  }
  const int64_t rest = half_len - i;
  if (rest == 0) return;
  rotate(
      i, [&](const float* p) { return V::load_first(p, rest); },
      [&](float* p, Vec v) { V::store_first(p, v, rest); });
}

template <class V>
void rope_half_split_rows(float* out, int64_t out_stride, const float* x, int64_t x_stride,
                          const float* cos, const float* sin, int64_t n_tokens, int64_t n_heads,
                          int64_t head_dim, int64_t half_len) {
  const int64_t n_kept = head_dim - 2 * half_len;
  for (int64_t t = 0; t < n_tokens; ++t) {
    for (int64_t h = 0; h < n_heads; ++h) {
      const float* in = x + t * x_stride + h * head_dim;
      float* to = out + t * out_stride + h * head_dim;
      rotate_head<V>(to, in, cos + t * half_len, sin + t * half_len, half_len);
      if (n_kept > 0 && to != in) {
        memcpy(to + 2 * half_len, in + 2 * half_len, static_cast<size_t>(n_kept) * sizeof(float));
      }
    }
  }
}

}  // namespace
}  // namespace dovetail::kernels
