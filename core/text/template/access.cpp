// Attributes, items and slices.
#include <algorithm>
#include <limits>

#include "core/text/template/builtins.hpp"
#include "core/text/template/operators.hpp"
#include "core/text/template/print.hpp"
#include "core/text/template/text_builder.hpp"
#include "core/text/template/unicode.hpp"

namespace dovetail::core::jinja {
namespace {

std::string object_name(const Value& object) {
  if (object.is_none()) return "None";
  return std::string(object.type_name()) + " object";
}

Value no_attribute(const Value& object, std::string_view name) {
  return Value::undefined(in_quotes(object_name(object)) + " has no attribute '" +
                          std::string(name) + "'");
}

// Attributes that the type itself has, before any item; undefined without a reason if none.
Value type_attribute(const Value& object, std::string_view name) {
  if (object.is(Kind::kObject)) return object.as_object().attribute(name);
  if (object.is(Kind::kNamespace)) {
    const Value* value = object.as_namespace().find(name);
    return value == nullptr ? Value() : *value;
  }
  if (object.is_sequence() && object.sequence().is_group) {
    if (name == "grouper") return object.items()[0];
    if (name == "list") return object.items()[1];
  }
  return find_method(object, name);
}

bool is_missing(const Value& v) {
  return v.is_undefined() && !v.has_reason();
}

// Code points [first, last) of a text that is not ASCII, found once from the front.
SourcedText char_slice(const SourcedText& text, size_t first, size_t last) {
  const std::string_view s = text.bytes();
  if (is_ascii(s)) return text.slice(first, last);
  const size_t begin = byte_offset(s, first);
  return text.slice(begin, begin + byte_offset(s.substr(begin), last - first));
}

Value same_kind_of_string(const Value& like, SourcedText text) {
  return like.is_safe() ? Value::safe_string(std::move(text)) : Value::string(std::move(text));
}

// The item at an index of a sequence of n items, counting negative ones from the end; -1 if outside.
int64_t position_of(int64_t index, int64_t n) {
  if (index < 0) index += n;
  return index >= 0 && index < n ? index : -1;
}

// Undefined without a reason if there is no such item.
Value indexed(const Value& object, int64_t index, Budget& budget) {
  if (object.is_sequence()) {
    const int64_t at = position_of(index, static_cast<int64_t>(object.items().size()));
    return at < 0 ? Value() : object.items()[static_cast<size_t>(at)];
  }
  if (object.is_string()) {
    budget.step(1 + object.text().size() / 64);
    const int64_t at = position_of(index, length(object));
    if (at < 0) return {};
    const auto first = static_cast<size_t>(at);
    return same_kind_of_string(object, char_slice(object.text(), first, first + 1));
  }
  const Range& range = object.as_range();
  const int64_t at = position_of(index, range.size());
  return at < 0 ? Value() : Value::integer(range.start + at * range.step);
}

// The bounds of a slice over n items, clipped as Python's slice.indices() does.
struct Bounds {
  int64_t start, stop, step;
  size_t n_items;
};

int64_t bound_value(const Value& v) {
  if (v.is(Kind::kInt) || v.is(Kind::kBool)) return v.as_int();
  if (v.is(Kind::kBigInt)) {
    return compare_to_zero(v) < 0 ? std::numeric_limits<int64_t>::min()
                                  : std::numeric_limits<int64_t>::max();
  }
  if (v.is_undefined()) fail(v.reason());
  fail(std::string("slice indices must be integers or none, got ") + v.type_name());
}

Bounds bounds_of(const Value& start, const Value& stop, const Value& step, int64_t n) {
  Bounds b{};
  b.step = step.is_none() ? 1 : bound_value(step);
  if (b.step == 0) fail("slice step cannot be zero");
  b.step = std::clamp(b.step, -n - 1, n + 1);  // a longer step reaches no second item either
  const int64_t lowest = b.step < 0 ? -1 : 0;
  const int64_t highest = b.step < 0 ? n - 1 : n;
  const auto clip = [&](const Value& v, int64_t if_none) {
    if (v.is_none()) return if_none;
    int64_t i = bound_value(v);
    if (i < 0) i = std::max(i + n, lowest);
    return std::clamp(i, lowest, highest);
  };
  b.start = clip(start, b.step < 0 ? highest : lowest);
  b.stop = clip(stop, b.step < 0 ? lowest : highest);
  b.n_items = static_cast<size_t>(Range{b.start, b.stop, b.step}.size());
  return b;
}

Value string_slice(const Value& object, const Bounds& b, Budget& budget) {
  const SourcedText& text = object.text();
  if (b.n_items == 0) return same_kind_of_string(object, {});
  if (b.step == 1) {
    budget.charge(b.n_items);
    return same_kind_of_string(
        object, char_slice(text, static_cast<size_t>(b.start), static_cast<size_t>(b.stop)));
  }
  std::vector<size_t> offsets;  // of every code point, and the end
  budget.charge(text.size() * sizeof(size_t));
  for (size_t pos = 0; pos < text.size(); next_char(text.bytes(), pos)) offsets.push_back(pos);
  offsets.push_back(text.size());
  TextBuilder out(budget);
  for (size_t i = 0; i < b.n_items; ++i) {
    const auto at = static_cast<size_t>(b.start + static_cast<int64_t>(i) * b.step);
    out.append_slice(text, offsets[at], offsets[at + 1]);
  }
  return same_kind_of_string(object, out.take());
}

}  // namespace

Value get_attribute(const Value& object, std::string_view name, Budget& budget) {
  if (object.is_undefined() && !name.starts_with("__")) fail(object.reason());
  if (name.starts_with("_")) {
    return Value::undefined("access to attribute '" + std::string(name) + "' of '" +
                            object.type_name() + "' object is unsafe");
  }
  Value own = type_attribute(object, name);
  if (!is_missing(own)) return own;
  if (object.is(Kind::kDict)) {
    if (const Value* value = object.as_dict().find(name)) return *value;
  }
  budget.step();
  return no_attribute(object, name);
}

Value get_item(const Value& object, const Value& key, Budget& budget) {
  if (object.is_undefined()) fail(object.reason());
  if (object.is(Kind::kDict)) {
    const bool is_hashable = !key.is(Kind::kList) && !key.is(Kind::kDict);
    const Value* value = is_hashable ? object.as_dict().find(key, budget) : nullptr;
    if (value != nullptr) return *value;
  }
  const bool is_indexable = object.is_sequence() || object.is_string() || object.is(Kind::kRange);
  if (is_indexable && (key.is(Kind::kInt) || key.is(Kind::kBool))) {
    Value item = indexed(object, key.as_int(), budget);
    if (is_missing(item)) {
      return Value::undefined(std::string(object.type_name()) + " object has no element " +
                              std::to_string(key.as_int()));
    }
    return item;
  }
  if (key.is_string() && !key.bytes().starts_with("_")) {
    const Value own = type_attribute(object, key.bytes());
    return is_missing(own) ? no_attribute(object, key.bytes()) : own;
  }
  return Value::undefined(object_name(object) + " has no element " +
                          repr_of(key, budget).take_bytes());
}

Value get_slice(const Value& object, const Value& start, const Value& stop, const Value& step,
                Budget& budget) {
  if (object.is_undefined()) fail(object.reason());
  if (!object.is_sequence() && !object.is_string() && !object.is(Kind::kRange)) {
    fail(std::string("'") + object.type_name() + "' object cannot be sliced");
  }
  const Bounds b = bounds_of(start, stop, step, length(object));
  if (object.is_string()) return string_slice(object, b, budget);
  if (object.is(Kind::kRange)) {
    const Range& r = object.as_range();
    return Value::range({r.start + b.start * r.step, r.start + b.stop * r.step, r.step * b.step});
  }
  budget.charge(b.n_items * sizeof(Value));
  std::vector<Value> items;
  items.reserve(b.n_items);
  for (size_t i = 0; i < b.n_items; ++i) {
    items.push_back(
        object.items()[static_cast<size_t>(b.start + static_cast<int64_t>(i) * b.step)]);
  }
  return object.is(Kind::kList) ? Value::list(std::move(items), budget)
                                : Value::tuple(std::move(items), budget);
}

}  // namespace dovetail::core::jinja
