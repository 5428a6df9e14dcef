// Methods of dicts, lists and tuples, and how a method is found and bound to its object.
#include <algorithm>

#include "core/text/template/builtins.hpp"
#include "core/text/template/function.hpp"
#include "core/text/template/operators.hpp"

namespace dovetail::core::jinja {
namespace {

Value dict_get(Interpreter& in, const Value& self, const Args& args) {
  const Bound bound("get", args, {"key", "default"}, 1);
  const Value* value = self.as_dict().find(bound.at(0), in.budget());
  return value == nullptr ? bound.value_or(1, Value::none()) : *value;
}

template <DictView::Part kPart>
Value dict_part(Interpreter&, const Value& self, const Args& args) {
  const Bound bound("this method", args, {});
  return Value::dict_view({self, kPart});
}

Value copy(Interpreter&, const Value& self, const Args& args) {
  const Bound bound("copy", args, {});
  return self;  // nothing can change either
}

Value sequence_count(Interpreter& in, const Value& self, const Args& args) {
  const Bound bound("count", args, {"value"}, 1);
  return Value::integer(
      std::count_if(self.items().begin(), self.items().end(),
                    [&](const Value& v) { return equal(v, bound.at(0), in.budget()); }));
}

Value sequence_index(Interpreter& in, const Value& self, const Args& args) {
  const Bound bound("index", args, {"value", "start", "stop"}, 1);
  const auto n = static_cast<int64_t>(self.items().size());
  const auto clip = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + n : i, 0, n); };
  const int64_t stop = clip(bound.integer(2, n));
  for (int64_t i = clip(bound.integer(1, 0)); i < stop; ++i) {
    if (equal(self.items()[static_cast<size_t>(i)], bound.at(0), in.budget())) {
      return Value::integer(i);
    }
  }
  fail("the value is not in the list");
}

constexpr MethodEntry kDictMethods[] = {
    {"copy", copy},
    {"get", dict_get},
    {"items", dict_part<DictView::Part::kItems>},
    {"keys", dict_part<DictView::Part::kKeys>},
    {"values", dict_part<DictView::Part::kValues>},
};
constexpr MethodEntry kListMethods[] = {
    {"copy", copy}, {"count", sequence_count}, {"index", sequence_index}};
constexpr MethodEntry kTupleMethods[] = {{"count", sequence_count}, {"index", sequence_index}};

constexpr std::string_view kDictMutators[] = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::string_view kListMutators[] = {"append", "clear",  "extend",  "insert",
                                              "pop",    "remove", "reverse", "sort"};

std::span<const MethodEntry> methods_of(Kind kind) {
  switch (kind) {
    case Kind::kString:
      return string_methods();
    case Kind::kDict:
      return kDictMethods;
    case Kind::kList:
      return kListMethods;
    case Kind::kTuple:
      return kTupleMethods;
    default:
      return {};
  }
}

std::span<const std::string_view> mutators_of(Kind kind) {
  if (kind == Kind::kDict) return kDictMutators;
  if (kind == Kind::kList) return kListMutators;
  return {};
}

}  // namespace

Value find_method(const Value& v, std::string_view name) {
  for (const MethodEntry& entry : methods_of(v.kind())) {
    if (entry.name != name) continue;
    return make_function(v.depth() + 1,
                         [self = v, fn = entry.fn](Interpreter& in, const Args& args) {
                           return fn(in, self, args);
                         });
  }
  for (const std::string_view mutator : mutators_of(v.kind())) {
    if (mutator != name) continue;
    return Value::undefined("access to attribute '" + std::string(name) + "' of '" + v.type_name() +
                            "' object is unsafe: templates may not change lists and dicts");
  }
  return {};
}

std::string why_no_method(std::string_view name) {
  // Of loop and of cyclers, which find them as attributes.
  for (const char* other : {"cycle", "changed", "next", "reset"}) {
    if (name == other) return {};
  }
  for (const Kind kind : {Kind::kString, Kind::kDict, Kind::kList, Kind::kTuple}) {
    for (const MethodEntry& entry : methods_of(kind)) {
      if (entry.name == name) return {};
    }
  }
  for (const Kind kind : {Kind::kDict, Kind::kList}) {
    const auto mutators = mutators_of(kind);
    if (std::find(mutators.begin(), mutators.end(), name) != mutators.end())
      return "templates may not change lists and dicts, as " + in_quotes(name) + " would";
  }
  return "no string, list or dict has a method " + in_quotes(name);
}

}  // namespace dovetail::core::jinja
