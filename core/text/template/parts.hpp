// The expressions directly inside an expression, in the order of the template.
#pragma once

#include "core/text/template/ast.hpp"

namespace dovetail::core::jinja {

template <class Fn>
void visit_part(const ExprPtr& part, Fn&& fn) {
  if (part != nullptr) fn(*part);
}
template <class Fn>
void visit_parts(const CallArgs& args, Fn&& fn) {
  for (const ExprPtr& e : args.positional) visit_part(e, fn);
  for (const auto& [name, e] : args.named) visit_part(e, fn);
  visit_part(args.spread, fn);
  visit_part(args.spread_named, fn);
}

template <class Fn>
void visit_parts(const Constant&, Fn&&) {}
template <class Fn>
void visit_parts(const Name&, Fn&&) {}
template <class Fn>
void visit_parts(const Items& e, Fn&& fn) {
  for (const ExprPtr& item : e.items) visit_part(item, fn);
}
template <class Fn>
void visit_parts(const DictDisplay& e, Fn&& fn) {
  for (const auto& [key, value] : e.entries) {
    visit_part(key, fn);
    visit_part(value, fn);
  }
}
template <class Fn>
void visit_parts(const Unary& e, Fn&& fn) {
  visit_part(e.operand, fn);
}
template <class Fn>
void visit_parts(const Binary& e, Fn&& fn) {
  visit_part(e.left, fn);
  visit_part(e.right, fn);
}
template <class Fn>
void visit_parts(const Compare& e, Fn&& fn) {
  visit_part(e.first, fn);
  for (const auto& [op, operand] : e.rest) visit_part(operand, fn);
}
template <class Fn>
void visit_parts(const Conditional& e, Fn&& fn) {
  visit_part(e.condition, fn);
  visit_part(e.chosen, fn);
  visit_part(e.other, fn);
}
template <class Fn>
void visit_parts(const Attribute& e, Fn&& fn) {
  visit_part(e.object, fn);
}
template <class Fn>
void visit_parts(const Item& e, Fn&& fn) {
  visit_part(e.object, fn);
  visit_part(e.key, fn);
}
template <class Fn>
void visit_parts(const Slice& e, Fn&& fn) {
  visit_part(e.object, fn);
  visit_part(e.start, fn);
  visit_part(e.stop, fn);
  visit_part(e.step, fn);
}
template <class Fn>
void visit_parts(const Call& e, Fn&& fn) {
  visit_part(e.callee, fn);
  visit_parts(e.args, fn);
}
template <class Fn>
void visit_parts(const FilterExpr& e, Fn&& fn) {
  visit_part(e.subject, fn);
  visit_parts(e.args, fn);
}
template <class Fn>
void visit_parts(const TestExpr& e, Fn&& fn) {
  visit_part(e.subject, fn);
  visit_parts(e.args, fn);
}

/// The same where only the kind is known.
template <class Fn>
void visit_parts(const Expr& e, Fn&& fn) {
  switch (e.kind) {
    case ExprKind::kConstant:
    case ExprKind::kName:
      return;
    case ExprKind::kTuple:
    case ExprKind::kList:
    case ExprKind::kConcat:
      return visit_parts(static_cast<const Items&>(e), fn);
    case ExprKind::kDict:
      return visit_parts(static_cast<const DictDisplay&>(e), fn);
    case ExprKind::kNot:
    case ExprKind::kNegative:
    case ExprKind::kPositive:
      return visit_parts(static_cast<const Unary&>(e), fn);
    case ExprKind::kArithmetic:
    case ExprKind::kAnd:
    case ExprKind::kOr:
      return visit_parts(static_cast<const Binary&>(e), fn);
    case ExprKind::kCompare:
      return visit_parts(static_cast<const Compare&>(e), fn);
    case ExprKind::kConditional:
      return visit_parts(static_cast<const Conditional&>(e), fn);
    case ExprKind::kAttribute:
      return visit_parts(static_cast<const Attribute&>(e), fn);
    case ExprKind::kItem:
      return visit_parts(static_cast<const Item&>(e), fn);
    case ExprKind::kSlice:
      return visit_parts(static_cast<const Slice&>(e), fn);
    case ExprKind::kCall:
      return visit_parts(static_cast<const Call&>(e), fn);
    case ExprKind::kFilter:
      return visit_parts(static_cast<const FilterExpr&>(e), fn);
    case ExprKind::kTest:
      return visit_parts(static_cast<const TestExpr&>(e), fn);
  }
}

}  // namespace dovetail::core::jinja
