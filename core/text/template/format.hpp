// Python's three ways to lay values out in text: `%`, str.format, and a clock's strftime.
#pragma once

#include <ctime>
#include <string>
#include <string_view>

#include "core/text/template/value.hpp"

namespace dovetail::core::jinja {

/// `format % args`: one value, a tuple of them, or a dict for %(name)s. A safe format escapes them.
Value printf_format(const Value& format, const Value& args, Budget& budget);

/// format.format(*args, **named). A safe format escapes what it is given.
Value brace_format(const Value& format, const Args& args, Budget& budget);

/// strftime with C-locale names; fails on directives it does not know.
std::string format_time(std::string_view format, const std::tm& time);

}  // namespace dovetail::core::jinja
