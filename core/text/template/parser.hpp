// Tokens to syntax tree. Everything that is wrong with a template as such is found here, at load.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/text/template/ast.hpp"

namespace dovetail::core::jinja {

/// Parses a normalized source. Fails with kFormat on syntax errors and names nobody knows (a filter
/// or test inside an if fails only when reached), with kUnsupported on parts of Jinja that are not
/// implemented. `at` is then where.
Program parse_program(std::string_view source, Span& at);

/// A tag that this engine lacks, or that nobody knows.
struct MissingTag {
  std::string name;
  Span span;
  Fault fault;
};

/// The same for a reader that wants to know all that is missing: such tags are left out of the tree
/// and put into `missing`; filters and tests that nobody knows stay in it.
Program parse_program_leniently(std::string_view source, Span& at,
                                std::vector<MissingTag>& missing);

}  // namespace dovetail::core::jinja
