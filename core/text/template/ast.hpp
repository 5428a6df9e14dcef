// The syntax tree of a template. The parser makes it, the interpreter walks it; it never changes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/text/template/lexer.hpp"
#include "core/text/template/value.hpp"

namespace dovetail::core::jinja {

/// A variable's name, as its position in Program::names.
using NameId = int32_t;

struct Expr;
using ExprPtr = std::unique_ptr<const Expr>;

enum class ExprKind : uint8_t {
  kConstant,
  kName,
  kTuple,
  kList,
  kDict,
  kNot,
  kNegative,
  kPositive,
  kArithmetic,
  kConcat,
  kAnd,
  kOr,
  kCompare,
  kConditional,
  kAttribute,
  kItem,
  kSlice,
  kCall,
  kFilter,
  kTest,
};

struct Expr {
  Expr(ExprKind kind_in, Span span_in) : kind(kind_in), span(span_in) {}
  virtual ~Expr() = default;

  ExprKind kind;
  Span span;
  uint32_t depth = 1;  // levels of expressions in it: the parser bounds it
};

struct Constant : Expr {
  using Expr::Expr;
  Value value;
};

struct Name : Expr {
  using Expr::Expr;
  NameId id = 0;
};

/// kTuple, kList; kConcat (parts of `a ~ b ~ c`).
struct Items : Expr {
  using Expr::Expr;
  std::vector<ExprPtr> items;
};

struct DictDisplay : Expr {
  using Expr::Expr;
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
};

/// kNot, kNegative, kPositive.
struct Unary : Expr {
  using Expr::Expr;
  ExprPtr operand;
};

enum class ArithmeticOp : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower
};

/// kArithmetic, and kAnd, kOr without `op`.
struct Binary : Expr {
  using Expr::Expr;
  ArithmeticOp op = ArithmeticOp::kAdd;
  ExprPtr left;
  ExprPtr right;
};

enum class CompareOp : uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};

/// A chain: a < b == c means a < b and b == c.
struct Compare : Expr {
  using Expr::Expr;
  ExprPtr first;
  std::vector<std::pair<CompareOp, ExprPtr>> rest;
};

/// `chosen if condition else other`; `other` may be null.
struct Conditional : Expr {
  using Expr::Expr;
  ExprPtr condition;
  ExprPtr chosen;
  ExprPtr other;
};

struct Attribute : Expr {
  using Expr::Expr;
  ExprPtr object;
  std::string name;
};

struct Item : Expr {
  using Expr::Expr;
  ExprPtr object;
  ExprPtr key;
};

/// object[start:stop:step]; each bound may be null.
struct Slice : Expr {
  using Expr::Expr;
  ExprPtr object;
  ExprPtr start;
  ExprPtr stop;
  ExprPtr step;
};

/// Arguments as written; `spread` is *args, `spread_named` **kwargs, each may be null.
struct CallArgs {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr spread;
  ExprPtr spread_named;
};

struct Call : Expr {
  using Expr::Expr;
  ExprPtr callee;
  CallArgs args;
};

struct FilterEntry;
struct TestEntry;

/// `subject` is null where the text of a block is filtered.
struct FilterExpr : Expr {
  using Expr::Expr;
  ExprPtr subject;
  std::string name;
  Span name_span;
  const FilterEntry* filter = nullptr;  // null: unknown, fails when reached
  CallArgs args;
};

struct TestExpr : Expr {
  using Expr::Expr;
  ExprPtr subject;
  std::string name;
  Span name_span;
  const TestEntry* test = nullptr;
  bool is_negated = false;
  CallArgs args;
};

// --- statements ---

struct Statement;
using StatementPtr = std::unique_ptr<const Statement>;
using Block = std::vector<StatementPtr>;

enum class StatementKind : uint8_t {
  kText,
  kPrint,
  kFor,
  kIf,
  kSet,
  kSetBlock,
  kMacro,
  kCallBlock,
  kFilterBlock,
  kWith,
  kGeneration,
  kBreak,
  kContinue,
};

struct Statement {
  Statement(StatementKind kind_in, Span span_in) : kind(kind_in), span(span_in) {}
  virtual ~Statement() = default;

  StatementKind kind;
  Span span;
};

struct Text : Statement {
  using Statement::Statement;
  std::string bytes;
};

struct Print : Statement {
  using Statement::Statement;
  ExprPtr value;
};

/// What is assigned to: a name, an attribute of a namespace, or a tuple of targets.
struct Target {
  enum class Kind : uint8_t { kName, kAttribute, kTuple };
  Kind kind = Kind::kName;
  NameId name = 0;        // the variable, or the namespace
  std::string attribute;  // of kAttribute
  std::vector<Target> parts;
};

struct For : Statement {
  using Statement::Statement;
  Target target;
  ExprPtr iterable;
  ExprPtr condition;  // may be null
  Block body;
  Block otherwise;
  bool is_recursive = false;
};

struct If : Statement {
  using Statement::Statement;
  std::vector<std::pair<ExprPtr, Block>> branches;
  Block otherwise;
};

struct Set : Statement {
  using Statement::Statement;
  Target target;
  ExprPtr value;
};

struct SetBlock : Statement {
  using Statement::Statement;
  Target target;
  ExprPtr filter;  // a chain of FilterExpr whose innermost has no subject; may be null
  Block body;
};

/// Parameters and body of a macro or of a call block.
struct MacroCode {
  struct Parameter {
    NameId name;
    std::string text;
    ExprPtr fallback;  // may be null
  };
  std::string name;
  std::vector<Parameter> parameters;
  Block body;
  bool uses_varargs = false, uses_kwargs = false, uses_caller = false;
};

struct Macro : Statement {
  using Statement::Statement;
  NameId name = 0;
  MacroCode code;
};

struct CallBlock : Statement {
  using Statement::Statement;
  std::unique_ptr<const Call> call;
  MacroCode code;
};

struct FilterBlock : Statement {
  using Statement::Statement;
  ExprPtr filter;
  Block body;
};

struct With : Statement {
  using Statement::Statement;
  std::vector<std::pair<Target, ExprPtr>> values;
  Block body;
};

struct Generation : Statement {
  using Statement::Statement;
  Block body;
};

struct Program {
  std::vector<std::string> names;  // by NameId
  NameId loop = 0, caller = 0, varargs = 0, kwargs = 0;
  Block body;
};

}  // namespace dovetail::core::jinja
