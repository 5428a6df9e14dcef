// Values as text: Python's str() and repr(), and json.dumps() for the filter tojson.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/text/template/text_builder.hpp"
#include "core/text/template/value.hpp"

namespace dovetail::core::jinja {

/// str(v); an undefined value prints nothing.
void write_str(const Value& v, TextBuilder& out);
void write_repr(const Value& v, TextBuilder& out);

SourcedText str_of(const Value& v, Budget& budget);
SourcedText repr_of(const Value& v, Budget& budget);
/// str(v) as a value: strings, safe ones too, stay what they are.
Value to_string(const Value& v, Budget& budget);

/// Shortest digits that read back the same, laid out as Python does: "1.0", "1e-05", "1.5e+20".
std::string float_text(double v);

struct JsonStyle {
  bool ensure_ascii = false;          // escape everything outside U+0020 to U+007E
  std::optional<SourcedText> indent;  // one level of it; none: on one line
  SourcedText item_separator{", "};
  SourcedText key_separator{": "};
  bool sort_keys = false;
};

void write_json(const Value& v, const JsonStyle& style, TextBuilder& out);

}  // namespace dovetail::core::jinja
