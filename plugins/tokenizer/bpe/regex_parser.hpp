// RegexParser: reads a pattern in the syntax of tokenizer.json (Oniguruma, Ruby style) into a form
// that leaves nothing to the matching engine's own idea of Unicode.
//
// Every literal, class and escape becomes a set of code points; what remains (groups, alternation,
// quantifiers, look-around) is written out in a syntax that means the same to PCRE2. Where the two
// engines differ (`{m,n}+`, `^`, `$`, `\b`, stacked quantifiers) the parser spells out Oniguruma's
// meaning. A construct whose meaning it cannot keep is refused by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "code_point_set.hpp"

namespace dovetail::bpe {

/// A piece of the pattern: one code point of a set, or syntax as PCRE2 reads it.
struct RegexItem {
  int set = -1;        // index into RegexProgram::sets, or -1
  std::string syntax;  // when set < 0
};

struct RegexProgram {
  std::vector<RegexItem> items;
  std::vector<CodePointSet> sets;  // distinct
};

/// errors  kFormat: not a pattern; kUnsupported: one whose meaning cannot be kept. The message names
///         the construct and its place in the pattern.
RegexProgram parse_regex(std::string_view pattern);

}  // namespace dovetail::bpe
