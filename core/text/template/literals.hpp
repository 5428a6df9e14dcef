// Literals of the template language, spelled as Python spells them.
#pragma once

#include <string>
#include <string_view>

#include "core/text/template/value.hpp"

namespace dovetail::core::jinja {

/// The contents of a string literal with its escapes resolved: "\n", "\x41", "\u00e9", "\101", a
/// backslash before a line break. Unknown escapes keep the backslash. Fails on damaged ones.
std::string unescape(std::string_view s);

/// Digits, point and exponent, underscores allowed.
Value float_literal(std::string_view s);

/// The integer at the start of `s` (decimal, 0x, 0o, 0b), of any size; sets how long it is.
Value integer_literal(std::string_view s, size_t& n_bytes);

/// int(text, base) of Python, with blanks around it; undefined if it is not an integer.
Value parse_integer(std::string_view s, int base);

/// float(text) of Python; undefined if it is not a number.
Value parse_float(std::string_view s);

}  // namespace dovetail::core::jinja
