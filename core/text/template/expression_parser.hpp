// The expression half of the parser; parser.cpp has the statements.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/text/template/ast.hpp"
#include "core/text/template/token_stream.hpp"

namespace dovetail::core::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  ExprPtr parse_expression();
  /// An expression without an inline if, where a loop's own `if` may follow.
  ExprPtr parse_plain() { return parse_or(); }
  /// One expression or, with commas, a tuple of them.
  ExprPtr parse_tuple(bool with_inline_if = true);
  /// What a call block calls: an expression that must end in (arguments).
  std::unique_ptr<const Call> parse_call_expression();
  /// name(args) | name … applied to the text of a block.
  ExprPtr parse_block_filters();

  NameId intern(const std::string& name);
  std::vector<std::string> take_names() { return std::move(names_); }
  /// How often a variable was read so far.
  size_t n_mentions(NameId id) const { return n_mentions_[static_cast<size_t>(id)]; }

  /// Filters and tests that nobody knows are faults of the template, except inside an if, where they
  /// fail only when reached: whoever parses an if drops those found since it began.
  size_t n_unknown() const { return unknown_.size(); }
  void drop_unknown(size_t n_kept) {
    unknown_.erase(unknown_.begin() + static_cast<ptrdiff_t>(n_kept), unknown_.end());
  }
  void fail_on_unknown(Span& at) const;

 private:
  class Nested;
  struct Unknown {
    Span span;
    Fault fault;
  };

  ExprPtr parse_or();
  ExprPtr parse_and();
  ExprPtr parse_not();
  ExprPtr parse_compare();
  ExprPtr parse_sum();
  ExprPtr parse_concat();
  ExprPtr parse_product();
  ExprPtr parse_power();
  ExprPtr parse_unary(bool with_filters = true);
  ExprPtr parse_primary();
  ExprPtr parse_postfix(ExprPtr node);
  ExprPtr parse_filters_and_tests(ExprPtr node);
  ExprPtr parse_string();
  ExprPtr parse_list();
  ExprPtr parse_dict();
  ExprPtr parse_parenthesised();
  ExprPtr parse_dotted(ExprPtr object);
  ExprPtr parse_subscript(ExprPtr object);
  ExprPtr parse_subscript_key();
  ExprPtr parse_call(ExprPtr callee);
  ExprPtr parse_filter(ExprPtr subject);
  ExprPtr parse_test(ExprPtr subject);
  CallArgs parse_args();
  std::string parse_dotted_name();

  template <class T>
  std::unique_ptr<T> make(ExprKind kind, uint32_t begin) const;
  /// Sets the node's end and depth.
  template <class T>
  std::unique_ptr<T> finish(std::unique_ptr<T> node) const;
  ExprPtr constant(Value value, uint32_t begin) const;
  ExprPtr binary(ExprKind kind, ArithmeticOp op, ExprPtr left, ExprPtr right) const;

  TokenStream& tokens_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, NameId> ids_;
  std::vector<size_t> n_mentions_;
  std::vector<Unknown> unknown_;
  int depth_ = 0;
};

}  // namespace dovetail::core::jinja
