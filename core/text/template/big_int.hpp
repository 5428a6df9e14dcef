// Integers beyond 64 bits. Python has no limit, and callers' JSON may hold any number of digits.
#pragma once

#include <boost/multiprecision/cpp_int.hpp>

namespace dovetail::core::jinja {

struct BigInt {
  boost::multiprecision::cpp_int v;
};

/// Results of more bits than this are refused (2 ** (10 ** 9)).
inline constexpr unsigned kMaxBigIntBits = 1 << 16;

}  // namespace dovetail::core::jinja
