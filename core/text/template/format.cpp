// printf-style and brace-style formatting. They share how a value is laid out in its field.
#include "core/text/template/format.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/text/template/big_int.hpp"
#include "core/text/template/literals.hpp"
#include "core/text/template/operators.hpp"
#include "core/text/template/print.hpp"
#include "core/text/template/unicode.hpp"

namespace dovetail::core::jinja {
namespace {

constexpr int64_t kMaxWidth = 1'000'000;
constexpr int64_t kMaxPrecision = 300;

struct Field {
  SourcedText fill{" "};
  char align = '\0';  // < > ^ =, or the type's own
  char sign = '-';    // - + or a blank
  bool alternate = false;
  bool group_thousands = false;
  int64_t width = 0;
  int64_t precision = -1;
  char type = '\0';
};

void write_field(const SourcedText& sign, const SourcedText& body, char align, const Field& field,
                 TextBuilder& out) {
  const size_t n = count_chars(sign.bytes()) + count_chars(body.bytes());
  const auto width = static_cast<size_t>(field.width);
  const size_t n_fill = width > n ? width - n : 0;
  const size_t before = align == '>' ? n_fill : align == '^' ? n_fill / 2 : 0;
  out.repeat(field.fill, before);
  out.append(sign);
  if (align == '=') out.repeat(field.fill, n_fill);
  out.append(body);
  if (align != '=') out.repeat(field.fill, n_fill - before);
}

void write_text(SourcedText text, const Field& field, char default_align, TextBuilder& out) {
  if (field.precision >= 0) {
    text = text.slice(0, byte_offset(text.bytes(), static_cast<size_t>(field.precision)));
  }
  write_field({}, text, field.align == '\0' ? default_align : field.align, field, out);
}

std::string grouped(const std::string& digits) {
  const size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
  std::string out;
  for (size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out + digits.substr(whole);
}

void write_number(bool is_negative, const std::string& prefix, std::string digits,
                  const Field& field, TextBuilder& out) {
  if (field.group_thousands) digits = grouped(digits);
  const std::string sign = is_negative ? "-" : field.sign == '-' ? "" : std::string(1, field.sign);
  write_field(SourcedText(sign + prefix), SourcedText(std::move(digits)),
              field.align == '\0' ? '>' : field.align, field, out);
}

void write_integer(const Value& v, const Field& field, TextBuilder& out) {
  using boost::multiprecision::cpp_int;
  const cpp_int n = v.is(Kind::kBigInt) ? v.as_big_int().v : cpp_int(v.as_int());
  const cpp_int magnitude = abs(n);
  std::string digits;
  std::string prefix;
  switch (field.type) {
    case 'x':
    case 'X':
    case 'o':
    case 'b': {
      const unsigned base = field.type == 'o' ? 8 : field.type == 'b' ? 2 : 16;
      for (cpp_int rest = magnitude; rest != 0; rest /= base) {
        const auto digit = static_cast<unsigned>(rest % base);
        digits += (field.type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef")[digit];
      }
      std::reverse(digits.begin(), digits.end());
      if (digits.empty()) digits = "0";
      if (field.alternate) prefix = std::string("0") + field.type;
      break;
    }
    default:
      digits = magnitude.str();
  }
  write_number(n < 0, prefix, std::move(digits), field, out);
}

void write_float(const Value& v, const Field& field, TextBuilder& out) {
  double d = real_of(v);
  const bool is_percent = field.type == '%';
  if (is_percent) d *= 100;
  std::string digits;
  if (!std::isfinite(d)) {
    digits = std::isnan(d) ? "nan" : "inf";
  } else if (field.type == '\0' && field.precision < 0) {
    digits = float_text(std::abs(d));
  } else {
    const char type = is_percent ? 'f' : field.type == '\0' ? 'g' : field.type;
    const std::string format = std::string(field.alternate ? "%#.*" : "%.*") + type;
    const int precision = static_cast<int>(field.precision < 0 ? 6 : field.precision);
    digits.resize(1024);  // a double has at most 309 digits before the point
    const int n =
        std::snprintf(digits.data(), digits.size(), format.c_str(), precision, std::abs(d));
    digits.resize(static_cast<size_t>(n));
  }
  if (is_percent) digits += '%';
  write_number(std::signbit(d) && !std::isnan(d), "", std::move(digits), field, out);
}

int64_t read_count(std::string_view s, size_t& pos, int64_t max, const char* what) {
  int64_t n = 0;
  for (; pos < s.size() && s[pos] >= '0' && s[pos] <= '9'; ++pos) {
    n = n * 10 + (s[pos] - '0');
    if (n > max) fail(std::string(what) + " in a format is larger than " + std::to_string(max));
  }
  return n;
}

// --- format % args ---

class PrintfFormatter {
 public:
  PrintfFormatter(const Value& format, const Value& args, Budget& budget)
      : format_(format), args_(args), budget_(budget), out_(budget) {}

  Value run() {
    const SourcedText& text = format_.text();
    const std::string_view s = text.bytes();
    size_t pos = 0;
    while (true) {
      const size_t percent = std::min(s.find('%', pos), s.size());
      out_.append_slice(text, pos, percent);
      if (percent == s.size()) break;
      pos = percent + 1;
      write_conversion(s, pos);
    }
    // What can be looked into might be a mapping, which need not be used up: a list, too.
    const bool may_be_mapping = args_.is(Kind::kDict) || args_.is(Kind::kList) ||
                                args_.is(Kind::kRange) || args_.is_undefined();
    const bool all_used = may_be_mapping || next_ >= n_args();
    if (!all_used) fail("not all arguments converted during string formatting");
    return format_.is_safe() ? Value::safe_string(out_.take()) : Value::string(out_.take());
  }

 private:
  size_t n_args() const { return args_.is(Kind::kTuple) ? args_.items().size() : 1; }

  Value next_arg() {
    if (next_ >= n_args()) fail("not enough arguments for format string");
    const size_t i = next_++;
    return args_.is(Kind::kTuple) ? args_.items()[i] : args_;
  }

  Value named_arg(std::string_view name) {
    if (!args_.is(Kind::kDict)) fail("format requires a mapping");
    const Value* v = args_.as_dict().find(name);
    if (v == nullptr) fail("format lacks the key '" + std::string(name) + "'");
    next_ = 1;
    return *v;
  }

  void write_conversion(std::string_view s, size_t& pos) {
    std::optional<Value> named;
    if (pos < s.size() && s[pos] == '(') {
      const size_t close = s.find(')', pos);
      if (close == s.npos) fail("incomplete format key");
      named = named_arg(s.substr(pos + 1, close - pos - 1));
      pos = close + 1;
    }
    Field field;
    bool left = false;
    bool zero = false;
    for (; pos < s.size() && std::string_view("-+ #0").find(s[pos]) != s.npos; ++pos) {
      switch (s[pos]) {
        case '-':
          left = true;
          break;
        case '0':
          zero = true;
          break;
        case '#':
          field.alternate = true;
          break;
        case '+':
          field.sign = '+';
          break;
        default:
          if (field.sign != '+') field.sign = ' ';
      }
    }
    field.width = read_width(s, pos, left);
    if (pos < s.size() && s[pos] == '.') {
      ++pos;
      field.precision = pos < s.size() && s[pos] == '*'
                            ? star(pos, kMaxPrecision)
                            : read_count(s, pos, kMaxWidth, "a precision");
    }
    while (pos < s.size() && std::string_view("hlL").find(s[pos]) != s.npos) ++pos;
    if (pos >= s.size()) fail("incomplete format");
    field.type = s[pos++];
    if (field.type == '%') {
      out_.append("%");
      return;
    }
    field.align = left ? '<' : '>';
    write_value(named ? *named : next_arg(), field, zero && !left);
  }

  int64_t read_width(std::string_view s, size_t& pos, bool& left) {
    if (pos >= s.size() || s[pos] != '*') return read_count(s, pos, kMaxWidth, "a width");
    const int64_t width = star(pos, kMaxWidth);
    if (width < 0) left = true;
    return std::abs(width);
  }

  int64_t star(size_t& pos, int64_t max) {
    ++pos;
    const Value v = next_arg();
    if (!v.is(Kind::kInt) || v.as_int() > max || v.as_int() < -max) fail("* wants a small int");
    return v.as_int();
  }

  void write_value(const Value& v, Field field, bool zero) {
    switch (field.type) {
      case 's':
      case 'r':
      case 'a': {
        SourcedText text = field.type == 's' ? str_of(v, budget_) : repr_of(v, budget_);
        if (format_.is_safe() && !v.is_safe()) text = escape_html(text, budget_);
        write_text(std::move(text), field, '>', out_);
        return;
      }
      case 'c':
        if (v.is(Kind::kInt) && v.as_int() >= 0 && v.as_int() <= 0x10FFFF) {
          write_text(SourcedText(to_utf8(static_cast<char32_t>(v.as_int()))), field, '>', out_);
        } else if (v.is_string() && count_chars(v.bytes()) == 1) {
          write_text(v.text(), field, '>', out_);
        } else {
          fail("%c requires int or char");
        }
        return;
      default:
        break;
    }
    if (zero) {
      field.fill = SourcedText("0");
      field.align = '=';
    }
    write_numeric(v, field);
  }

  void write_numeric(const Value& v, Field field) {
    if (v.is_undefined()) fail(v.reason());
    const std::string name = std::string("%") + field.type;
    if (!v.is_number()) {
      fail(name + " format: a number is required, not " + v.type_name());
    }
    switch (field.type) {
      case 'd':
      case 'i':
      case 'u':
        field.type = 'd';
        write_integer(v.is(Kind::kFloat) ? whole_part(v.as_float()) : v, field, out_);
        return;
      case 'x':
      case 'X':
      case 'o':
        if (v.is(Kind::kFloat)) fail(name + " format: an integer is required, not float");
        write_integer(v, field, out_);
        return;
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        field.precision = std::min(field.precision, kMaxPrecision);
        write_float(v, field, out_);
        return;
      default:
        fail("unsupported format character '" + std::string(1, field.type) + "'");
    }
  }

  static Value whole_part(double d) {
    if (!std::isfinite(d)) fail("cannot convert float NaN or infinity to integer");
    return Value::integer(BigInt{boost::multiprecision::cpp_int(d)});
  }

  const Value& format_;
  const Value& args_;
  Budget& budget_;
  TextBuilder out_;
  size_t next_ = 0;
};

// --- str.format ---

Field parse_spec(const SourcedText& text) {
  const std::string_view s = text.bytes();
  Field field;
  size_t pos = 0;
  const auto is_align = [&](size_t at) {
    return at < s.size() && std::string_view("<>=^").find(s[at]) != s.npos;
  };
  size_t after_fill = 0;
  if (!s.empty()) next_char(s, after_fill);
  if (!s.empty() && is_align(after_fill)) {
    field.fill = text.slice(0, after_fill);
    field.align = s[after_fill];
    pos = after_fill + 1;
  } else if (is_align(0)) {
    field.align = s[0];
    pos = 1;
  }
  if (pos < s.size() && (s[pos] == '+' || s[pos] == '-' || s[pos] == ' ')) field.sign = s[pos++];
  if (pos < s.size() && s[pos] == '#') {
    field.alternate = true;
    ++pos;
  }
  if (pos < s.size() && s[pos] == '0') {
    if (field.align == '\0') {
      field.fill = SourcedText("0");
      field.align = '=';
    }
    ++pos;
  }
  field.width = read_count(s, pos, kMaxWidth, "a width");
  if (pos < s.size() && s[pos] == ',') {
    field.group_thousands = true;
    ++pos;
  }
  if (pos < s.size() && s[pos] == '.') {
    field.precision = read_count(s, ++pos, kMaxWidth, "a precision");
  }
  if (pos < s.size()) field.type = s[pos++];
  if (pos < s.size()) fail("invalid format specifier '" + std::string(s) + "'");
  return field;
}

void write_with_spec(const Value& v, const SourcedText& spec, TextBuilder& out) {
  if (spec.empty()) return write_str(v, out);
  Field field = parse_spec(spec);
  const auto is_one_of = [&](std::string_view types) {
    return types.find(field.type) != types.npos;
  };
  if (v.is_integer() && is_one_of(std::string_view("\0dxXob", 6))) {
    write_integer(v, field, out);
  } else if (v.is_number() && is_one_of(std::string_view("\0eEfFgG%", 8))) {
    field.precision = std::min(field.precision, kMaxPrecision);
    write_float(v, field, out);
  } else if (v.is_string() && is_one_of(std::string_view("\0s", 2))) {
    write_text(v.text(), field, '<', out);
  } else {
    fail("format specifier '" + spec.bytes() + "' does not fit an object of type '" +
         v.type_name() + "'");
  }
}

class BraceFormatter {
 public:
  BraceFormatter(const Args& args, bool escapes, Budget& budget)
      : args_(args), escapes_(escapes), budget_(budget) {}

  SourcedText run(const SourcedText& text) {
    const Budget::Level level(budget_);
    TextBuilder out(budget_);
    const std::string_view s = text.bytes();
    for (size_t pos = 0; pos < s.size();) {
      const size_t brace = std::min(s.find_first_of("{}", pos), s.size());
      out.append_slice(text, pos, brace);
      if (brace == s.size()) break;
      if (brace + 1 < s.size() && s[brace + 1] == s[brace]) {  // a doubled brace is a brace
        out.append_slice(text, brace, brace + 1);
        pos = brace + 2;
        continue;
      }
      if (s[brace] == '}') fail("single '}' encountered in format string");
      const size_t close = matching_brace(s, brace);
      write_replacement(text.slice(brace + 1, close), out);
      pos = close + 1;
    }
    return out.take();
  }

 private:
  static size_t matching_brace(std::string_view s, size_t open) {
    int depth = 0;
    for (size_t i = open; i < s.size(); ++i) {
      if (s[i] == '{') ++depth;
      if (s[i] == '}' && --depth == 0) return i;
    }
    fail("expected '}' before end of string");
  }

  void write_replacement(const SourcedText& field, TextBuilder& out) {
    const std::string_view s = field.bytes();
    const size_t name_end = std::min(s.find_first_of("!:"), s.size());
    Value v = lookup(s.substr(0, name_end));
    size_t pos = name_end;
    if (pos < s.size() && s[pos] == '!') {
      const char conversion = pos + 1 < s.size() ? s[pos + 1] : '\0';
      if (conversion != 's' && conversion != 'r') fail("a format conversion is !s or !r");
      v = Value::string(conversion == 's' ? str_of(v, budget_) : repr_of(v, budget_));
      pos += 2;
    }
    if (pos < s.size() && s[pos] != ':') fail("expected ':' after conversion specifier");
    SourcedText spec = pos < s.size() ? field.slice(pos + 1, s.size()) : SourcedText();
    if (spec.bytes().find('{') != std::string::npos) spec = run(spec);
    if (!escapes_ || v.is_safe()) {
      write_with_spec(v, spec, out);
    } else {
      TextBuilder plain(budget_);
      write_with_spec(v, spec, plain);
      out.append(escape_html(plain.text(), budget_));
    }
  }

  // "", "0", "name", then .attribute and [item] parts.
  Value lookup(std::string_view path) {
    const size_t head_end = std::min(path.find_first_of(".["), path.size());
    Value v = head(path.substr(0, head_end));
    for (size_t pos = head_end; pos < path.size();) {
      if (path[pos] == '.') {
        const size_t end = std::min(path.find_first_of(".[", pos + 1), path.size());
        v = get_attribute(v, path.substr(pos + 1, end - pos - 1), budget_);
        pos = end;
      } else {
        const size_t end = path.find(']', pos);
        if (path[pos] != '[' || end == path.npos) fail("missing ']' in format string");
        const std::string_view key = path.substr(pos + 1, end - pos - 1);
        const Value index = parse_integer(key, 10);
        v = get_item(v, index.is_undefined() ? Value::string(std::string(key)) : index, budget_);
        pos = end + 1;
      }
    }
    if (v.is_undefined()) fail(v.reason());
    return v;
  }

  Value head(std::string_view name) {
    const Value index = name.empty() ? Value::integer(next_++) : parse_integer(name, 10);
    if (index.is(Kind::kInt)) {
      const auto i = static_cast<size_t>(index.as_int());
      if (i >= args_.positional.size()) fail("a format index is out of range for the arguments");
      return args_.positional[i];
    }
    for (const auto& [key, value] : args_.named) {
      if (key == name) return value;
    }
    fail("format lacks the argument '" + std::string(name) + "'");
  }

  const Args& args_;
  bool escapes_;  // the values, for HTML
  Budget& budget_;
  int64_t next_ = 0;
};

}  // namespace

Value printf_format(const Value& format, const Value& args, Budget& budget) {
  return PrintfFormatter(format, args, budget).run();
}

Value brace_format(const Value& format, const Args& args, Budget& budget) {
  SourcedText text = BraceFormatter(args, format.is_safe(), budget).run(format.text());
  return format.is_safe() ? Value::safe_string(std::move(text)) : Value::string(std::move(text));
}

}  // namespace dovetail::core::jinja
