// rms_norm on the vectors of any x86-64: V is the Vectors of avx2_math.hpp or avx512_math.hpp. Contract
// in kernels/rms_norm.hpp, oracle in kernels/ref/rms_norm.cpp.
// Bound by memory: one read of x and weight, one write of out; a row's second pass hits cache.
// The namespace is unnamed and everything included is C, as in avx2_math.hpp.
#pragma once

#include <stdint.h>

namespace dovetail::kernels {
namespace {

template <class V>
float sum_of_squares(const float* x, int64_t n) {
  using Vec = typename V::Vec;
  constexpr int64_t kLanes = V::kLanes;
  Vec acc0 = V::zero();  // two chains, so that adds overlap
  Vec acc1 = V::zero();
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    const Vec a = V::load(x + i);
    const Vec b = V::load(x + i + kLanes);
    acc0 = V::fma(a, a, acc0);
    acc1 = V::fma(b, b, acc1);
  }
  for (; i < n; i += kLanes) {  // tail: less than two vectors
    const Vec a = V::load_first(x + i, n - i < kLanes ? n - i : kLanes);
    acc0 = V::fma(a, a, acc0);
  }
  return V::reduce(V::add(acc0, acc1));
}

template <class V>
void rms_norm_rows(float* out, const float* x, const float* weight, int64_t n_rows, int64_t row_len,
                   float eps, float weight_offset) {
  using Vec = typename V::Vec;
  constexpr int64_t kLanes = V::kLanes;
  const Vec offset = V::all(weight_offset);
  for (int64_t r = 0; r < n_rows; ++r, x += row_len, out += row_len) {
    const float mean = sum_of_squares<V>(x, row_len) / static_cast<float>(row_len);
    const Vec scale = V::div(V::all(1.0F), V::sqrt(V::all(mean + eps)));
    const auto scaled = [&](Vec value, Vec w) {
      return V::mul(V::mul(value, scale), V::add(offset, w));
    };
    int64_t i = 0;
    for (; i + kLanes <= row_len; i += kLanes) {
      V::store(out + i, scaled(V::load(x + i), V::load(weight + i)));
    }
    const int64_t rest = row_len - i;
    if (rest > 0) {
      V::store_first(out + i, scaled(V::load_first(x + i, rest), V::load_first(weight + i, rest)),
                     rest);
    }
  }
}

}  // namespace
}  // namespace dovetail::kernels
