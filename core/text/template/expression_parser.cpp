// Precedence, loosest first: inline if, or, and, not, comparisons, + -, ~, * / // %, **, unary, postfix.
#include "core/text/template/expression_parser.hpp"

#include <algorithm>

#include "core/text/template/builtins.hpp"
#include "core/text/template/parts.hpp"

namespace dovetail::core::jinja {
namespace {

constexpr int kMaxNesting = 120;         // brackets, nots and the like inside each other
constexpr uint32_t kMaxExprDepth = 600;  // levels of the tree, as long chains of + make them

using Type = Token::Type;

struct Operator {
  std::string_view text;
  ArithmeticOp op;
};

constexpr Operator kSums[] = {{"+", ArithmeticOp::kAdd}, {"-", ArithmeticOp::kSubtract}};
constexpr Operator kProducts[] = {{"*", ArithmeticOp::kMultiply},
                                  {"/", ArithmeticOp::kDivide},
                                  {"//", ArithmeticOp::kFloorDivide},
                                  {"%", ArithmeticOp::kModulo}};

struct Comparison {
  std::string_view text;
  CompareOp op;
};

constexpr Comparison kComparisons[] = {
    {"==", CompareOp::kEqual},     {"!=", CompareOp::kNotEqual}, {"<", CompareOp::kLess},
    {"<=", CompareOp::kLessEqual}, {">", CompareOp::kGreater},   {">=", CompareOp::kGreaterEqual}};

template <class Table>
auto find_operator(const TokenStream& tokens, const Table& table) {
  return std::find_if(std::begin(table), std::end(table),
                      [&](const auto& entry) { return tokens.is_op(entry.text); });
}

}  // namespace

class ExpressionParser::Nested {
 public:
  explicit Nested(ExpressionParser& p) : parser_(p) {
    if (++parser_.depth_ > kMaxNesting) {
      fail_syntax("expressions are nested deeper than " + std::to_string(kMaxNesting) + " levels");
    }
  }
  ~Nested() { --parser_.depth_; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

 private:
  ExpressionParser& parser_;
};

template <class T>
std::unique_ptr<T> ExpressionParser::make(ExprKind kind, uint32_t begin) const {
  return std::make_unique<T>(kind, Span{begin, begin});
}

template <class T>
std::unique_ptr<T> ExpressionParser::finish(std::unique_ptr<T> node) const {
  node->span.end = tokens_.previous().span.end;
  visit_parts(
      *node, [&depth = node->depth](const Expr& part) { depth = std::max(depth, part.depth + 1); });
  if (node->depth > kMaxExprDepth) {
    fail_syntax("an expression is nested deeper than " + std::to_string(kMaxExprDepth) + " levels");
  }
  return node;
}

ExprPtr ExpressionParser::constant(Value value, uint32_t begin) const {
  auto node = make<Constant>(ExprKind::kConstant, begin);
  node->value = std::move(value);
  return finish(std::move(node));
}

ExprPtr ExpressionParser::binary(ExprKind kind, ArithmeticOp op, ExprPtr left,
                                 ExprPtr right) const {
  auto node = make<Binary>(kind, left->span.begin);
  node->op = op;
  node->left = std::move(left);
  node->right = std::move(right);
  return finish(std::move(node));
}

NameId ExpressionParser::intern(const std::string& name) {
  const auto [at, is_new] = ids_.emplace(name, static_cast<NameId>(names_.size()));
  if (is_new) {
    names_.push_back(name);
    n_mentions_.push_back(0);
  }
  return at->second;
}

void ExpressionParser::fail_on_unknown(Span& at) const {
  if (unknown_.empty()) return;
  at = unknown_.front().span;
  throw unknown_.front().fault;
}

ExprPtr ExpressionParser::parse_expression() {
  const size_t n_unknown_before = n_unknown();
  ExprPtr chosen = parse_or();
  while (tokens_.skip_name("if")) {
    auto node = make<Conditional>(ExprKind::kConditional, chosen->span.begin);
    node->chosen = std::move(chosen);
    node->condition = parse_or();
    if (tokens_.skip_name("else")) {
      const Nested nested(*this);
      node->other = parse_expression();
    }
    chosen = finish(std::move(node));
    drop_unknown(n_unknown_before);
  }
  return chosen;
}

ExprPtr ExpressionParser::parse_or() {
  ExprPtr left = parse_and();
  while (tokens_.skip_name("or")) {
    left = binary(ExprKind::kOr, {}, std::move(left), parse_and());
  }
  return left;
}

ExprPtr ExpressionParser::parse_and() {
  ExprPtr left = parse_not();
  while (tokens_.skip_name("and")) {
    left = binary(ExprKind::kAnd, {}, std::move(left), parse_not());
  }
  return left;
}

ExprPtr ExpressionParser::parse_not() {
  if (!tokens_.is_name("not")) return parse_compare();
  const Nested nested(*this);
  auto node = make<Unary>(ExprKind::kNot, tokens_.take().span.begin);
  node->operand = parse_not();
  return finish(std::move(node));
}

ExprPtr ExpressionParser::parse_compare() {
  ExprPtr first = parse_sum();
  std::vector<std::pair<CompareOp, ExprPtr>> rest;
  while (true) {
    const auto comparison = find_operator(tokens_, kComparisons);
    if (comparison != std::end(kComparisons)) {
      tokens_.take();
      rest.emplace_back(comparison->op, parse_sum());
    } else if (tokens_.skip_name("in")) {
      rest.emplace_back(CompareOp::kIn, parse_sum());
    } else if (tokens_.is_name("not") && tokens_.after().type == Type::kName &&
               tokens_.after().text == "in") {
      tokens_.take();
      tokens_.take();
      rest.emplace_back(CompareOp::kNotIn, parse_sum());
    } else {
      break;
    }
  }
  if (rest.empty()) return first;
  auto node = make<Compare>(ExprKind::kCompare, first->span.begin);
  node->first = std::move(first);
  node->rest = std::move(rest);
  return finish(std::move(node));
}

ExprPtr ExpressionParser::parse_sum() {
  ExprPtr left = parse_concat();
  for (auto op = find_operator(tokens_, kSums); op != std::end(kSums);
       op = find_operator(tokens_, kSums)) {
    tokens_.take();
    left = binary(ExprKind::kArithmetic, op->op, std::move(left), parse_concat());
  }
  return left;
}

ExprPtr ExpressionParser::parse_concat() {
  ExprPtr first = parse_product();
  if (!tokens_.is_op("~")) return first;
  auto node = make<Items>(ExprKind::kConcat, first->span.begin);
  node->items.push_back(std::move(first));
  while (tokens_.skip_op("~")) node->items.push_back(parse_product());
  return finish(std::move(node));
}

ExprPtr ExpressionParser::parse_product() {
  ExprPtr left = parse_power();
  for (auto op = find_operator(tokens_, kProducts); op != std::end(kProducts);
       op = find_operator(tokens_, kProducts)) {
    tokens_.take();
    left = binary(ExprKind::kArithmetic, op->op, std::move(left), parse_power());
  }
  return left;
}

ExprPtr ExpressionParser::parse_power() {
  ExprPtr left = parse_unary();
  while (tokens_.skip_op("**")) {
    left = binary(ExprKind::kArithmetic, ArithmeticOp::kPower, std::move(left), parse_unary());
  }
  return left;
}

ExprPtr ExpressionParser::parse_unary(bool with_filters) {
  const Nested nested(*this);
  ExprPtr node;
  if (tokens_.is_op("-") || tokens_.is_op("+")) {
    const Token sign = tokens_.take();
    auto unary =
        make<Unary>(sign.text == "-" ? ExprKind::kNegative : ExprKind::kPositive, sign.span.begin);
    unary->operand = parse_unary(false);
    node = finish(std::move(unary));
  } else {
    node = parse_primary();
  }
  node = parse_postfix(std::move(node));
  return with_filters ? parse_filters_and_tests(std::move(node)) : std::move(node);
}

ExprPtr ExpressionParser::parse_primary() {
  const uint32_t begin = tokens_.current().span.begin;
  switch (tokens_.current().type) {
    case Type::kName: {
      const std::string name = tokens_.take().text;
      if (name == "true" || name == "True") return constant(Value::boolean(true), begin);
      if (name == "false" || name == "False") return constant(Value::boolean(false), begin);
      if (name == "none" || name == "None") return constant(Value::none(), begin);
      auto node = make<Name>(ExprKind::kName, begin);
      node->id = intern(name);
      ++n_mentions_[static_cast<size_t>(node->id)];
      return finish(std::move(node));
    }
    case Type::kString:
      return parse_string();
    case Type::kNumber:
      return constant(tokens_.take().number, begin);
    default:
      break;
  }
  if (tokens_.is_op("(")) return parse_parenthesised();
  if (tokens_.is_op("[")) return parse_list();
  if (tokens_.is_op("{")) return parse_dict();
  tokens_.fail_expected("an expression");
}

ExprPtr ExpressionParser::parse_string() {
  const uint32_t begin = tokens_.current().span.begin;
  std::string text = tokens_.take().text;
  while (tokens_.is(Type::kString)) text += tokens_.take().text;  // neighbours are one string
  return constant(Value::string(std::move(text)), begin);
}

ExprPtr ExpressionParser::parse_list() {
  auto node = make<Items>(ExprKind::kList, tokens_.take().span.begin);
  while (!tokens_.is_op("]")) {
    if (!node->items.empty()) tokens_.expect_op(",");
    if (tokens_.is_op("]")) break;
    node->items.push_back(parse_expression());
  }
  tokens_.expect_op("]");
  return finish(std::move(node));
}

ExprPtr ExpressionParser::parse_dict() {
  auto node = make<DictDisplay>(ExprKind::kDict, tokens_.take().span.begin);
  while (!tokens_.is_op("}")) {
    if (!node->entries.empty()) tokens_.expect_op(",");
    if (tokens_.is_op("}")) break;
    ExprPtr key = parse_expression();
    tokens_.expect_op(":");
    node->entries.emplace_back(std::move(key), parse_expression());
  }
  tokens_.expect_op("}");
  return finish(std::move(node));
}

ExprPtr ExpressionParser::parse_parenthesised() {
  const uint32_t begin = tokens_.take().span.begin;
  if (tokens_.skip_op(")")) return finish(make<Items>(ExprKind::kTuple, begin));
  ExprPtr node = parse_tuple();
  tokens_.expect_op(")");
  return node;
}

ExprPtr ExpressionParser::parse_tuple(bool with_inline_if) {
  const auto part = [&] { return with_inline_if ? parse_expression() : parse_plain(); };
  ExprPtr first = part();
  if (!tokens_.is_op(",")) return first;
  auto node = make<Items>(ExprKind::kTuple, first->span.begin);
  node->items.push_back(std::move(first));
  while (tokens_.skip_op(",")) {
    const bool at_end = tokens_.is(Type::kPrintEnd) || tokens_.is(Type::kBlockEnd) ||
                        tokens_.is_op(")") || tokens_.is_op("]") || tokens_.is_op("=") ||
                        tokens_.is_name("in") || tokens_.is_name("recursive");
    if (at_end) break;
    node->items.push_back(part());
  }
  return finish(std::move(node));
}

ExprPtr ExpressionParser::parse_postfix(ExprPtr node) {
  while (true) {
    if (tokens_.is_op(".")) {
      node = parse_dotted(std::move(node));
    } else if (tokens_.is_op("[")) {
      node = parse_subscript(std::move(node));
    } else if (tokens_.is_op("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

ExprPtr ExpressionParser::parse_filters_and_tests(ExprPtr node) {
  while (true) {
    if (tokens_.is_op("|")) {
      tokens_.take();
      node = parse_filter(std::move(node));
    } else if (tokens_.is_name("is")) {
      node = parse_test(std::move(node));
    } else if (tokens_.is_op("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

ExprPtr ExpressionParser::parse_dotted(ExprPtr object) {
  tokens_.take();
  if (tokens_.is(Type::kName)) {
    auto node = make<Attribute>(ExprKind::kAttribute, object->span.begin);
    node->object = std::move(object);
    node->name = tokens_.take().text;
    return finish(std::move(node));
  }
  if (!tokens_.is(Type::kNumber) || !tokens_.current().number.is_integer()) {
    tokens_.fail_expected("a name or an integer after '.'");
  }
  auto node = make<Item>(ExprKind::kItem, object->span.begin);
  node->object = std::move(object);
  const uint32_t begin = tokens_.current().span.begin;
  node->key = constant(tokens_.take().number, begin);
  return finish(std::move(node));
}

ExprPtr ExpressionParser::parse_subscript(ExprPtr object) {
  const uint32_t begin = object->span.begin;
  tokens_.take();
  ExprPtr start;
  if (!tokens_.is_op(":")) {
    start = parse_subscript_key();
    if (!tokens_.is_op(":")) {
      auto node = make<Item>(ExprKind::kItem, begin);
      node->object = std::move(object);
      node->key = std::move(start);
      tokens_.expect_op("]");
      return finish(std::move(node));
    }
  }
  auto node = make<Slice>(ExprKind::kSlice, begin);
  node->object = std::move(object);
  node->start = std::move(start);
  tokens_.expect_op(":");
  if (!tokens_.is_op(":") && !tokens_.is_op("]")) node->stop = parse_expression();
  if (tokens_.skip_op(":") && !tokens_.is_op("]")) node->step = parse_expression();
  tokens_.expect_op("]");
  return finish(std::move(node));
}

// a[1, 2] looks up the tuple (1, 2).
ExprPtr ExpressionParser::parse_subscript_key() {
  if (tokens_.is_op("]")) tokens_.fail_expected("an index");
  return parse_tuple();
}

ExprPtr ExpressionParser::parse_call(ExprPtr callee) {
  auto node = make<Call>(ExprKind::kCall, callee->span.begin);
  node->callee = std::move(callee);
  node->args = parse_args();
  return finish(std::move(node));
}

std::unique_ptr<const Call> ExpressionParser::parse_call_expression() {
  ExprPtr node = parse_expression();
  if (node->kind != ExprKind::kCall) tokens_.fail_expected("a call, as in {% call m() %}");
  return std::unique_ptr<const Call>(static_cast<const Call*>(node.release()));
}

CallArgs ExpressionParser::parse_args() {
  CallArgs args;
  tokens_.expect_op("(");
  for (bool first = true; !tokens_.is_op(")"); first = false) {
    if (!first) {
      tokens_.expect_op(",");
      if (tokens_.is_op(")")) break;
    }
    const bool is_named = tokens_.is(Type::kName) && tokens_.after().type == Type::kOperator &&
                          tokens_.after().text == "=";
    if (tokens_.skip_op("*")) {
      if (args.spread || args.spread_named) fail_syntax("a call has two *arguments");
      args.spread = parse_expression();
    } else if (tokens_.skip_op("**")) {
      if (args.spread_named) fail_syntax("a call has two **arguments");
      args.spread_named = parse_expression();
    } else if (is_named) {
      if (args.spread_named) fail_syntax("a named argument stands after **arguments");
      std::string name = tokens_.take().text;
      tokens_.take();
      args.named.emplace_back(std::move(name), parse_expression());
    } else {
      if (!args.named.empty() || args.spread || args.spread_named) {
        fail_syntax("a positional argument stands after named ones");
      }
      args.positional.push_back(parse_expression());
    }
  }
  tokens_.expect_op(")");
  return args;
}

std::string ExpressionParser::parse_dotted_name() {
  std::string name = tokens_.expect(Type::kName, "a name").text;
  while (tokens_.skip_op(".")) name.append(".").append(tokens_.expect(Type::kName, "a name").text);
  return name;
}

ExprPtr ExpressionParser::parse_filter(ExprPtr subject) {
  const Span name_span = tokens_.current().span;
  auto node = make<FilterExpr>(ExprKind::kFilter,
                               subject == nullptr ? name_span.begin : subject->span.begin);
  node->subject = std::move(subject);
  node->name_span = name_span;
  node->name = parse_dotted_name();
  node->filter = find_filter(node->name);
  if (node->filter == nullptr) unknown_.push_back({name_span, unknown_filter(node->name)});
  if (tokens_.is_op("(")) node->args = parse_args();
  return finish(std::move(node));
}

ExprPtr ExpressionParser::parse_block_filters() {
  ExprPtr node = parse_filter(nullptr);
  while (tokens_.skip_op("|")) node = parse_filter(std::move(node));
  return node;
}

ExprPtr ExpressionParser::parse_test(ExprPtr subject) {
  tokens_.take();
  auto node = make<TestExpr>(ExprKind::kTest, subject->span.begin);
  node->subject = std::move(subject);
  node->is_negated = tokens_.skip_name("not");
  const Span name_span = node->name_span = tokens_.current().span;
  node->name = parse_dotted_name();
  node->test = find_test(node->name);
  if (node->test == nullptr) unknown_.push_back({name_span, unknown_test(node->name)});
  const Type next = tokens_.current().type;
  if (tokens_.is_op("(")) {
    node->args = parse_args();
  } else if (next == Type::kString || next == Type::kNumber || tokens_.is_op("[") ||
             tokens_.is_op("{") ||
             (next == Type::kName && !tokens_.is_name("else") && !tokens_.is_name("or") &&
              !tokens_.is_name("and"))) {
    if (tokens_.is_name("is")) fail_syntax("tests cannot be chained with 'is'");
    node->args.positional.push_back(parse_postfix(parse_primary()));
  }
  return finish(std::move(node));
}

}  // namespace dovetail::core::jinja
