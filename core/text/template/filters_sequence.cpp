// Filters over the items of a value.
#include <algorithm>
#include <functional>
#include <optional>

#include "core/text/template/builtins.hpp"
#include "core/text/template/interpreter.hpp"
#include "core/text/template/literals.hpp"
#include "core/text/template/operators.hpp"
#include "core/text/template/print.hpp"
#include "core/text/template/string_ops.hpp"

namespace dovetail::core::jinja {
namespace {

using Getter = std::function<Value(const Value& item)>;

// The parts of "a.b.0": names and indexes.
std::vector<Value> attribute_path(const Value& attribute) {
  if (attribute.is_integer()) return {attribute};
  if (!attribute.is_string())
    fail(std::string("an attribute is ") + attribute.type_name() + ", expected str");
  std::vector<Value> path;
  const std::string_view s = attribute.bytes();
  for (size_t begin = 0; begin <= s.size();) {
    const size_t end = std::min(s.find('.', begin), s.size());
    const std::string_view part = s.substr(begin, end - begin);
    const bool is_index = !part.empty() && part.find_first_not_of("0123456789") == part.npos;
    path.push_back(is_index ? parse_integer(part, 10) : Value::string(std::string(part)));
    begin = end + 1;
  }
  return path;
}

// What `attribute` finds in an item (`fallback`, if given, where that is undefined).
Getter attribute_getter(const Value& attribute, const Value* fallback, Interpreter& in) {
  return [path = attribute_path(attribute), fallback, &in](const Value& item) {
    Value v = item;
    for (const Value& part : path) {
      v = get_item(v, part, in.budget());
      if (v.is_undefined() && fallback != nullptr) v = *fallback;
    }
    return v;
  };
}

// Items are compared by themselves or an attribute; strings as lower case unless asked otherwise.
Getter sort_key(const Bound& bound, size_t attribute, size_t case_sensitive, Interpreter& in) {
  const bool ignores_case = !bound.flag(case_sensitive, false);
  Getter get = [](const Value& item) { return item; };
  if (bound.has(attribute)) get = attribute_getter(bound.at(attribute), nullptr, in);
  return [get, ignores_case, &in](const Value& item) {
    const Value v = get(item);
    return ignores_case && v.is_string() ? Value::string(lower(v.text(), in.budget())) : v;
  };
}

// Stable; keys are taken once.
std::vector<Value> sorted(std::vector<Value> items, const Getter& key, bool reverse,
                          Budget& budget) {
  std::vector<std::pair<Value, Value>> keyed;
  for (Value& item : items) {
    Value k = key(item);
    keyed.emplace_back(std::move(k), std::move(item));
  }
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return reverse ? less(b.first, a.first, budget) : less(a.first, b.first, budget);
  });
  for (size_t i = 0; i < items.size(); ++i) items[i] = std::move(keyed[i].second);
  return items;
}

// A generator over the items of `v` that yields what `pick` makes of each; nothing skips it. What is
// false has no items, whatever it is: `none|map('upper')` is empty.
Value lazy_over(Interpreter& in, const Value& v, uint32_t args_depth,
                std::function<std::optional<Value>(const Value&)> pick) {
  auto next = [&in, v, pick = std::move(pick), items = std::vector<Value>(), at = size_t{0},
               is_open = false]() mutable -> std::optional<Value> {
    if (!std::exchange(is_open, true) && v.truth()) items = iterate(v, in.budget());
    while (at < items.size()) {
      if (std::optional<Value> item = pick(items[at++])) return item;
    }
    return std::nullopt;
  };
  return Value::lazy(std::move(next), std::max(v.depth(), args_depth), in.budget());
}

// A generator that makes all its items when the first is taken.
Value lazy_all(Interpreter& in, uint32_t depth, std::function<std::vector<Value>()> make) {
  auto next = [make = std::move(make), items = std::vector<Value>(), at = size_t{0},
               is_open = false]() mutable -> std::optional<Value> {
    if (!std::exchange(is_open, true)) items = make();
    return at < items.size() ? std::optional<Value>(items[at++]) : std::nullopt;
  };
  return Value::lazy(std::move(next), depth, in.budget());
}

uint32_t depth_of(const Args& args) {
  uint32_t depth = 0;
  for (const Value& v : args.positional) depth = std::max(depth, v.depth());
  for (const auto& [name, v] : args.named) depth = std::max(depth, v.depth());
  return depth;
}

