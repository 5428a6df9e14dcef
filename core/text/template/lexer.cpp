#include "core/text/template/lexer.hpp"

#include <optional>
#include <utility>

#include "core/text/template/literals.hpp"
#include "core/text/template/unicode.hpp"

namespace dovetail::core::jinja {
namespace {

using Type = Token::Type;

[[noreturn]] void fail_syntax(const std::string& message) {
  throw Fault(Code::kFormat, message);
}

bool is_decimal(char c) {
  return c >= '0' && c <= '9';
}

class Lexer {
 public:
  Lexer(std::string_view source, Span& at) : s_(source), at_(at) {}

  std::vector<Token> run() {
    while (pos_ < s_.size()) read_text_and_tag();
    push(Type::kEnd, s_.size(), s_.size());
    return std::move(tokens_);
  }

 private:
  // Text up to the next tag, then the tag.
  void read_text_and_tag() {
    const size_t begin = pos_;
    size_t tag = s_.find('{', begin);
    while (tag != s_.npos && (tag + 1 >= s_.size() || !is_tag_char(s_[tag + 1]))) {
      tag = s_.find('{', tag + 1);
    }
    if (tag == s_.npos) {
      push_data(begin, s_.size());
      pos_ = s_.size();
      return;
    }
    const char kind = s_[tag + 1];
    const char sign = sign_at(tag + 2);
    const size_t inside = tag + 2 + (sign != 0 ? 1 : 0);
    push_data(begin, strip_before(begin, tag, sign, kind != '{'));

    at_ = {static_cast<uint32_t>(tag), static_cast<uint32_t>(inside)};
    if (kind == '#') {
      skip_comment(inside);
    } else if (kind == '{') {
      push(Type::kPrintBegin, tag, inside);
      pos_ = inside;
      read_expression(Type::kPrintEnd);
    } else if (const auto content = after_raw_begin(inside)) {
      read_raw(*content);
    } else {
      push(Type::kBlockBegin, tag, inside);
      pos_ = inside;
      read_expression(Type::kBlockEnd);
    }
    line_starting_ = pos_ > 0 && s_[pos_ - 1] == '\n';
  }

  static bool is_tag_char(char c) { return c == '{' || c == '%' || c == '#'; }

  char sign_at(size_t pos) const {
    return pos < s_.size() && (s_[pos] == '-' || s_[pos] == '+') ? s_[pos] : '\0';
  }

  size_t skip_space(size_t pos) const {
    while (pos < s_.size()) {
      size_t next = pos;
      if (!is_space(next_char(s_, next))) break;
      pos = next;
    }
    return pos;
  }

  size_t skip_newline(size_t pos) const {
    return pos < s_.size() && s_[pos] == '\n' ? pos + 1 : pos;
  }

  // Where the text [begin, tag) ends once white space before the tag is stripped.
  size_t strip_before(size_t begin, size_t tag, char sign, bool is_block) const {
    if (sign == '+') return tag;
    if (sign == '-') return begin + size_without_trailing_space(s_.substr(begin, tag - begin));
    if (!is_block) return tag;
    const std::string_view text = s_.substr(begin, tag - begin);
    const size_t newline = text.rfind('\n');
    const size_t line = newline == text.npos ? 0 : newline + 1;
    const bool starts_line = newline != text.npos || line_starting_;
    return starts_line && skip_space(begin + line) >= tag ? begin + line : tag;
  }

  static size_t size_without_trailing_space(std::string_view text) {
    size_t end = 0;
    for (size_t pos = 0; pos < text.size();) {
      if (!is_space(next_char(text, pos))) end = pos;
    }
    return end;
  }

  void skip_comment(size_t inside) {
    const size_t end = s_.find("#}", inside);
    if (end == s_.npos) fail_syntax("a comment is not closed, expected #}");
    const char sign = end > inside ? sign_at(end - 1) : '\0';
    pos_ = end + 2;
    if (sign == '-') pos_ = skip_space(pos_);
    if (sign == '\0') pos_ = skip_newline(pos_);
  }

  // If the block tag whose inside begins at `pos` is {% raw %}: where its content begins.
  std::optional<size_t> after_raw_begin(size_t pos) const {
    pos = skip_space(pos);
    if (s_.substr(pos, 3) != "raw") return std::nullopt;
    pos = skip_space(pos + 3);
    if (s_.substr(pos, 3) == "-%}") return skip_space(pos + 3);
    if (s_.substr(pos, 2) == "%}") return pos + 2;
    return std::nullopt;
  }

  void read_raw(size_t content) {
    line_starting_ = s_[content - 1] == '\n';
    for (size_t tag = s_.find("{%", content); tag != s_.npos; tag = s_.find("{%", tag + 2)) {
      const char sign = sign_at(tag + 2);
      size_t pos = skip_space(tag + 2 + (sign != 0 ? 1 : 0));
      if (s_.substr(pos, 6) != "endraw") continue;
      pos = skip_space(pos + 6);
      const auto end = block_end(pos);
      if (!end) continue;
      push_data(content, strip_before(content, tag, sign, true));
      pos_ = *end;
      return;
    }
    fail_syntax("a raw block is not closed, expected {% endraw %}");
  }

  // If "%}" with or without a sign stands at `pos`: where the text after it begins.
  std::optional<size_t> block_end(size_t pos) const {
    if (s_.substr(pos, 3) == "-%}") return skip_space(pos + 3);
    if (s_.substr(pos, 3) == "+%}") return pos + 3;
    if (s_.substr(pos, 2) == "%}") return skip_newline(pos + 2);
    return std::nullopt;
  }

