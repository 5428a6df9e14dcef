// Oracle of argmax.hpp.
#include <kernels/argmax.hpp>

namespace dovetail::kernels::ref {

int64_t argmax(const float* x, int64_t n) {
  int64_t best = 0;
  while (best < n && x[best] != x[best]) ++best;  // a NaN differs from itself
  if (best == n) return -1;
  for (int64_t i = best + 1; i < n; ++i) {
    if (x[i] > x[best]) best = i;
  }
  return best;
}

}  // namespace dovetail::kernels::ref