Value filter_length(Interpreter&, const Value& v, const Args& args) {
  const Bound bound("length", args, {});
  return Value::integer(length(v));
}

Value filter_list(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("list", args, {});
  return Value::list(iterate(v, in.budget()), in.budget());
}

Value filter_items(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("items", args, {});
  return lazy_all(in, v.depth(), [&in, v]() -> std::vector<Value> {
    if (v.is_undefined()) return {};
    if (!v.is(Kind::kDict)) fail("can only get item pairs from a mapping");
    return iterate(Value::dict_view({v, DictView::Part::kItems}), in.budget());
  });
}

Value filter_dictsort(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("dictsort", args, {"case_sensitive", "by", "reverse"});
  const std::string_view by = bound.string(1, "key");
  if (by != "key" && by != "value") fail("dictsort: by must be key or value");
  if (v.is_undefined()) fail(v.reason());
  if (!v.is(Kind::kDict)) fail(std::string("'") + v.type_name() + "' object has no items to sort");
  const bool ignores_case = !bound.flag(0, false);
  const size_t part = by == "key" ? 0 : 1;
  const Getter key = [&](const Value& pair) {
    const Value& k = pair.items()[part];
    return ignores_case && k.is_string() ? Value::string(lower(k.text(), in.budget())) : k;
  };
  const Value view = Value::dict_view({v, DictView::Part::kItems});
  return Value::list(sorted(iterate(view, in.budget()), key, bound.flag(2, false), in.budget()),
                     in.budget());
}

Value filter_sort(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("sort", args, {"reverse", "case_sensitive", "attribute"});
  std::vector<Value> items = iterate(v, in.budget());
  if (!bound.has(2) || !bound.at(2).is_string()) {
    return Value::list(
        sorted(std::move(items), sort_key(bound, 2, 1, in), bound.flag(0, false), in.budget()),
        in.budget());
  }
  std::vector<Getter> keys;  // attribute='a,b' sorts by a, then b
  for (const SourcedText& name : split_at(bound.text(2), ",", -1, in.budget())) {
    keys.push_back(attribute_getter(Value::string(name), nullptr, in));
  }
  const bool ignores_case = !bound.flag(1, false);
  const Getter key = [&](const Value& item) {
    std::vector<Value> parts;
    for (const Getter& get : keys) {
      const Value part = get(item);
      parts.push_back(
          ignores_case && part.is_string() ? Value::string(lower(part.text(), in.budget())) : part);
    }
    return Value::tuple(std::move(parts), in.budget());
  };
  return Value::list(sorted(std::move(items), key, bound.flag(0, false), in.budget()), in.budget());
}

Value filter_unique(Interpreter& in, const Value& v, const Args& args) {
  const Getter key = sort_key(Bound("unique", args, {"case_sensitive", "attribute"}), 1, 0, in);
  return lazy_all(in, std::max(v.depth(), depth_of(args)), [&in, v, key] {
    std::vector<Value> seen;
    std::vector<Value> kept;
    for (const Value& item : iterate(v, in.budget())) {
      Value k = key(item);
      hash_of(k, in.budget());  // the reference keeps a set, which refuses lists and dicts
      const bool is_new = std::none_of(seen.begin(), seen.end(), [&](const Value& other) {
        return equal(other, k, in.budget());
      });
      if (!is_new) continue;
      seen.push_back(std::move(k));
      kept.push_back(item);
    }
    return kept;
  });
}

Value filter_reverse(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("reverse", args, {});
  if (v.is_string()) {
    SourcedText text = reversed(v.text(), in.budget());
    return v.is_safe() ? Value::safe_string(std::move(text)) : Value::string(std::move(text));
  }
  std::vector<Value> items = iterate(v, in.budget());
  std::reverse(items.begin(), items.end());
  // A generator has no end to start from: it is copied to a list, which stays one.
  if (v.is(Kind::kLazy)) return Value::list(std::move(items), in.budget());
  return lazy_all(in, v.depth(), [items] { return items; });
}

Value filter_first(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("first", args, {});
  if (v.is(Kind::kLazy)) {  // takes one item, leaves the rest
    std::optional<Value> item = v.as_lazy().next();
    return item ? *item : Value::undefined("no first item, sequence was empty");
  }
  const std::vector<Value> items = iterate(v, in.budget());
  return items.empty() ? Value::undefined("no first item, sequence was empty") : items.front();
}

