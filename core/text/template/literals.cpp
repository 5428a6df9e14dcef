#include "core/text/template/literals.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <system_error>

#include "core/text/template/big_int.hpp"
#include "core/text/template/unicode.hpp"

namespace dovetail::core::jinja {
namespace {

[[noreturn]] void fail_syntax(const std::string& message) {
  throw Fault(Code::kFormat, message);
}

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'z') return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
  return 99;
}

// Digits of `base`, single underscores between them; `s` is not empty.
Value digits_value(std::string_view s, int base) {
  BigInt big;
  int64_t small = 0;
  bool is_small = true;
  for (const char c : s) {
    if (c == '_') continue;
    const int digit = digit_value(c);
    if (is_small && small <= (std::numeric_limits<int64_t>::max() - digit) / base) {
      small = small * base + digit;
      continue;
    }
    if (is_small) big.v = small;
    is_small = false;
    big.v = big.v * base + digit;
    if (msb(big.v) >= kMaxBigIntBits) fail("an integer is too long");
  }
  return is_small ? Value::integer(small) : Value::integer(std::move(big));
}

// How many bytes of `s` are digits of `base` with single underscores between (or before) them.
size_t digits_length(std::string_view s, int base, bool underscore_first) {
  size_t n = 0;
  while (n < s.size()) {
    if (digit_value(s[n]) < base) {
      ++n;
    } else if (s[n] == '_' && (n > 0 || underscore_first) && n + 1 < s.size() &&
               digit_value(s[n + 1]) < base) {
      n += 2;
    } else {
      break;
    }
  }
  return n;
}

int base_of_prefix(std::string_view s) {
  if (s.size() < 2 || s[0] != '0') return 0;
  switch (s[1]) {
    case 'x':
    case 'X':
      return 16;
    case 'o':
    case 'O':
      return 8;
    case 'b':
    case 'B':
      return 2;
    default:
      return 0;
  }
}

std::string_view stripped(std::string_view s) {
  size_t begin = 0;
  size_t end = 0;
  bool started = false;
  for (size_t pos = 0; pos < s.size();) {
    const size_t at = pos;
    if (is_space(next_char(s, pos))) continue;
    if (!started) begin = at;
    started = true;
    end = pos;
  }
  return s.substr(begin, end - begin);
}

std::string without_underscores(std::string_view s) {
  std::string out(s);
  out.erase(std::remove(out.begin(), out.end(), '_'), out.end());
  return out;
}

// The number that all of `s` spells (std::strtod would ask the locale); false if it is none.
bool read_double(std::string_view s, double& d) {
  if (!s.empty() && s[0] == '+') s.remove_prefix(1);
  const auto r = std::from_chars(s.data(), s.data() + s.size(), d);
  if (r.ptr != s.data() + s.size()) return false;
  if (r.ec == std::errc::result_out_of_range) d = std::strtod(std::string(s).c_str(), nullptr);
  return r.ec != std::errc::invalid_argument;
}

// A numeric escape of exactly `n_digits` at s[pos]; moves pos past it.
char32_t hex_escape(std::string_view s, size_t& pos, size_t n_digits) {
  uint32_t c = 0;
  const std::string_view digits = s.substr(std::min(pos, s.size()), n_digits);
  if (digits.size() < n_digits || digits_length(digits, 16, false) != n_digits ||
      digits.find('_') != digits.npos) {
    fail_syntax("a string escape lacks hex digits, expected " + std::to_string(n_digits));
  }
  for (const char d : digits) c = c * 16 + static_cast<uint32_t>(digit_value(d));
  if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) {
    fail_syntax("a string escape names no unicode character");
  }
  pos += n_digits;
  return c;
}

char32_t octal_escape(std::string_view s, size_t& pos) {
  char32_t c = 0;
  for (int i = 0; i < 3 && pos < s.size() && s[pos] >= '0' && s[pos] <= '7'; ++i, ++pos) {
    c = c * 8 + static_cast<char32_t>(s[pos] - '0');
  }
  return c;
}

}  // namespace

std::string unescape(std::string_view s) {
  std::string out;
  for (size_t pos = 0; pos < s.size();) {
    if (s[pos] != '\\' || pos + 1 >= s.size()) {
      out += s[pos++];
      continue;
    }
    const char c = s[pos + 1];
    pos += 2;
    switch (c) {
      case '\n':
        break;
      case '\\':
      case '\'':
      case '"':
        out += c;
        break;
      case 'a':
        out += '\a';
        break;
      case 'b':
        out += '\b';
        break;
      case 'f':
        out += '\f';
        break;
      case 'n':
        out += '\n';
        break;
      case 'r':
        out += '\r';
        break;
      case 't':
        out += '\t';
        break;
      case 'v':
        out += '\v';
        break;
      case 'x':
        append_utf8(hex_escape(s, pos, 2), out);
        break;
      case 'u':
        append_utf8(hex_escape(s, pos, 4), out);
        break;
      case 'U':
        append_utf8(hex_escape(s, pos, 8), out);
        break;
      case 'N':
        fail_unsupported("\\N{...} in a string literal is not supported, write \\u....");
      default:
        if (c >= '0' && c <= '7') {
          append_utf8(octal_escape(s, --pos), out);
        } else {
          out += '\\';
          --pos;  // the character itself comes next
          if (static_cast<unsigned char>(c) < 0x80) out += s[pos++];
        }
    }
  }
  return out;
}

Value float_literal(std::string_view s) {
  double d = 0;
  read_double(without_underscores(s), d);
  return Value::number(d);
}

Value integer_literal(std::string_view s, size_t& n_bytes) {
  if (const int base = base_of_prefix(s)) {
    const size_t n = digits_length(s.substr(2), base, true);
    if (n > 0) {
      n_bytes = 2 + n;
      return digits_value(s.substr(2, n), base);
    }
  }
  n_bytes = digits_length(s, 10, false);
  if (s[0] == '0') {  // only zeros may follow a leading zero
    n_bytes = std::min(n_bytes, std::min(s.find_first_not_of("0_"), s.size()));
    while (s[n_bytes - 1] == '_') --n_bytes;
  }
  return digits_value(s.substr(0, n_bytes), 10);
}

Value parse_integer(std::string_view s, int base) {
  s = stripped(s);
  const bool is_negative = !s.empty() && s[0] == '-';
  if (!s.empty() && (s[0] == '-' || s[0] == '+')) s.remove_prefix(1);
  const int prefix = base_of_prefix(s);
  bool has_prefix = false;
  if (prefix != 0 && (base == 0 || base == prefix)) {
    s.remove_prefix(2);
    base = prefix;
    has_prefix = true;
  }
  if (base == 0) base = 10;
  if (base < 2 || base > 36) fail("int() base must be >= 2 and <= 36, or 0");
  if (s.empty() || digits_length(s, base, has_prefix) != s.size()) return {};
  Value v = digits_value(s, base);
  if (!is_negative) return v;
  if (v.is(Kind::kInt)) return Value::integer(-v.as_int());
  return Value::integer(BigInt{-v.as_big_int().v});
}

Value parse_float(std::string_view s) {
  double d = 0;
  if (!read_double(without_underscores(stripped(s)), d)) return {};
  return Value::number(d);
}

}  // namespace dovetail::core::jinja
