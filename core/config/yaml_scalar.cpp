// YAML 1.2.2 section 10.3.2, with the ambiguous and the infinite refused.
#include "core/config/yaml_scalar.hpp"

#include <charconv>
#include <string>
#include <system_error>

namespace dovetail::core {
namespace {

bool is_one_of(std::string_view text, std::string_view a, std::string_view b, std::string_view c) {
  return text == a || text == b || text == c;
}

size_t count_digits(std::string_view text) {
  size_t n = 0;
  while (n < text.size() && text[n] >= '0' && text[n] <= '9') ++n;
  return n;
}

// [0-9]+, or with a point or an exponent: [0-9]+ (\. [0-9]*)? | \. [0-9]+, then ([eE] [-+]? [0-9]+)?
enum class Shape { kNotNumber, kInteger, kReal };

Shape number_shape(std::string_view text) {
  const size_t whole = count_digits(text);
  if (whole > 0 && whole == text.size()) return Shape::kInteger;
  text.remove_prefix(whole);
  size_t fraction = 0;
  if (!text.empty() && text[0] == '.') {
    fraction = count_digits(text.substr(1));
    text.remove_prefix(1 + fraction);
  }
  if (whole + fraction == 0) return Shape::kNotNumber;
  if (text.empty()) return Shape::kReal;
  if (text[0] != 'e' && text[0] != 'E') return Shape::kNotNumber;
  text.remove_prefix(1);
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return !text.empty() && count_digits(text) == text.size() ? Shape::kReal : Shape::kNotNumber;
}

std::string quote(std::string_view text) {
  return std::string("\"").append(text).append("\"");
}

Node with_text(Node node, std::string_view text) {
  node.set_number_text(std::string(text));
  return node;
}

Result<Node> read_real(std::string_view text, std::string_view unsigned_part) {
  double value = 0;
  const char* end = unsigned_part.data() + unsigned_part.size();
  const auto [stop, error] = std::from_chars(unsigned_part.data(), end, value);
  if (error != std::errc() || stop != end) {
    return invalid(quote(text) + " is beyond the range of a double (about 1e-308 to 1.8e308)");
  }
  return with_text(Node::make_float(text[0] == '-' ? -value : value), text);
}

Result<Node> read_decimal(std::string_view text, std::string_view digits) {
  if (digits.size() > 1 && digits[0] == '0') {
    const std::string sign(text.substr(0, text.size() - digits.size()));
    std::string_view bare =
        digits.substr(std::min(digits.find_first_not_of('0'), digits.size() - 1));
    std::string message = quote(text) + " has leading zeros, which is read in two ways: write " +
                          sign + std::string(bare) + " for the decimal number";
    if (digits.find_first_of("89") == std::string_view::npos && sign.empty()) {
      message += ", 0o" + std::string(bare) + " for the octal one";
    }
    return invalid(message + ", or quote it if it is text");
  }
  int64_t value = 0;
  const std::string_view signed_text = text[0] == '+' ? digits : text;
  const char* end = signed_text.data() + signed_text.size();
  if (std::from_chars(signed_text.data(), end, value).ec == std::errc()) {
    return with_text(Node::make_int(value), text);
  }
  return read_real(text, digits);
}

Result<Node> read_radix(std::string_view text, int base) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data() + 2, end, value, base).ec != std::errc()) {
    return invalid(quote(text) + " is beyond the range of a 64-bit integer");
  }
  return with_text(Node::make_int(value), text);
}

bool all_of(std::string_view text, std::string_view allowed) {
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

}  // namespace

Result<Node> read_plain_scalar(std::string_view text) {
  if (text.empty() || text == "~" || is_one_of(text, "null", "Null", "NULL")) return Node();
  if (is_one_of(text, "true", "True", "TRUE")) return Node::make_bool(true);
  if (is_one_of(text, "false", "False", "FALSE")) return Node::make_bool(false);
  if (text.starts_with("0o") && all_of(text.substr(2), "01234567")) return read_radix(text, 8);
  if (text.starts_with("0x") && all_of(text.substr(2), "0123456789abcdefABCDEF")) {
    return read_radix(text, 16);
  }
  const bool has_sign = text[0] == '-' || text[0] == '+';
  const std::string_view rest = text.substr(has_sign ? 1 : 0);
  if (is_one_of(rest, ".inf", ".Inf", ".INF") || is_one_of(text, ".nan", ".NaN", ".NAN")) {
    return invalid(quote(text) + " is not a finite number; quote it if it is text");
  }
  switch (number_shape(rest)) {
    case Shape::kInteger:
      return read_decimal(text, rest);
    case Shape::kReal:
      return read_real(text, rest);
    case Shape::kNotNumber:
      break;
  }
  return Node::make_string(std::string(text));
}

}  // namespace dovetail::core
