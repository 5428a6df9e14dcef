// Expressions.
#include "core/text/template/builtins.hpp"
#include "core/text/template/interpreter.hpp"
#include "core/text/template/operators.hpp"
#include "core/text/template/print.hpp"

namespace dovetail::core::jinja {

Value Interpreter::eval(const Expr& e, const ScopePtr& scope) {
  const Budget::Level level(budget_);
  budget_.step();
  at_ = e.span;
  switch (e.kind) {
    case ExprKind::kConstant:
      return static_cast<const Constant&>(e).value;
    case ExprKind::kName:
      return eval_name(static_cast<const Name&>(e), *scope);
    case ExprKind::kTuple:
      return Value::tuple(eval_items(static_cast<const Items&>(e).items, scope), budget_);
    case ExprKind::kList:
      return Value::list(eval_items(static_cast<const Items&>(e).items, scope), budget_);
    case ExprKind::kDict:
      return eval_dict(static_cast<const DictDisplay&>(e), scope);
    case ExprKind::kNot:
      return Value::boolean(!eval(*static_cast<const Unary&>(e).operand, scope).truth());
    case ExprKind::kNegative:
    case ExprKind::kPositive:
      return eval_unary(static_cast<const Unary&>(e), scope);
    case ExprKind::kArithmetic:
      return eval_arithmetic(static_cast<const Binary&>(e), scope);
    case ExprKind::kConcat:
      return eval_concat(static_cast<const Items&>(e), scope);
    case ExprKind::kAnd:
    case ExprKind::kOr:
      return eval_logic(static_cast<const Binary&>(e), scope);
    case ExprKind::kCompare:
      return eval_compare(static_cast<const Compare&>(e), scope);
    case ExprKind::kConditional:
      return eval_conditional(static_cast<const Conditional&>(e), scope);
    case ExprKind::kAttribute: {
      const Attribute& attribute = static_cast<const Attribute&>(e);
      const Value object = eval(*attribute.object, scope);
      at_ = e.span;
      return get_attribute(object, attribute.name, budget_);
    }
    case ExprKind::kItem: {
      const Item& item = static_cast<const Item&>(e);
      const Value object = eval(*item.object, scope);
      const Value key = eval(*item.key, scope);
      at_ = e.span;
      return get_item(object, key, budget_);
    }
    case ExprKind::kSlice:
      return eval_slice(static_cast<const Slice&>(e), scope);
    case ExprKind::kCall:
      return eval_call(static_cast<const Call&>(e), scope, nullptr);
    case ExprKind::kFilter:
      return eval_filter(static_cast<const FilterExpr&>(e), scope, nullptr);
    case ExprKind::kTest:
      return eval_test(static_cast<const TestExpr&>(e), scope);
  }
  return {};
}

Value Interpreter::eval_name(const Name& e, const Scope& scope) {
  const Value* value = scope.find(e.id);
  return value != nullptr ? *value : global(e.id);
}

std::vector<Value> Interpreter::eval_items(const std::vector<ExprPtr>& items,
                                           const ScopePtr& scope) {
  std::vector<Value> values;
  values.reserve(items.size());
  for (const ExprPtr& item : items) values.push_back(eval(*item, scope));
  return values;
}

Value Interpreter::eval_dict(const DictDisplay& e, const ScopePtr& scope) {
  std::vector<std::pair<Value, Value>> entries;
  entries.reserve(e.entries.size());
  for (const auto& [key, value] : e.entries) {
    Value k = eval(*key, scope);
    entries.emplace_back(std::move(k), eval(*value, scope));
  }
  at_ = e.span;
  return Value::dict(std::move(entries), budget_);
}

Value Interpreter::eval_unary(const Unary& e, const ScopePtr& scope) {
  const Value operand = eval(*e.operand, scope);
  at_ = e.span;
  return e.kind == ExprKind::kNegative ? negative(operand) : positive(operand);
}

Value Interpreter::eval_arithmetic(const Binary& e, const ScopePtr& scope) {
  const Value left = eval(*e.left, scope);
  const Value right = eval(*e.right, scope);
  at_ = e.span;
  return arithmetic(e.op, left, right, budget_);
}

Value Interpreter::eval_logic(const Binary& e, const ScopePtr& scope) {
  Value left = eval(*e.left, scope);
  const bool decides = left.truth() == (e.kind == ExprKind::kOr);
  return decides ? left : eval(*e.right, scope);
}

Value Interpreter::eval_concat(const Items& e, const ScopePtr& scope) {
  TextBuilder out(budget_);
  for (const ExprPtr& item : e.items) write_str(eval(*item, scope), out);
  return Value::string(out.take());
}

Value Interpreter::eval_compare(const Compare& e, const ScopePtr& scope) {
  Value left = eval(*e.first, scope);
  for (const auto& [op, operand] : e.rest) {
    Value right = eval(*operand, scope);
    at_ = e.span;
    if (!compare(op, left, right, budget_)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Interpreter::eval_conditional(const Conditional& e, const ScopePtr& scope) {
  if (eval(*e.condition, scope).truth()) return eval(*e.chosen, scope);
  if (e.other != nullptr) return eval(*e.other, scope);
  return Value::undefined(
      "the inline if-expression evaluated to false and no else section was defined");
}

Value Interpreter::eval_slice(const Slice& e, const ScopePtr& scope) {
  const auto bound = [&](const ExprPtr& b) {
    return b == nullptr ? Value::none() : eval(*b, scope);
  };
  const Value object = eval(*e.object, scope);
  const Value start = bound(e.start);
  const Value stop = bound(e.stop);
  const Value step = bound(e.step);
  at_ = e.span;
  return get_slice(object, start, stop, step, budget_);
}

Value Interpreter::eval_call(const Call& e, const ScopePtr& scope, const Value* caller) {
  const Value callee = eval(*e.callee, scope);
  Args args = eval_args(e.args, scope);
  if (caller != nullptr) args.named.emplace_back("caller", *caller);
  at_ = e.span;
  return call(callee, args);
}

Value Interpreter::eval_filter(const FilterExpr& e, const ScopePtr& scope,
                               const Value* block_text) {
  Value subject;
  if (e.subject == nullptr) {
    // NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): only a filter of a block has no subject
    subject = *block_text;
  } else if (block_text != nullptr) {
    subject = eval_filter(static_cast<const FilterExpr&>(*e.subject), scope, block_text);
  } else {
    subject = eval(*e.subject, scope);
  }
  const Args args = eval_args(e.args, scope);
  at_ = e.span;
  if (e.filter == nullptr) throw unknown_filter(e.name);
  return e.filter->fn(*this, subject, args);
}

Value Interpreter::eval_test(const TestExpr& e, const ScopePtr& scope) {
  const Value subject = eval(*e.subject, scope);
  const Args args = eval_args(e.args, scope);
  at_ = e.span;
  if (e.test == nullptr) throw unknown_test(e.name);
  return Value::boolean(e.test->fn(*this, subject, args) != e.is_negated);
}

Args Interpreter::eval_args(const CallArgs& args, const ScopePtr& scope) {
  Args out;
  if (args.positional.empty() && args.named.empty() && !args.spread && !args.spread_named)
    return out;
  out.positional = eval_items(args.positional, scope);
  for (const auto& [name, value] : args.named) out.named.emplace_back(name, eval(*value, scope));
  if (args.spread != nullptr) {
    for (Value& v : iterate(eval(*args.spread, scope), budget_)) {
      out.positional.push_back(std::move(v));
    }
  }
  if (args.spread_named != nullptr) {
    const Value named = eval(*args.spread_named, scope);
    if (!named.is(Kind::kDict)) fail("the argument after ** must be a dict");
    for (const auto& [key, value] : named.as_dict().entries) {
      if (!key.is_string()) fail("keywords after ** must be strings");
      out.named.emplace_back(std::string(key.bytes()), value);
    }
  }
  return out;
}

}  // namespace dovetail::core::jinja
