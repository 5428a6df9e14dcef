#include "core/text/template/big_int.hpp"

#include <cmath>
#include <cstdint>

namespace dovetail::core::jinja {
namespace {

using boost::multiprecision::cpp_int;

int64_t n_bits(const cpp_int& magnitude) {
  return magnitude == 0 ? 0 : static_cast<int64_t>(msb(magnitude)) + 1;
}

}  // namespace

double nearest_double(const cpp_int& v) {
  const cpp_int magnitude = abs(v);
  const int64_t below = n_bits(magnitude) - 64;
  uint64_t top = 0;  // the upper 64 bits; the last one says too whether anything is below
  if (below <= 0) {
    top = static_cast<uint64_t>(magnitude);
  } else {
    top = static_cast<uint64_t>(cpp_int(magnitude >> below));
    if (static_cast<int64_t>(lsb(magnitude)) < below) top |= 1;
  }
  const double d = std::ldexp(static_cast<double>(top), static_cast<int>(below > 0 ? below : 0));
  return v < 0 ? -d : d;
}

double nearest_quotient(const cpp_int& a, const cpp_int& b) {
  // So many bits in the whole part that only one more, whether there is a rest, can matter.
  constexpr int64_t kBits = 66;
  cpp_int over = abs(a), under = abs(b), rest;
  const int64_t shift = kBits - n_bits(over) + n_bits(under);
  if (shift >= 0) {
    over <<= shift;
  } else {
    under <<= -shift;
  }
  cpp_int whole;
  divide_qr(over, under, whole, rest);
  whole <<= 1;
  if (rest != 0) whole |= 1;
  const double d = std::ldexp(nearest_double(whole), static_cast<int>(-shift - 1));
  return (a < 0) != (b < 0) ? -d : d;
}

}  // namespace dovetail::core::jinja
