// TokenStream: the parser's view of the tokens, with the errors for what is not there.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/template/lexer.hpp"

namespace dovetail::core::jinja {

[[noreturn]] inline void fail_syntax(std::string message) {
  throw Fault(Code::kFormat, std::move(message));
}

class TokenStream {
 public:
  TokenStream(std::vector<Token> tokens, Span& at) : tokens_(std::move(tokens)), at_(at) {
    at_ = tokens_[0].span;
  }

  const Token& current() const { return tokens_[next_]; }
  const Token& after() const { return tokens_[std::min(next_ + 1, tokens_.size() - 1)]; }
  const Token& previous() const { return tokens_[next_ == 0 ? 0 : next_ - 1]; }

  Token take() {
    Token& token = tokens_[next_];
    if (token.type != Token::Type::kEnd) ++next_;
    at_ = current().span;
    return std::move(token);
  }

  bool is(Token::Type type) const { return current().type == type; }
  bool is_op(std::string_view op) const {
    return is(Token::Type::kOperator) && current().text == op;
  }
  bool is_name(std::string_view name) const {
    return is(Token::Type::kName) && current().text == name;
  }

  bool skip_op(std::string_view op) { return is_op(op) && (take(), true); }
  bool skip_name(std::string_view name) { return is_name(name) && (take(), true); }

  void expect_op(std::string_view op) {
    if (!skip_op(op)) fail_expected(in_quotes(op));
  }
  void expect_name(std::string_view name) {
    if (!skip_name(name)) fail_expected(in_quotes(name));
  }
  Token expect(Token::Type type, const char* what) {
    if (!is(type)) fail_expected(what);
    return take();
  }

  [[noreturn]] void fail_expected(const std::string& what) const {
    fail_syntax("got " + describe(current()) + ", expected " + what);
  }

  static std::string describe(const Token& token) {
    switch (token.type) {
      case Token::Type::kData:
        return "text";
      case Token::Type::kBlockBegin:
        return "a tag";
      case Token::Type::kBlockEnd:
        return "the end of the tag";
      case Token::Type::kPrintBegin:
        return "a print tag";
      case Token::Type::kPrintEnd:
        return "the end of the print tag";
      case Token::Type::kString:
        return "a string";
      case Token::Type::kNumber:
        return "a number";
      case Token::Type::kEnd:
        return "the end of the template";
      case Token::Type::kName:
      case Token::Type::kOperator:
        return in_quotes(token.text);
    }
    return "?";
  }

 private:
  std::vector<Token> tokens_;
  Span& at_;
  size_t next_ = 0;
};

}  // namespace dovetail::core::jinja
