// What templates find built in: filters, tests, methods and functions, as tables by name.
//
// To add one, write its function in the file of its kind and name it in that file's table.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/template/value.hpp"

namespace dovetail::core::jinja {

class Interpreter;

/// Arguments matched to parameter names, as a Python call would. Refers to the Args it was made of.
class Bound {
 public:
  /// Fails on too many or unknown arguments, and on missing ones of the first `n_required`.
  Bound(std::string_view callee, const Args& args,
        std::initializer_list<std::string_view> parameters, size_t n_required = 0);

  Bound(std::string_view, Args&&, std::initializer_list<std::string_view>, size_t = 0) = delete;

  /// The argument for parameter i, or null if it was not given.
  const Value* get(size_t i) const { return values_[i]; }
  const Value& at(size_t i) const { return *values_[i]; }
  Value value_or(size_t i, Value fallback) const;
  bool flag(size_t i, bool fallback) const;  // by truth
  int64_t integer(size_t i, int64_t fallback) const;
  std::string_view string(size_t i, std::string_view fallback) const;
  const SourcedText& text(size_t i) const;  // a given string's
  bool given(size_t i) const { return values_[i] != nullptr; }
  /// Given and not none.
  bool has(size_t i) const { return given(i) && !values_[i]->is_none(); }

 private:
  std::string name_of(size_t i) const;

  std::string_view callee_;
  std::vector<std::string_view> names_;
  std::vector<const Value*> values_;
};

using FilterFn = Value(Interpreter&, const Value& subject, const Args&);
using TestFn = bool(Interpreter&, const Value& subject, const Args&);
using MethodFn = Value(Interpreter&, const Value& self, const Args&);
using FunctionFn = Value(Interpreter&, const Args&);

struct FilterEntry {
  std::string_view name;
  FilterFn* fn;
};

struct TestEntry {
  std::string_view name;
  TestFn* fn;
};

struct MethodEntry {
  std::string_view name;
  MethodFn* fn;
};

/// Null if there is none.
const FilterEntry* find_filter(std::string_view name);
const TestEntry* find_test(std::string_view name);
/// Why a name is not in the tables: nobody knows it (kFormat), or only Jinja does (kUnsupported).
Fault unknown_filter(std::string_view name);
Fault unknown_test(std::string_view name);
Fault unknown_function(std::string_view name);

/// The method `name` of v's type as a callable value; undefined without a reason if there is none.
/// One that would change v is undefined with a reason: the sandbox forbids it.
Value find_method(const Value& v, std::string_view name);
/// Why no value has a method `name` that a template may call; empty if one has.
std::string why_no_method(std::string_view name);

/// A global function; undefined without a reason if there is none.
Value find_function(std::string_view name);
bool has_function(std::string_view name);

// The tables, one per file.
std::span<const FilterEntry> text_filters();      // filters_text.cpp
std::span<const FilterEntry> value_filters();     // filters_value.cpp
std::span<const FilterEntry> sequence_filters();  // filters_sequence.cpp
std::span<const TestEntry> all_tests();           // tests.cpp
std::span<const MethodEntry> string_methods();    // methods_string.cpp

}  // namespace dovetail::core::jinja
