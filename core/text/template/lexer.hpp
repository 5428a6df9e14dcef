// Template source to tokens, with Jinja's rules for white space around tags already applied.
//
// The rules are those of trim_blocks and lstrip_blocks, as Transformers sets them: a newline right
// after "%}" or "#}" goes, as do blanks between the start of a line and "{%" or "{#"; "-" strips all
// white space on its side, "+" strips none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/template/value.hpp"

namespace dovetail::core::jinja {

/// Bytes [begin, end) of the template's source.
struct Span {
  uint32_t begin = 0;
  uint32_t end = 0;
};

struct Token {
  enum class Type : uint8_t {
    kData,  // text between tags, stripped
    kBlockBegin,
    kBlockEnd,
    kPrintBegin,
    kPrintEnd,
    kName,
    kString,
    kNumber,
    kOperator,
    kEnd,
  };

  Type type = Type::kEnd;
  Span span;
  std::string text;  // data, names, operators and the contents of string literals
  Value number;      // of kNumber
};

/// Line breaks become "\n", and one at the very end is dropped.
std::string normalize_source(std::string_view source);

/// Fails (kFormat) on what no grammar could use: characters, brackets, literals, open comments.
/// `at` is then where.
std::vector<Token> tokenize(std::string_view source, Span& at);

}  // namespace dovetail::core::jinja
