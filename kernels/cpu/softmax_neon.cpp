// softmax for NEON; contract in kernels/softmax.hpp, oracle in kernels/ref/softmax.cpp.
// Bound by arithmetic: the exponential. Lanes that a tail does not fill weigh nothing.
#include <cmath>

#include "kernels/cpu/neon.hpp"
#include "kernels/cpu/neon_math.hpp"

namespace dovetail::kernels::neon {
namespace {

float greatest_of(const float* x, int64_t n) {
  Float8 best = all(-INFINITY);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) best = max(best, load(x + i));
  for (; i < n; ++i) best = max(best, all(x[i]));
  return greatest(best);
}

void softmax_row(float* out, const float* x, int64_t n) {
  const Float8 top = all(greatest_of(x, n));
  Float8 sum = all(0.0F);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Float8 p = exp8(sub(load(x + i), top));
    store(out + i, p);
    sum = add(sum, p);
  }
  const int64_t rest = n - i;
  if (rest > 0) {
    store_first(out + i, exp8(sub(load_first(x + i, rest), top)), rest);
    sum = add(sum, load_first(out + i, rest));
  }

  const Float8 total = all(reduce(sum));
  for (i = 0; i + kLanes <= n; i += kLanes) store(out + i, div(load(out + i), total));
  if (rest > 0) store_first(out + i, div(load_first(out + i, rest), total), rest);
}

}  // namespace

void softmax(float* out, const float* x, int64_t n_rows, int64_t row_len) {
  for (int64_t r = 0; r < n_rows; ++r) softmax_row(out + r * row_len, x + r * row_len, row_len);
}

}  // namespace dovetail::kernels::neon
