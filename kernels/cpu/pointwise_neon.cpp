// exp, silu, silu_mul and gelu_tanh for NEON; contract in kernels/pointwise.hpp, oracle in
// kernels/ref/pointwise.cpp. Bound by arithmetic: about 40 instructions for eight elements.
// Tails take the same instructions, so that a value does not depend on its place.
#include "kernels/cpu/neon.hpp"
#include "kernels/cpu/neon_math.hpp"

namespace dovetail::kernels::neon {
namespace {

Float8 silu8(Float8 x) {
  return div(x, add(all(1.0F), exp8(negate(x))));
}

Float8 gelu_tanh8(Float8 x) {
  const Float8 slope = add(all(kGeluSlope), mul(all(kGeluCubic), mul(x, x)));
  return div(x, add(all(1.0F), exp8(mul(x, slope))));
}

}  // namespace

void silu_mul(float* out, const float* a, const float* b, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(out + i, mul(silu8(load(a + i)), load(b + i)));
  const int64_t rest = n - i;
  if (rest == 0) return;
  store_first(out + i, mul(silu8(load_first(a + i, rest)), load_first(b + i, rest)), rest);
}

void exp(float* out, const float* x, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(out + i, exp8(load(x + i)));
  if (i < n) store_first(out + i, exp8(load_first(x + i, n - i)), n - i);
}

void silu(float* out, const float* x, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(out + i, silu8(load(x + i)));
  if (i < n) store_first(out + i, silu8(load_first(x + i, n - i)), n - i);
}

void gelu_tanh(float* out, const float* x, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(out + i, gelu_tanh8(load(x + i)));
  if (i < n) store_first(out + i, gelu_tanh8(load_first(x + i, n - i)), n - i);
}

}  // namespace dovetail::kernels::neon
