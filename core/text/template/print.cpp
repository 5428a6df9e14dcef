// str() and repr() of values.
#include "core/text/template/print.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "core/text/template/big_int.hpp"
#include "core/text/template/unicode.hpp"

namespace dovetail::core::jinja {
namespace {

void write_escape(char32_t c, Source source, TextBuilder& out) {
  char buffer[16];
  const char* const format = c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x";
  std::snprintf(buffer, sizeof buffer, format, static_cast<unsigned>(c));
  out.append(buffer, source);
}

void write_quoted(const SourcedText& text, TextBuilder& out) {
  const std::string_view s = text.bytes();
  const bool has_single = s.find('\'') != std::string_view::npos;
  const char quote = has_single && s.find('"') == std::string_view::npos ? '"' : '\'';
  out.append(std::string_view(&quote, 1));
  size_t run = 0;  // start of what needs no escape
  for (size_t pos = 0; pos < s.size();) {
    const size_t begin = pos;
    const char32_t c = next_char(s, pos);
    const bool is_escaped = c < 0x7F
                                ? c < 0x20 || c == '\\' || c == static_cast<unsigned char>(quote)
                                : !is_printable(c);
    if (!is_escaped) continue;
    out.append_slice(text, run, begin);
    run = pos;
    const Source source = text.source_at(begin);
    switch (c) {
      case '\\':
        out.append("\\\\", source);
        break;
      case '\'':
        out.append("\\'", source);
        break;
      case '"':
        out.append("\\\"", source);
        break;
      case '\n':
        out.append("\\n", source);
        break;
      case '\r':
        out.append("\\r", source);
        break;
      case '\t':
        out.append("\\t", source);
        break;
      default:
        write_escape(c, source, out);
    }
  }
  out.append_slice(text, run, s.size());
  out.append(std::string_view(&quote, 1));
}

void write_items(const std::vector<Value>& items, TextBuilder& out) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.append(", ");
    write_repr(items[i], out);
  }
}

void write_entries(const std::vector<std::pair<Value, Value>>& entries, TextBuilder& out) {
  out.append("{");
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i > 0) out.append(", ");
    write_repr(entries[i].first, out);
    out.append(": ");
    write_repr(entries[i].second, out);
  }
  out.append("}");
}

void write_range(const Range& r, TextBuilder& out) {
  std::string text = "range(";
  text += std::to_string(r.start) + ", " + std::to_string(r.stop);
  if (r.step != 1) text.append(", ").append(std::to_string(r.step));
  out.append(text + ")");
}

}  // namespace

std::string float_text(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, std::abs(v), std::chars_format::scientific).ptr;
  const std::string_view text(buffer, static_cast<size_t>(end - buffer));  // d.ddde±xx
  const size_t e = text.find('e');
  std::string digits(text.substr(0, 1));
  if (e > 2) digits += text.substr(2, e - 2);
  int exponent = 0;
  std::from_chars(text.data() + e + (text[e + 1] == '+' ? 2 : 1), end, exponent);

  std::string out = std::signbit(v) ? "-" : "";
  const int n_digits = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (n_digits > 1) out.append(".").append(digits, 1);
    out += exponent < 0 ? "e-" : "e+";
    const std::string size = std::to_string(std::abs(exponent));
    return out + (size.size() < 2 ? "0" : "") + size;
  }
  if (exponent < 0) {
    return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  }
  const auto n_whole = static_cast<size_t>(exponent) + 1;
  if (n_digits <= exponent + 1) {
    return out + digits + std::string(n_whole - digits.size(), '0') + ".0";
  }
  return out + digits.substr(0, n_whole) + "." + digits.substr(n_whole);
}

void write_repr(const Value& v, TextBuilder& out) {
  out.budget().step();
  const Budget::Level level(out.budget());  // a namespace may hold itself
  switch (v.kind()) {
    case Kind::kUndefined:
      out.append("Undefined");
      break;
    case Kind::kNone:
      out.append("None");
      break;
    case Kind::kBool:
      out.append(v.as_bool() ? "True" : "False");
      break;
    case Kind::kInt:
      out.append(std::to_string(v.as_int()));
      break;
    case Kind::kBigInt:
      out.append(v.as_big_int().v.str());
      break;
    case Kind::kFloat:
      out.append(float_text(v.as_float()));
      break;
    case Kind::kString:
      if (v.is_safe()) out.append("Markup(");
      write_quoted(v.text(), out);
      if (v.is_safe()) out.append(")");
      break;
    case Kind::kList:
      out.append("[");
      write_items(v.items(), out);
      out.append("]");
      break;
    case Kind::kTuple:
      out.append("(");
      write_items(v.items(), out);
      out.append(v.items().size() == 1 ? ",)" : ")");
      break;
    case Kind::kDict:
      write_entries(v.as_dict().entries, out);
      break;
    case Kind::kDictView:
      out.append(std::string(v.type_name()) + "([");
      write_items(iterate(v, out.budget()), out);
      out.append("])");
      break;
    case Kind::kRange:
      write_range(v.as_range(), out);
      break;
    case Kind::kNamespace:
      out.append("<Namespace ");
      write_entries(v.as_namespace().entries(), out);
      out.append(">");
      break;
    case Kind::kLazy:
      out.append("<generator object>");
      break;
    case Kind::kObject:
      out.append(std::string("<") + v.type_name() + ">");
      break;
  }
}

void write_str(const Value& v, TextBuilder& out) {
  if (v.is_undefined()) return;
  if (v.is_string()) {
    out.append(v.text());
  } else {
    write_repr(v, out);
  }
}

SourcedText str_of(const Value& v, Budget& budget) {
  TextBuilder out(budget);
  write_str(v, out);
  return out.take();
}

SourcedText repr_of(const Value& v, Budget& budget) {
  TextBuilder out(budget);
  write_repr(v, out);
  return out.take();
}

Value to_string(const Value& v, Budget& budget) {
  return v.is_string() ? v : Value::string(str_of(v, budget));
}

}  // namespace dovetail::core::jinja
