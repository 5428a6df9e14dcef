// softmax on the vectors of any x86-64: V is the Vectors of avx2_math.hpp or avx512_math.hpp. Contract
// in kernels/softmax.hpp, oracle in kernels/ref/softmax.cpp.
// Bound by arithmetic: the exponential. Tails are masked, and their missing lanes weigh nothing.
// The namespace is unnamed and everything included is C, as in avx2_math.hpp.
#pragma once

#include <math.h>

#include "kernels/cpu/vector_math.hpp"

namespace dovetail::kernels {
namespace {

template <class V>
float greatest_of(const float* x, int64_t n) {
  typename V::Vec best = V::all(-INFINITY);
  int64_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) best = V::max(V::load(x + i), best);  // NaN loses
  if (i < n) best = V::first_of(V::max(V::load_first(x + i, n - i), best), best, n - i);
  return V::greatest(best);
}

template <class V>
void softmax_row(float* out, const float* x, int64_t n) {
  using Vec = typename V::Vec;
  const Vec top = V::all(greatest_of<V>(x, n));
  Vec acc = V::zero();
  int64_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) {
    const Vec p = exp_of<V>(V::sub(V::load(x + i), top));
    V::store(out + i, p);
    acc = V::add(acc, p);
  }
  if (i < n) {
    const Vec p = exp_of<V>(V::sub(V::load_first(x + i, n - i), top));
    V::store_first(out + i, p, n - i);
    acc = V::add(acc, V::first_of(p, V::zero(), n - i));
  }

  const Vec total = V::all(V::reduce(acc));
  for (i = 0; i + V::kLanes <= n; i += V::kLanes) {
    V::store(out + i, V::div(V::load(out + i), total));
  }
  if (i < n) V::store_first(out + i, V::div(V::load_first(out + i, n - i), total), n - i);
}

template <class V>
void softmax_rows(float* out, const float* x, int64_t n_rows, int64_t row_len) {
  for (int64_t r = 0; r < n_rows; ++r) softmax_row<V>(out + r * row_len, x + r * row_len, row_len);
}

}  // namespace
}  // namespace dovetail::kernels
