// json.dumps() as the filter tojson uses it: no HTML escaping, keys in insertion order.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/text/template/big_int.hpp"
#include "core/text/template/print.hpp"
#include "core/text/template/unicode.hpp"

namespace dovetail::core::jinja {
namespace {

void append_utf16_escape(char32_t c, std::string& out) {
  char buffer[16];
  if (c >= 0x10000) {
    std::snprintf(buffer, sizeof buffer, "\\u%04x\\u%04x",
                  static_cast<unsigned>(0xD800 + ((c - 0x10000) >> 10)),
                  static_cast<unsigned>(0xDC00 + ((c - 0x10000) & 0x3FF)));
  } else {
    std::snprintf(buffer, sizeof buffer, "\\u%04x", static_cast<unsigned>(c));
  }
  out += buffer;
}

// The escape of `c`, or an empty string if it stands for itself.
std::string escape_of(char32_t c, bool ensure_ascii) {
  std::string out;
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      break;
  }
  if (c < 0x20 || (ensure_ascii && c > 0x7E)) append_utf16_escape(c, out);
  return out;
}

class JsonDumper {
 public:
  JsonDumper(const JsonStyle& style, TextBuilder& out) : style_(style), out_(out) {}

  void write(const Value& v) {
    out_.budget().step();
    switch (v.kind()) {
      case Kind::kNone:
        out_.append("null");
        break;
      case Kind::kBool:
      case Kind::kInt:
      case Kind::kBigInt:
      case Kind::kFloat:
        out_.append(scalar_text(v));
        break;
      case Kind::kString:
        write_string(v.text());
        break;
      case Kind::kList:
      case Kind::kTuple:
        write_list(v.items());
        break;
      case Kind::kDict:
        write_dict(v.as_dict());
        break;
      default:
        fail(std::string("object of type ") + v.type_name() + " is not JSON serializable" +
             (v.is_undefined() ? ": " + v.reason() : ""));
    }
  }

 private:
  std::string scalar_text(const Value& v) const {
    if (v.is(Kind::kBool)) return v.as_bool() ? "true" : "false";
    if (v.is(Kind::kInt)) return std::to_string(v.as_int());
    if (v.is(Kind::kBigInt)) return v.as_big_int().v.str();
    const double d = v.as_float();
    if (std::isnan(d)) return "NaN";
    if (std::isinf(d)) return d < 0 ? "-Infinity" : "Infinity";
    return float_text(d);
  }

  void write_string(const SourcedText& text) {
    const std::string_view s = text.bytes();
    out_.append("\"");
    size_t run = 0;  // start of what needs no escape
    for (size_t pos = 0; pos < s.size();) {
      const size_t begin = pos;
      const std::string escape = escape_of(next_char(s, pos), style_.ensure_ascii);
      if (escape.empty()) continue;
      out_.append_slice(text, run, begin);
      out_.append(escape, text.source_at(begin));
      run = pos;
    }
    out_.append_slice(text, run, s.size());
    out_.append("\"");
  }

  void write_list(const std::vector<Value>& items) {
    out_.append("[");
    ++depth_;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_.append(style_.item_separator);
      break_line();
      write(items[i]);
    }
    --depth_;
    if (!items.empty()) break_line();
    out_.append("]");
  }

  void write_dict(const Dict& dict) {
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [&](const auto* a, const auto* b) {
        return less(a->first, b->first, out_.budget());
      });
    }
    out_.append("{");
    ++depth_;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out_.append(style_.item_separator);
      break_line();
      write_key(entries[i]->first);
      out_.append(style_.key_separator);
      write(entries[i]->second);
    }
    --depth_;
    if (!entries.empty()) break_line();
    out_.append("}");
  }

  void write_key(const Value& key) {
    if (key.is_string()) {
      write_string(key.text());
    } else if (key.is_number()) {
      out_.append("\"");
      out_.append(scalar_text(key));
      out_.append("\"");
    } else if (key.is_none()) {
      out_.append("\"null\"");
    } else {
      fail(std::string("a key for tojson is ") + key.type_name() +
           ", expected str, int, float, bool or None");
    }
  }

  void break_line() {
    if (!style_.indent) return;
    out_.append("\n");
    out_.repeat(*style_.indent, depth_);
  }

  const JsonStyle& style_;
  TextBuilder& out_;
  size_t depth_ = 0;
};

}  // namespace

void write_json(const Value& v, const JsonStyle& style, TextBuilder& out) {
  JsonDumper(style, out).write(v);
}

}  // namespace dovetail::core::jinja