Value filter_last(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("last", args, {});
  if (v.is(Kind::kLazy)) fail("'generator' object is not reversible");
  const std::vector<Value> items = iterate(v, in.budget());
  return items.empty() ? Value::undefined("no last item, sequence was empty") : items.back();
}

Value filter_random(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("random", args, {});
  const std::vector<Value> items = iterate(v, in.budget());
  if (items.empty()) return Value::undefined("no random item, sequence was empty");
  return items[in.next_random() % items.size()];
}

Value filter_join(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("join", args, {"d", "attribute"});
  const SourcedText separator = bound.given(0) ? str_of(bound.at(0), in.budget()) : SourcedText();
  Getter get = [](const Value& item) { return item; };
  if (bound.has(1)) get = attribute_getter(bound.at(1), nullptr, in);
  TextBuilder out(in.budget());
  bool is_first = true;
  for (const Value& item : iterate(v, in.budget())) {
    if (!is_first) out.append(separator);
    is_first = false;
    write_str(get(item), out);
  }
  return Value::string(out.take());
}

Args without_first(const Args& args, size_t n) {
  Args rest;
  rest.positional.assign(args.positional.begin() + static_cast<ptrdiff_t>(n),
                         args.positional.end());
  rest.named = args.named;
  return rest;
}

Value filter_map(Interpreter& in, const Value& v, const Args& args) {
  if (!args.positional.empty()) {
    return lazy_over(in, v, depth_of(args), [&in, args](const Value& item) {
      if (!args.positional[0].is_string()) fail("map: the first argument is a filter's name");
      return in.apply_filter(args.positional[0].bytes(), item, without_first(args, 1));
    });
  }
  return lazy_over(in, v, depth_of(args), [&in, args](const Value& item) {
    const Bound bound("map", args, {"attribute", "default"});
    if (!bound.given(0)) fail("map requires a filter's name or attribute=");
    return attribute_getter(bound.at(0), bound.get(1), in)(item);
  });
}

// Whether `item`, or an attribute of it, passes the test that `args` name; without a test, whether it
// is true.
bool passes(Interpreter& in, const Value& item, const Args& args, bool by_attribute) {
  size_t n_used = 0;
  Value subject = item;
  if (by_attribute) {
    if (args.positional.empty()) fail("selectattr and rejectattr require an attribute's name");
    subject = attribute_getter(args.positional[0], nullptr, in)(item);
    n_used = 1;
  }
  if (args.positional.size() == n_used) return subject.truth();
  const Value& test = args.positional[n_used];
  if (!test.is_string()) fail("a test's name must be a string");
  return in.apply_test(test.bytes(), subject, without_first(args, n_used + 1));
}

Value picked(Interpreter& in, const Value& v, const Args& args, bool by_attribute, bool keep) {
  return lazy_over(in, v, depth_of(args), [&in, args, by_attribute, keep](const Value& item) {
    const bool is_kept = passes(in, item, args, by_attribute) == keep;
    return is_kept ? std::optional<Value>(item) : std::nullopt;
  });
}

Value filter_select(Interpreter& in, const Value& v, const Args& args) {
  return picked(in, v, args, false, true);
}
Value filter_reject(Interpreter& in, const Value& v, const Args& args) {
  return picked(in, v, args, false, false);
}
Value filter_selectattr(Interpreter& in, const Value& v, const Args& args) {
  return picked(in, v, args, true, true);
}
Value filter_rejectattr(Interpreter& in, const Value& v, const Args& args) {
  return picked(in, v, args, true, false);
}

Value filter_sum(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("sum", args, {"attribute", "start"});
  Getter get = [](const Value& item) { return item; };
  if (bound.has(0)) get = attribute_getter(bound.at(0), nullptr, in);
  Value total = bound.value_or(1, Value::integer(int64_t{0}));
  if (total.is_string()) fail("sum() can't sum strings");
  for (const Value& item : iterate(v, in.budget())) {
    total = arithmetic(ArithmeticOp::kAdd, total, get(item), in.budget());
  }
  return total;
}

Value extreme(Interpreter& in, const Value& v, const Args& args, bool largest) {
  const Bound bound(largest ? "max" : "min", args, {"case_sensitive", "attribute"});
  const Getter key = sort_key(bound, 1, 0, in);
  const std::vector<Value> items = iterate(v, in.budget());
  if (items.empty()) return Value::undefined("no aggregated item, sequence was empty");
  size_t best = 0;
  Value best_key = key(items[0]);
  for (size_t i = 1; i < items.size(); ++i) {
    Value k = key(items[i]);
    const bool better = largest ? less(best_key, k, in.budget()) : less(k, best_key, in.budget());
    if (!better) continue;
    best = i;
    best_key = std::move(k);
  }
  return items[best];
}

