// rms_norm for NEON; contract in kernels/rms_norm.hpp, oracle in kernels/ref/rms_norm.cpp.
// Bound by memory: one read of x and weight, one write of out; a row's second pass hits cache.
#include <cmath>

#include "kernels/cpu/neon.hpp"
#include "kernels/cpu/neon_math.hpp"

namespace dovetail::kernels::neon {
namespace {

float sum_of_squares(const float* x, int64_t n) {
  Float8 sum0 = all(0.0F);  // with the halves of each, four chains, so that adds overlap
  Float8 sum1 = all(0.0F);
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    const Float8 a = load(x + i);
    const Float8 b = load(x + i + kLanes);
    sum0 = fma(sum0, a, a);
    sum1 = fma(sum1, b, b);
  }
  for (; i < n; i += kLanes) {  // tail: up to 15 elements
    const Float8 a = load_first(x + i, n - i < kLanes ? n - i : kLanes);
    sum0 = fma(sum0, a, a);
  }
  return reduce(add(sum0, sum1));
}

}  // namespace

void rms_norm(float* out, const float* x, const float* weight, int64_t n_rows, int64_t row_len,
              float eps, float weight_offset) {
  const Float8 offset = all(weight_offset);
  for (int64_t r = 0; r < n_rows; ++r, x += row_len, out += row_len) {
    const float mean = sum_of_squares(x, row_len) / static_cast<float>(row_len);
    const float scale = 1.0F / std::sqrt(mean + eps);
    const auto scaled = [&](Float8 value, Float8 w) {
      return mul(mul(value, scale), add(offset, w));
    };
    int64_t i = 0;
    for (; i + kLanes <= row_len; i += kLanes) {
      store(out + i, scaled(load(x + i), load(weight + i)));
    }
    const int64_t rest = row_len - i;
    if (rest > 0) {
      store_first(out + i, scaled(load_first(x + i, rest), load_first(weight + i, rest)), rest);
    }
  }
}

}  // namespace dovetail::kernels::neon