  std::optional<size_t> print_end(size_t pos) const {
    if (s_.substr(pos, 3) == "-}}") return skip_space(pos + 3);
    if (s_.substr(pos, 2) == "}}") return pos + 2;
    return std::nullopt;
  }

  // Tokens inside a tag, through its end. Inside brackets no end is looked for.
  void read_expression(Type end_type) {
    std::string open;  // brackets
    while (true) {
      pos_ = skip_space(pos_);
      if (pos_ >= s_.size()) return;  // the parser says what is missing
      if (open.empty()) {
        if (const auto after = end_type == Type::kBlockEnd ? block_end(pos_) : print_end(pos_)) {
          push(end_type, pos_, pos_ + 2);
          pos_ = *after;
          return;
        }
      }
      const char c = s_[pos_];
      if (is_decimal(c)) {
        read_number();
      } else if (c == '"' || c == '\'') {
        read_string();
      } else if (size_t next = pos_; is_name_part(next_char(s_, next))) {
        read_name();
      } else {
        read_operator(open);
      }
    }
  }

  void read_name() {
    const size_t begin = pos_;
    size_t first_end = pos_;
    mark(begin, begin + 1);
    if (!is_name_start(next_char(s_, first_end)))
      fail_syntax("a name starts with a wrong character");
    for (size_t next = pos_; pos_ < s_.size() && is_name_part(next_char(s_, next));) pos_ = next;
    push(Type::kName, begin, pos_).text = s_.substr(begin, pos_ - begin);
  }

  void read_string() {
    const size_t begin = pos_;
    const char quote = s_[begin];
    size_t end = begin + 1;
    while (end < s_.size() && s_[end] != quote) end += s_[end] == '\\' ? 2 : 1;
    mark(begin, begin + 1);
    if (end >= s_.size()) fail_syntax("a string literal is not closed");
    push(Type::kString, begin, end + 1).text = unescape(s_.substr(begin + 1, end - begin - 1));
    pos_ = end + 1;
  }

  // Digits with single underscores between them.
  size_t skip_digits(size_t pos) const {
    if (pos >= s_.size() || !is_decimal(s_[pos])) return pos;
    while (pos < s_.size()) {
      if (is_decimal(s_[pos])) {
        ++pos;
      } else if (s_[pos] == '_' && pos + 1 < s_.size() && is_decimal(s_[pos + 1])) {
        pos += 2;
      } else {
        break;
      }
    }
    return pos;
  }

  // Where the float that begins at pos_ ends; pos_ if there is none.
  size_t float_end() const {
    if (pos_ > 0 && s_[pos_ - 1] == '.') return pos_;  // the 0 in a.0.1
    const size_t whole = skip_digits(pos_);
    size_t end = whole;
    if (whole + 1 < s_.size() && s_[whole] == '.') end = skip_digits(whole + 1);
    if (end == whole + 1) end = whole;
    if (end < s_.size() && (s_[end] == 'e' || s_[end] == 'E')) {
      const size_t digits = end + 1 + (sign_at(end + 1) != 0 ? 1 : 0);
      const size_t exponent_end = skip_digits(digits);
      if (exponent_end > digits) end = exponent_end;
    }
    return end == whole ? pos_ : end;
  }

  void read_number() {
    const size_t begin = pos_;
    mark(begin, begin + 1);
    if (const size_t end = float_end(); end > begin) {
      pos_ = end;
      push(Type::kNumber, begin, end).number = float_literal(s_.substr(begin, end - begin));
      return;
    }
    size_t n_bytes = 0;
    Value number = integer_literal(s_.substr(begin), n_bytes);
    pos_ = begin + n_bytes;
    push(Type::kNumber, begin, pos_).number = std::move(number);
  }

  void read_operator(std::string& open) {
    static constexpr std::string_view kOperators[] = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "*", "/", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    mark(pos_, pos_ + 1);
    for (const std::string_view op : kOperators) {
      if (s_.substr(pos_, op.size()) != op) continue;
      check_bracket(op[0], open);
      push(Type::kOperator, pos_, pos_ + op.size()).text = op;
      pos_ += op.size();
      return;
    }
    size_t end = pos_;
    next_char(s_, end);
    fail_syntax("unexpected character '" + std::string(s_.substr(pos_, end - pos_)) + "'");
  }

  static void check_bracket(char c, std::string& open) {
    if (c == '(' || c == '[' || c == '{') {
      open += c == '(' ? ')' : c == '[' ? ']' : '}';  // what closes it
    } else if (c == ')' || c == ']' || c == '}') {
      if (open.empty()) fail_syntax(std::string("unexpected '") + c + "'");
      if (open.back() != c) {
        fail_syntax(std::string("unexpected '") + c + "', expected '" + open.back() + "'");
      }
      open.pop_back();
    }
  }

  void mark(size_t begin, size_t end) {
    at_ = {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)};
  }

  Token& push(Type type, size_t begin, size_t end) {
    mark(begin, end);
    Token token;
    token.type = type;
    token.span = at_;
    tokens_.push_back(std::move(token));
    return tokens_.back();
  }

  void push_data(size_t begin, size_t end) {
    if (begin < end) push(Type::kData, begin, end).text = s_.substr(begin, end - begin);
  }

  std::string_view s_;
  Span& at_;
  size_t pos_ = 0;
  bool line_starting_ = true;  // pos_ is right after a line break, or at the very start
  std::vector<Token> tokens_;
};

}  // namespace

std::string normalize_source(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

std::vector<Token> tokenize(std::string_view source, Span& at) {
  return Lexer(source, at).run();
}

}  // namespace dovetail::core::jinja