Value filter_max(Interpreter& in, const Value& v, const Args& args) {
  return extreme(in, v, args, true);
}
Value filter_min(Interpreter& in, const Value& v, const Args& args) {
  return extreme(in, v, args, false);
}

Value filter_batch(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("batch", args, {"linecount", "fill_with"}, 1);
  const auto n = static_cast<size_t>(std::max<int64_t>(bound.integer(0, 1), 1));
  const Value fill = bound.value_or(1, Value::none());
  return lazy_all(in, std::max(v.depth(), fill.depth()), [&in, v, n, fill] {
    std::vector<Value> rows;
    std::vector<Value> row;
    for (const Value& item : iterate(v, in.budget())) {
      if (row.size() == n) rows.push_back(Value::list(std::exchange(row, {}), in.budget()));
      row.push_back(item);
    }
    if (row.empty()) return rows;
    if (!fill.is_none()) {
      in.budget().charge_items(n);
      row.resize(n, fill);
    }
    rows.push_back(Value::list(std::move(row), in.budget()));
    return rows;
  });
}

Value filter_slice(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("slice", args, {"slices", "fill_with"}, 1);
  const int64_t n_slices = bound.integer(0, 1);
  const Value fill = bound.value_or(1, Value::none());
  return lazy_all(in, std::max(v.depth(), fill.depth()), [&in, v, n_slices, fill] {
    const std::vector<Value> items = iterate(v, in.budget());
    if (n_slices <= 0) fail("slice: expected a positive number of slices");
    const auto n = static_cast<size_t>(n_slices);
    in.budget().charge_items(n);
    const size_t n_longer = items.size() % n;
    std::vector<Value> slices;
    auto begin = items.begin();
    for (size_t i = 0; i < n; ++i) {
      const auto end = begin + static_cast<ptrdiff_t>(items.size() / n + (i < n_longer ? 1 : 0));
      std::vector<Value> part(begin, end);
      if (!fill.is_none() && i >= n_longer) part.push_back(fill);
      slices.push_back(Value::list(std::move(part), in.budget()));
      begin = end;
    }
    return slices;
  });
}

Value filter_groupby(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("groupby", args, {"attribute", "default", "case_sensitive"}, 1);
  const Getter get = attribute_getter(bound.at(0), bound.get(1), in);
  const bool ignores_case = !bound.flag(2, false);
  const Getter key = [&](const Value& item) {
    const Value k = get(item);
    return ignores_case && k.is_string() ? Value::string(lower(k.text(), in.budget())) : k;
  };
  const std::vector<Value> items = sorted(iterate(v, in.budget()), key, false, in.budget());
  std::vector<Value> groups;
  for (size_t begin = 0; begin < items.size();) {
    const Value first = key(items[begin]);
    size_t end = begin + 1;
    while (end < items.size() && equal(first, key(items[end]), in.budget())) ++end;
    Value members = Value::list({items.begin() + static_cast<ptrdiff_t>(begin),
                                 items.begin() + static_cast<ptrdiff_t>(end)},
                                in.budget());
    groups.push_back(Value::group(get(items[begin]), std::move(members), in.budget()));
    begin = end;
  }
  return Value::list(std::move(groups), in.budget());
}

constexpr FilterEntry kFilters[] = {
    {"batch", filter_batch},
    {"count", filter_length},
    {"dictsort", filter_dictsort},
    {"first", filter_first},
    {"groupby", filter_groupby},
    {"items", filter_items},
    {"join", filter_join},
    {"last", filter_last},
    {"length", filter_length},
    {"list", filter_list},
    {"map", filter_map},
    {"max", filter_max},
    {"min", filter_min},
    {"random", filter_random},
    {"reject", filter_reject},
    {"rejectattr", filter_rejectattr},
    {"reverse", filter_reverse},
    {"select", filter_select},
    {"selectattr", filter_selectattr},
    {"slice", filter_slice},
    {"sort", filter_sort},
    {"sum", filter_sum},
    {"unique", filter_unique},
};

}  // namespace

std::span<const FilterEntry> sequence_filters() {
  return kFilters;
}

}  // namespace dovetail::core::jinja
