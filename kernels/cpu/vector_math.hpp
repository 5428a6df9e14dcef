// The exponential and the activations made of it, on the vectors of any x86-64: V is the Vectors of
// avx2_math.hpp or avx512_math.hpp. Contracts in kernels/pointwise.hpp.
// The namespace is unnamed and everything included is C, as in avx2_math.hpp.
#pragma once

#include <stdint.h>

#include <kernels/pointwise.hpp>

namespace dovetail::kernels {
namespace {

/// e^x in every lane, within 2 units in the last place; the ends are those of pointwise.hpp.
///
/// x = n ln 2 + r with |r| <= ln 2 / 2, where the Taylor series to r^7 is within 0.1 ulp. Below `least`
/// x counts as that.
template <class V>
typename V::Vec exp_of(typename V::Vec x, float least = -104.0F) {  // e^-104 rounds to zero
  using Vec = typename V::Vec;
  const Vec highest = V::all(89.0F);  // e^89 rounds to infinity
  const Vec ln2_high = V::all(0x1.63p-1F);
  const Vec ln2_low = V::all(-0x1.bd0106p-13F);

  x = V::max(V::all(least), V::min(highest, x));  // NaN in the second operand passes
  const Vec whole = V::rounded(V::mul(x, V::all(0x1.715476p+0F)));
  const Vec r = V::fnma(whole, ln2_low, V::fnma(whole, ln2_high, x));

  Vec p = V::all(1.0F / 5040.0F);
  p = V::fma(p, r, V::all(1.0F / 720.0F));
  p = V::fma(p, r, V::all(1.0F / 120.0F));
  p = V::fma(p, r, V::all(1.0F / 24.0F));
  p = V::fma(p, r, V::all(1.0F / 6.0F));
  p = V::fma(p, r, V::all(0.5F));
  p = V::fma(V::mul(p, r), r, r);
  p = V::add(p, V::all(1.0F));
  return V::times_power_of_two(p, whole);
}

template <class V>
typename V::Vec silu_of(typename V::Vec x) {
  return V::div(x, V::add(V::all(1.0F), exp_of<V>(V::negated(x))));
}

template <class V>
typename V::Vec gelu_tanh_of(typename V::Vec x) {
  const typename V::Vec slope = V::fma(V::all(kGeluCubic), V::mul(x, x), V::all(kGeluSlope));
  return V::div(x, V::add(V::all(1.0F), exp_of<V>(V::mul(x, slope))));
}

}  // namespace
}  // namespace dovetail::kernels
