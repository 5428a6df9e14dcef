// rope_half_split for NEON; contract in kernels/rope.hpp, oracle in kernels/ref/rope.cpp.
// Bound by memory: one read of x, one write of out; a token's cosines stay in L1 for all its heads.
// No FMA: products and sums are rounded as in the oracle.
#include "kernels/cpu/neon.hpp"
#include "kernels/cpu/neon_math.hpp"

namespace dovetail::kernels::neon {
namespace {

/// load_from and store_to reach the eight elements that begin at p, or what is left of them.
template <class Load, class Save>
void rotate(float* out, const float* x, const float* cos, const float* sin, int64_t half_len,
            const Load& load_from, const Save& store_to) {
  const Float8 c = load_from(cos);
  const Float8 s = load_from(sin);
  const Float8 first = load_from(x);
  const Float8 second = load_from(x + half_len);
  store_to(out, sub(mul(first, c), mul(second, s)));
  store_to(out + half_len, add(mul(second, c), mul(first, s)));
}

void rotate_head(float* out, const float* x, const float* cos, const float* sin, int64_t half_len) {
  int64_t i = 0;
  for (; i + kLanes <= half_len; i += kLanes) {
    rotate(
        out + i, x + i, cos + i, sin + i, half_len, [](const float* p) { return load(p); }, store);
  }
  const int64_t rest = half_len - i;
  if (rest == 0) return;
  rotate(
      out + i, x + i, cos + i, sin + i, half_len,
      [rest](const float* p) { return load_first(p, rest); },
      [rest](float* p, Float8 value) { store_first(p, value, rest); });
}

}  // namespace

void rope_half_split(float* out, int64_t out_stride, const float* x, int64_t x_stride,
                     const float* cos, const float* sin, int64_t n_tokens, int64_t n_heads,
                     int64_t head_dim, int64_t half_len) {
  const int64_t n_kept = head_dim - 2 * half_len;
  for (int64_t t = 0; t < n_tokens; ++t) {
    for (int64_t h = 0; h < n_heads; ++h) {
      const float* in = x + t * x_stride + h * head_dim;
      float* to = out + t * out_stride + h * head_dim;
      rotate_head(to, in, cos + t * half_len, sin + t * half_len, half_len);
      if (n_kept > 0 && to != in) {
        std::memcpy(to + 2 * half_len, in + 2 * half_len,
                    static_cast<size_t>(n_kept) * sizeof(float));
      }
    }
  }
}

}  // namespace dovetail::kernels::neon
