// Integers beyond 64 bits. Python has no limit, and callers' JSON may hold any number of digits.
#pragma once

#include <boost/multiprecision/cpp_int.hpp>

namespace dovetail::core::jinja {

struct BigInt {
  boost::multiprecision::cpp_int v;
};

/// Results of more bits than this are refused (2 ** (10 ** 9)).
inline constexpr unsigned kMaxBigIntBits = 1 << 16;

/// The nearest double, ties to even; infinite beyond the largest. (Boost's own conversion throws there, where nothing
/// can catch it.)
double nearest_double(const boost::multiprecision::cpp_int& v);

/// The double nearest to a / b, which is not 0; infinite beyond the largest.
double nearest_quotient(const boost::multiprecision::cpp_int& a,
                        const boost::multiprecision::cpp_int& b);

}  // namespace dovetail::core::jinja
