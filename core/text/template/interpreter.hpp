// Interpreter: walks the syntax tree once and writes the text.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/template/ast.hpp"
#include "core/text/template/chat_template.hpp"
#include "core/text/template/text_builder.hpp"

namespace dovetail::core::jinja {

/// Variables of one region: a loop's iteration, a macro's call, the template's top level. `if` has
/// none of its own. Reading looks outwards, writing stays here.
class Scope {
 public:
  explicit Scope(std::shared_ptr<Scope> outer = nullptr) : outer_(std::move(outer)) {}

  const Value* find(NameId name) const;
  void set(NameId name, Value value);

 private:
  std::shared_ptr<Scope> outer_;
  std::vector<std::pair<NameId, Value>> variables_;
};

using ScopePtr = std::shared_ptr<Scope>;

class Interpreter {
 public:
  Interpreter(const Program& program, const Node& context, const RenderOptions& options);
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  SourcedText run();
  /// The expression or statement that was being evaluated last.
  Span where() const { return at_; }

  // For built-in functions.
  Budget& budget() { return budget_; }
  std::tm now() const;
  Value call(const Value& callee, const Args& args);
  /// A filter or test by a name known only now, as map('upper') and select('even') have it.
  Value apply_filter(std::string_view name, const Value& subject, const Args& args);
  bool apply_test(std::string_view name, const Value& subject, const Args& args);
  Namespace& new_namespace();
  uint64_t next_random();

  // For macros and loops.
  SourcedText run_macro(const MacroCode& code, const ScopePtr& outer, const Args& args);
  Value run_loop_again(const For& node, const ScopePtr& outer, const Value& items, int depth);

 private:
  enum class Flow : uint8_t { kNext, kBreak, kContinue };

  Value eval(const Expr& e, const ScopePtr& scope);
  Value eval_name(const Name& e, const Scope& scope);
  std::vector<Value> eval_items(const std::vector<ExprPtr>& items, const ScopePtr& scope);
  Value eval_dict(const DictDisplay& e, const ScopePtr& scope);
  Value eval_unary(const Unary& e, const ScopePtr& scope);
  Value eval_arithmetic(const Binary& e, const ScopePtr& scope);
  Value eval_logic(const Binary& e, const ScopePtr& scope);
  Value eval_concat(const Items& e, const ScopePtr& scope);
  Value eval_compare(const Compare& e, const ScopePtr& scope);
  Value eval_conditional(const Conditional& e, const ScopePtr& scope);
  Value eval_slice(const Slice& e, const ScopePtr& scope);
  Value eval_call(const Call& e, const ScopePtr& scope, const Value* caller);
  Value eval_filter(const FilterExpr& e, const ScopePtr& scope, const Value* block_text);
  Value eval_test(const TestExpr& e, const ScopePtr& scope);
  Args eval_args(const CallArgs& args, const ScopePtr& scope);

  Flow exec_block(const Block& block, const ScopePtr& scope, TextBuilder& out);
  Flow exec(const Statement& s, const ScopePtr& scope, TextBuilder& out);
  Flow exec_if(const If& s, const ScopePtr& scope, TextBuilder& out);
  Flow exec_for(const For& s, const ScopePtr& scope, TextBuilder& out);
  Flow run_loop(const For& s, const ScopePtr& outer, const Value& items, int depth,
                TextBuilder& out);
  Flow exec_set_block(const SetBlock& s, const ScopePtr& scope);
  Flow exec_filter_block(const FilterBlock& s, const ScopePtr& scope, TextBuilder& out);
  Flow exec_with(const With& s, const ScopePtr& scope, TextBuilder& out);
  void exec_call_block(const CallBlock& s, const ScopePtr& scope, TextBuilder& out);

  void assign(const Target& target, Value value, Scope& scope);
  Value make_macro(const MacroCode& code, const ScopePtr& scope);
  const Value& global(NameId name);
  ScopePtr new_scope(ScopePtr outer);

  const Program& program_;
  const Node& context_;
  const RenderOptions& options_;
  Budget budget_;
  Span at_;
  std::vector<std::optional<Value>> globals_;  // by NameId, filled when first read
  // What may hold itself, directly or not, lives as long as the rendering: no cycle can leak.
  std::vector<std::unique_ptr<Namespace>> namespaces_;
  std::vector<ScopePtr> captured_;
  uint64_t random_ = 0;
};

/// Data as the template sees it. Strings and keys come from `source`.
Value value_of(const Node& node, Source source, Budget& budget);

}  // namespace dovetail::core::jinja
