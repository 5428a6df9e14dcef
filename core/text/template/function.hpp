// Callable values made from C++ functions, and macros.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "core/text/template/interpreter.hpp"

namespace dovetail::core::jinja {

/// A function, or a method with the object it belongs to already inside `fn`; `depth` is that
/// object's.
class Function : public Object {
 public:
  using Fn = std::function<Value(Interpreter&, const Args&)>;

  Function(uint32_t depth, Fn fn) : depth_(depth), fn_(std::move(fn)) {}

  const char* type_name() const override { return "builtin_function_or_method"; }
  Value call(Interpreter& interp, const Args& args) override { return fn_(interp, args); }
  uint32_t depth() const override { return depth_; }

 private:
  uint32_t depth_;
  Fn fn_;
};

inline Value make_function(uint32_t depth, Function::Fn fn) {
  return Value::object(std::make_shared<Function>(depth, std::move(fn)));
}

/// A macro or the body of a call block, with the scope it was defined in. The interpreter keeps that
/// scope alive: the scope holds the macro, so the macro must not hold the scope.
class MacroFunction : public Object {
 public:
  MacroFunction(const MacroCode& code, std::weak_ptr<Scope> outer)
      : code_(code), outer_(std::move(outer)) {}

  const char* type_name() const override { return "Macro"; }
  Value call(Interpreter& interp, const Args& args) override {
    return Value::string(interp.run_macro(code_, outer_.lock(), args));
  }
  Value attribute(std::string_view name) const override {
    return name == "name" ? Value::string(code_.name) : Value();
  }

 private:
  const MacroCode& code_;
  std::weak_ptr<Scope> outer_;
};

}  // namespace dovetail::core::jinja
