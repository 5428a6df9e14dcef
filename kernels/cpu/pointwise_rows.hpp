// exp, silu, silu_mul and gelu_tanh on the vectors of any x86-64: V is the Vectors of avx2_math.hpp or
// avx512_math.hpp. Contract in kernels/pointwise.hpp, oracle in kernels/ref/pointwise.cpp.
// Bound by arithmetic: about 20 instructions for a vector. Tails take the same instructions under a
// mask, so that a value does not depend on its place.
// The namespace is unnamed and everything included is C, as in avx2_math.hpp.
#pragma once

#include "kernels/cpu/vector_math.hpp"

namespace dovetail::kernels {
namespace {

/// out[i] = fn(x[i]).
template <class V, class Fn>
void map_row(float* out, const float* x, int64_t n, const Fn& fn) {
  int64_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) V::store(out + i, fn(V::load(x + i)));
  if (i < n) V::store_first(out + i, fn(V::load_first(x + i, n - i)), n - i);
}

/// out[i] = fn(a[i], b[i]).
template <class V, class Fn>
void map_rows(float* out, const float* a, const float* b, int64_t n, const Fn& fn) {
  int64_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) {
    V::store(out + i, fn(V::load(a + i), V::load(b + i)));
  }
  if (i < n) {
    V::store_first(out + i, fn(V::load_first(a + i, n - i), V::load_first(b + i, n - i)), n - i);
  }
}

template <class V>
struct Pointwise {
  using Vec = typename V::Vec;
  static void silu_mul(float* out, const float* a, const float* b, int64_t n) {
    map_rows<V>(out, a, b, n, [](Vec x, Vec y) { return V::mul(silu_of<V>(x), y); });
  }
  static void exp(float* out, const float* x, int64_t n) {
    map_row<V>(out, x, n, [](Vec v) { return exp_of<V>(v); });
  }
  static void silu(float* out, const float* x, int64_t n) {
    map_row<V>(out, x, n, [](Vec v) { return silu_of<V>(v); });
  }
  static void gelu_tanh(float* out, const float* x, int64_t n) {
    map_row<V>(out, x, n, [](Vec v) { return gelu_tanh_of<V>(v); });
  }
};

}  // namespace
}  // namespace dovetail::kernels
