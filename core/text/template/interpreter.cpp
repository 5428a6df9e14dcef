// Statements, scopes and calls; eval.cpp has the expressions.
#include "core/text/template/interpreter.hpp"

#include <algorithm>
#include <ctime>

#include "core/text/template/builtins.hpp"
#include "core/text/template/function.hpp"
#include "core/text/template/loop.hpp"
#include "core/text/template/print.hpp"

namespace dovetail::core::jinja {

const Value* Scope::find(NameId name) const {
  for (const Scope* s = this; s != nullptr; s = s->outer_.get()) {
    for (const auto& [id, value] : s->variables_) {
      if (id == name) return &value;
    }
  }
  return nullptr;
}

void Scope::set(NameId name, Value value) {
  for (auto& [id, old] : variables_) {
    if (id == name) {
      old = std::move(value);
      return;
    }
  }
  variables_.emplace_back(name, std::move(value));
}

Interpreter::Interpreter(const Program& program, const Node& context, const RenderOptions& options)
    : program_(program),
      context_(context),
      options_(options),
      budget_(options.limits),
      globals_(program.names.size()),
      random_(options.random_seed) {}

SourcedText Interpreter::run() {
  TextBuilder out(budget_);
  exec_block(program_.body, new_scope(nullptr), out);
  return out.take();
}

std::tm Interpreter::now() const {
  if (options_.clock) return options_.clock();
  const std::time_t seconds = std::time(nullptr);
  std::tm local{};
  localtime_r(&seconds, &local);
  return local;
}

ScopePtr Interpreter::new_scope(ScopePtr outer) {
  budget_.charge(sizeof(Scope) + 4 * sizeof(Value));
  return std::make_shared<Scope>(std::move(outer));
}

Namespace& Interpreter::new_namespace() {
  budget_.charge(sizeof(Namespace) + 4 * sizeof(Value));
  namespaces_.push_back(std::make_unique<Namespace>());
  return *namespaces_.back();
}

// splitmix64: the filter `random` wants variety, not secrecy.
uint64_t Interpreter::next_random() {
  uint64_t z = (random_ += 0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

const Value& Interpreter::global(NameId name) {
  std::optional<Value>& slot = globals_[static_cast<size_t>(name)];
  if (slot.has_value()) return *slot;
  const std::string& text = program_.names[static_cast<size_t>(name)];
  if (const Node* node = context_.find(text)) {
    const std::vector<std::string>& trusted = options_.trusted_names;
    const bool is_trusted = std::find(trusted.begin(), trusted.end(), text) != trusted.end();
    slot = value_of(*node, is_trusted ? Source::kTemplate : Source::kData, budget_);
  } else {
    slot = find_function(text);
    if (slot->is_undefined()) slot = Value::undefined("'" + text + "' is undefined");
  }
  return *slot;
}

Value Interpreter::call(const Value& callee, const Args& args) {
  const Budget::Level level(budget_);
  budget_.step();
  if (callee.is_undefined()) fail(callee.reason());
  if (!callee.is(Kind::kObject) || !callee.as_object().is_callable()) {
    fail(std::string("'") + callee.type_name() + "' object is not callable");
  }
  return callee.as_object().call(*this, args);
}

Value Interpreter::apply_filter(std::string_view name, const Value& subject, const Args& args) {
  const FilterEntry* filter = find_filter(name);
  if (filter == nullptr) throw unknown_filter(name);
  budget_.step();
  return filter->fn(*this, subject, args);
}

bool Interpreter::apply_test(std::string_view name, const Value& subject, const Args& args) {
  const TestEntry* test = find_test(name);
  if (test == nullptr) throw unknown_test(name);
  budget_.step();
  return test->fn(*this, subject, args);
}

// --- statements ---

Interpreter::Flow Interpreter::exec_block(const Block& block, const ScopePtr& scope,
                                          TextBuilder& out) {
  const Budget::Level level(budget_);
  for (const StatementPtr& s : block) {
    const Flow flow = exec(*s, scope, out);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::exec(const Statement& s, const ScopePtr& scope, TextBuilder& out) {
  budget_.step();
  at_ = s.span;
  switch (s.kind) {
    case StatementKind::kText:
      out.append(static_cast<const Text&>(s).bytes);
      break;
    case StatementKind::kPrint: {
      const Value value = eval(*static_cast<const Print&>(s).value, scope);
      if (value.is_string()) {
        out.append(value.text());
      } else {
        write_str(value, out);
      }
      break;
    }
    case StatementKind::kIf:
      return exec_if(static_cast<const If&>(s), scope, out);
    case StatementKind::kFor:
      return exec_for(static_cast<const For&>(s), scope, out);
    case StatementKind::kSet: {
      const Set& set = static_cast<const Set&>(s);
      Value value = eval(*set.value, scope);
      at_ = s.span;
      assign(set.target, std::move(value), *scope);
      break;
    }
    case StatementKind::kSetBlock:
      return exec_set_block(static_cast<const SetBlock&>(s), scope);
    case StatementKind::kMacro: {
      const Macro& macro = static_cast<const Macro&>(s);
      scope->set(macro.name, make_macro(macro.code, scope));
      break;
    }
    case StatementKind::kCallBlock:
      exec_call_block(static_cast<const CallBlock&>(s), scope, out);
      break;
    case StatementKind::kFilterBlock:
      return exec_filter_block(static_cast<const FilterBlock&>(s), scope, out);
    case StatementKind::kWith:
      return exec_with(static_cast<const With&>(s), scope, out);
    case StatementKind::kGeneration:
      return exec_block(static_cast<const Generation&>(s).body, new_scope(scope), out);
    case StatementKind::kBreak:
      return Flow::kBreak;
    case StatementKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::exec_if(const If& s, const ScopePtr& scope, TextBuilder& out) {
  for (const auto& [condition, block] : s.branches) {
    if (eval(*condition, scope).truth()) return exec_block(block, scope, out);
  }
  return exec_block(s.otherwise, scope, out);
}

Interpreter::Flow Interpreter::exec_for(const For& s, const ScopePtr& scope, TextBuilder& out) {
  const Value items = eval(*s.iterable, scope);
  at_ = s.iterable->span;
  return run_loop(s, scope, items, 0, out);
}

Interpreter::Flow Interpreter::run_loop(const For& s, const ScopePtr& outer, const Value& items,
                                        int depth, TextBuilder& out) {
  Loop::Keep keep;
  if (s.condition != nullptr) {
    keep = [this, &s, outer](const Value& item) {
      const ScopePtr scope = new_scope(outer);
      assign(s.target, item, *scope);
      return eval(*s.condition, scope).truth();
    };
  }
  const auto loop = std::make_shared<Loop>(iterate(items, budget_), std::move(keep), depth);
  budget_.charge(sizeof(Loop));
  if (s.is_recursive) {
    loop->again = [this, &s, outer, depth](const Value& children) {
      return run_loop_again(s, outer, children, depth + 1);
    };
  }
  struct Finish {
    Loop& loop;
    ~Finish() { loop.finish(); }
  } const finish{*loop};

  // As in the reference, `else` runs unless a body was run to its end: one left by break or continue
  // does not count.
  bool otherwise = true;
  while (loop->advance()) {
    const ScopePtr scope = new_scope(outer);
    at_ = s.span;
    assign(s.target, loop->item(), *scope);
    scope->set(program_.loop, Value::object(loop));
    const Flow flow = exec_block(s.body, scope, out);
    if (flow == Flow::kBreak) break;
    if (flow == Flow::kNext) otherwise = false;
  }
  return otherwise ? exec_block(s.otherwise, new_scope(outer), out) : Flow::kNext;
}

Value Interpreter::run_loop_again(const For& node, const ScopePtr& outer, const Value& items,
                                  int depth) {
  TextBuilder out(budget_);
  run_loop(node, outer, items, depth, out);
  return Value::string(out.take());
}

Interpreter::Flow Interpreter::exec_set_block(const SetBlock& s, const ScopePtr& scope) {
  TextBuilder text(budget_);
  const Flow flow = exec_block(s.body, new_scope(scope), text);
  if (flow != Flow::kNext) return flow;
  Value value = Value::string(text.take());
  if (s.filter != nullptr) {
    value = eval_filter(static_cast<const FilterExpr&>(*s.filter), scope, &value);
  }
  at_ = s.span;
  assign(s.target, std::move(value), *scope);
  return Flow::kNext;
}

Interpreter::Flow Interpreter::exec_filter_block(const FilterBlock& s, const ScopePtr& scope,
                                                 TextBuilder& out) {
  TextBuilder text(budget_);
  const ScopePtr inner = new_scope(scope);
  const Flow flow = exec_block(s.body, inner, text);
  if (flow != Flow::kNext) return flow;
  const Value value = Value::string(text.take());
  write_str(eval_filter(static_cast<const FilterExpr&>(*s.filter), inner, &value), out);
  return Flow::kNext;
}

Interpreter::Flow Interpreter::exec_with(const With& s, const ScopePtr& scope, TextBuilder& out) {
  const ScopePtr inner = new_scope(scope);
  for (const auto& [target, value] : s.values) assign(target, eval(*value, scope), *inner);
  return exec_block(s.body, inner, out);
}

void Interpreter::exec_call_block(const CallBlock& s, const ScopePtr& scope, TextBuilder& out) {
  const Value caller = make_macro(s.code, scope);
  write_str(eval_call(*s.call, scope, &caller), out);
}

void Interpreter::assign(const Target& target, Value value, Scope& scope) {
  switch (target.kind) {
    case Target::Kind::kName:
      scope.set(target.name, std::move(value));
      return;
    case Target::Kind::kAttribute: {
      const Value* found = scope.find(target.name);
      const Value& object = found != nullptr ? *found : global(target.name);
      if (!object.is(Kind::kNamespace)) {
        fail("cannot assign attribute '" + target.attribute + "' on '" +
             program_.names[static_cast<size_t>(target.name)] + "', which is " +
             object.type_name() + ", expected a namespace");
      }
      budget_.charge(2 * sizeof(Value));
      object.as_namespace().set(Value::string(target.attribute), std::move(value));
      return;
    }
    case Target::Kind::kTuple:
      break;
  }
  const std::vector<Value> items = iterate(value, budget_);
  const size_t n = target.parts.size();
  if (items.size() > n) fail("too many values to unpack (expected " + std::to_string(n) + ")");
  if (items.size() < n) {
    fail("not enough values to unpack (expected " + std::to_string(n) + ", got " +
         std::to_string(items.size()) + ")");
  }
  for (size_t i = 0; i < n; ++i) assign(target.parts[i], items[i], scope);
}

// --- macros ---

Value Interpreter::make_macro(const MacroCode& code, const ScopePtr& scope) {
  budget_.charge(sizeof(MacroFunction));
  if (captured_.empty() || captured_.back() != scope) captured_.push_back(scope);
  return Value::object(std::make_shared<MacroFunction>(code, scope));
}

SourcedText Interpreter::run_macro(const MacroCode& code, const ScopePtr& outer, const Args& args) {
  const ScopePtr scope = new_scope(outer);
  const size_t n_parameters = code.parameters.size();
  std::vector<const Value*> given(n_parameters, nullptr);
  for (size_t i = 0; i < args.positional.size() && i < n_parameters; ++i) {
    given[i] = &args.positional[i];
  }
  if (args.positional.size() > n_parameters && !code.uses_varargs) {
    fail("macro '" + code.name + "' takes not more than " + std::to_string(n_parameters) +
         " argument(s)");
  }
  Value caller = Value::undefined("no caller defined");
  std::vector<std::pair<Value, Value>> rest;
  for (const auto& named : args.named) {
    const std::string& name = named.first;
    const Value& value = named.second;
    const auto p = std::find_if(code.parameters.begin(), code.parameters.end(),
                                [&](const auto& parameter) { return parameter.text == name; });
    if (p != code.parameters.end()) {
      const Value*& slot = given[static_cast<size_t>(p - code.parameters.begin())];
      if (slot != nullptr) {
        fail("macro '" + code.name + "' got multiple values for argument '" + name + "'");
      }
      slot = &value;
    } else if (name == "caller" && code.uses_caller) {
      caller = value;
    } else if (code.uses_kwargs) {
      rest.emplace_back(Value::string(name), value);
    } else {
      fail("macro '" + code.name + "' takes no keyword argument '" + name + "'");
    }
  }
  if (code.uses_caller) scope->set(program_.caller, caller);
  if (code.uses_kwargs) scope->set(program_.kwargs, Value::dict(std::move(rest), budget_));
  if (code.uses_varargs) {
    const size_t first = std::min(n_parameters, args.positional.size());
    scope->set(program_.varargs,
               Value::tuple(
                   {args.positional.begin() + static_cast<ptrdiff_t>(first), args.positional.end()},
                   budget_));
  }
  for (size_t i = 0; i < n_parameters; ++i) {
    const MacroCode::Parameter& p = code.parameters[i];
    if (given[i] != nullptr) {
      scope->set(p.name, *given[i]);
    } else if (p.fallback != nullptr) {
      scope->set(p.name, eval(*p.fallback, scope));
    } else {
      scope->set(p.name, Value::undefined("parameter '" + p.text + "' was not provided"));
    }
  }
  TextBuilder out(budget_);
  exec_block(code.body, scope, out);
  return out.take();
}

}  // namespace dovetail::core::jinja
