// Value: what an expression of a template evaluates to. Python's types, as far as templates see them.
//
// Values are cheap to copy (24 to 32 bytes, shared contents) and, apart from namespaces and the state
// of loops and the like, immutable: the sandbox that templates run in forbids changing lists and
// dicts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/template/budget.hpp"
#include "core/text/template/sourced_text.hpp"

namespace dovetail::core::jinja {

struct BigInt;  // big_int.hpp
class Interpreter;
class Namespace;
class Object;
class Value;
struct Args;
struct Dict;
struct DictView;
struct LazyItems;
struct Range;
struct Sequence;

enum class Kind : uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kBigInt,  // an integer beyond 64 bits
  kFloat,
  kString,
  kList,
  kTuple,
  kDict,
  kDictView,
  kRange,
  kLazy,  // what map, select and the like give: can be walked once
  kNamespace,
  kObject,  // functions, macros, bound methods, loop, cycler, joiner
};

class Value {
 public:
  Value() = default;  // undefined, without a reason
  /// `reason` is what an operation that cannot use an undefined value reports.
  static Value undefined(std::string reason);
  static Value none() { return Value(Kind::kNone); }
  static Value boolean(bool v);
  static Value integer(int64_t v);
  static Value integer(BigInt v);  // kInt when it fits
  static Value number(double v);
  static Value string(SourcedText text);
  static Value string(std::string text) { return string(SourcedText(std::move(text))); }
  /// A string that `+` joins to others by escaping them for HTML (the filter `safe`).
  static Value safe_string(SourcedText text);
  static Value list(std::vector<Value> items, Budget& budget);
  static Value tuple(std::vector<Value> items, Budget& budget);
  /// One of what `groupby` gives: a pair whose parts are also called grouper and list.
  static Value group(Value grouper, Value list, Budget& budget);
  /// Of equal keys the last value stays, at the place of the first.
  static Value dict(std::vector<std::pair<Value, Value>> entries, Budget& budget);
  static Value dict_view(DictView view);
  static Value range(Range range);
  /// `depth` is the deepest of what `next` holds.
  static Value lazy(std::function<std::optional<Value>()> next, uint32_t depth, Budget& budget);
  static Value name_space(Namespace* ns);  // the interpreter owns it
  static Value object(std::shared_ptr<Object> object);

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_undefined() const { return kind_ == Kind::kUndefined; }
  bool is_none() const { return kind_ == Kind::kNone; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_integer() const { return kind_ == Kind::kInt || kind_ == Kind::kBigInt; }
  bool is_number() const { return is_integer() || is(Kind::kFloat) || is(Kind::kBool); }
  bool is_sequence() const { return kind_ == Kind::kList || kind_ == Kind::kTuple; }
  bool is_safe() const { return is_safe_; }
  const char* type_name() const;  // Python's: "NoneType", "str", ...

  // Each needs its own kind.
  const std::string& reason() const;
  bool has_reason() const { return ref_ != nullptr; }
  bool as_bool() const { return int_ != 0; }
  int64_t as_int() const { return int_; }  // of a boolean too
  const BigInt& as_big_int() const;
  double as_float() const { return float_; }
  const SourcedText& text() const;
  std::string_view bytes() const { return text().bytes(); }
  const std::vector<Value>& items() const;  // of a list or tuple
  const Sequence& sequence() const;
  const Dict& as_dict() const;
  const DictView& as_dict_view() const;
  const Range& as_range() const;
  LazyItems& as_lazy() const;
  Namespace& as_namespace() const { return *namespace_; }
  Object& as_object() const;

  bool truth() const;
  uint32_t depth() const;  // how deep lists and dicts nest in it

 private:
  explicit Value(Kind kind) : kind_(kind) {}

  Kind kind_ = Kind::kUndefined;
  bool is_safe_ = false;
  union {
    int64_t int_ = 0;
    double float_;
    Namespace* namespace_;
  };
  std::shared_ptr<const void> ref_;
};

struct Sequence {
  std::vector<Value> items;
  uint32_t depth = 0;
  bool is_group = false;
};

/// Insertion-ordered; keys are any hashable values, equal as Python has it (1 == 1.0 == true).
struct Dict {
  std::vector<std::pair<Value, Value>> entries;
  uint32_t depth = 0;

  const Value* find(const Value& key, Budget& budget) const;  // fails if key is not hashable
  const Value* find(std::string_view key) const;
  /// Drops entries whose keys came before and prepares find(); called once, after filling.
  void index(Budget& budget);

 private:
  template <class IsKey>
  size_t slot(size_t hash, IsKey is_key) const;

  std::vector<uint32_t> slots_;  // open addressing: position + 1, or 0
};

struct DictView {
  enum class Part : uint8_t { kItems, kKeys, kValues };
  Value dict;
  Part part = Part::kItems;
};

struct Range {
  int64_t start = 0, stop = 0, step = 1;

  int64_t size() const;
};

/// A generator: its work happens, and fails, as items are taken. It can be walked once.
struct LazyItems {
  using Next = std::function<std::optional<Value>()>;  // nothing at the end

  Next next;
  uint32_t depth = 0;
};

/// The one kind of value that a template can change: {% set ns.x = … %}.
class Namespace {
 public:
  const Value* find(std::string_view name) const;
  void set(const Value& name, Value value);
  const std::vector<std::pair<Value, Value>>& entries() const { return entries_; }

 private:
  std::vector<std::pair<Value, Value>> entries_;
};

/// Arguments of a call, filter or test.
struct Args {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

/// Anything with behaviour of its own.
class Object {
 public:
  virtual ~Object() = default;
  virtual const char* type_name() const = 0;
  virtual bool is_callable() const { return true; }
  virtual Value call(Interpreter& interp, const Args& args);
  virtual Value attribute(std::string_view name) const;  // undefined without a reason if missing
  virtual uint32_t depth() const { return 0; }
};

// Equality and order as Python has them. Comparing charges steps: shared parts can make a small value
// huge to walk.
bool equal(const Value& a, const Value& b, Budget& budget);
bool less(const Value& a, const Value& b, Budget& budget);
size_t hash_of(const Value& key, Budget& budget);  // fails on lists and dicts

/// The items that a loop over `v` sees. A lazy sequence is used up by it.
std::vector<Value> iterate(const Value& v, Budget& budget);
bool is_iterable(const Value& v);
/// len(v); fails with Python's message for what has no length.
int64_t length(const Value& v);

}  // namespace dovetail::core::jinja
