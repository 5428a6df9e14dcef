// Tokens to syntax tree. Everything that is wrong with a template as such is found here, at load.
#pragma once

#include <string_view>

#include "core/text/template/ast.hpp"

namespace dovetail::core::jinja {

/// Parses a normalized source. Fails with kFormat on syntax errors and names nobody knows (a filter
/// or test inside an if fails only when reached), with kUnsupported on parts of Jinja that are not
/// implemented. `at` is then where.
Program parse_program(std::string_view source, Span& at);

}  // namespace dovetail::core::jinja
