// Equality, order, hashing and dict lookup, as Python's == < and hash() have them.
#include <cmath>
#include <functional>

#include "core/text/template/big_int.hpp"
#include "core/text/template/value.hpp"

namespace dovetail::core::jinja {
namespace {

using Big = boost::multiprecision::cpp_int;

// The same as compare_numbers().
int compare_big(const Big& a, double b) {
  if (std::isnan(b)) return 2;
  if (std::isinf(b)) return b > 0 ? -1 : 1;
  const double whole = std::floor(b);
  const int order = a.compare(Big(whole));
  return order < 0 ? -1 : order > 0 ? 1 : whole < b ? -1 : 0;
}

// -1, 0 or 1 for two numbers; 2 if either is NaN. long double holds every int64 and every double.
int compare_numbers(const Value& a, const Value& b) {
  if (a.is(Kind::kBigInt) || b.is(Kind::kBigInt)) {
    const auto big = [](const Value& v) {
      return v.is(Kind::kBigInt) ? v.as_big_int().v : Big(v.as_int());
    };
    if (b.is(Kind::kFloat)) return compare_big(big(a), b.as_float());
    if (a.is(Kind::kFloat)) {
      const int order = compare_big(big(b), a.as_float());
      return order == 2 ? 2 : -order;
    }
    const int order = big(a).compare(big(b));
    return order < 0 ? -1 : order > 0 ? 1 : 0;
  }
  const auto real = [](const Value& v) -> long double {
    return v.is(Kind::kFloat) ? v.as_float() : static_cast<long double>(v.as_int());
  };
  const long double x = real(a);
  const long double y = real(b);
  return x < y ? -1 : x == y ? 0 : x > y ? 1 : 2;
}

bool equal_items(const std::vector<Value>& a, const std::vector<Value>& b, Budget& budget) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!equal(a[i], b[i], budget)) return false;
  }
  return true;
}

bool equal_dicts(const Dict& a, const Dict& b, Budget& budget) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [key, value] : a.entries) {
    const Value* other = b.find(key, budget);
    if (other == nullptr || !equal(value, *other, budget)) return false;
  }
  return true;
}

[[noreturn]] void fail_unordered(const Value& a, const Value& b) {
  for (const Value* v : {&a, &b}) {
    if (v->is_undefined()) fail(v->reason());
  }
  fail(std::string("'<' not supported between instances of '") + a.type_name() + "' and '" +
       b.type_name() + "'");
}

}  // namespace

bool equal(const Value& a, const Value& b, Budget& budget) {
  budget.step();
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kString:
      return a.bytes() == b.bytes();
    case Kind::kList:
    case Kind::kTuple:
      return equal_items(a.items(), b.items(), budget);
    case Kind::kDict:
      return equal_dicts(a.as_dict(), b.as_dict(), budget);
    case Kind::kDictView: {
      const DictView& x = a.as_dict_view();
      const DictView& y = b.as_dict_view();
      if (x.part != y.part || x.part == DictView::Part::kValues) return &x == &y;
      if (x.part == DictView::Part::kItems) return equal(x.dict, y.dict, budget);
      const Dict& keys = y.dict.as_dict();
      if (x.dict.as_dict().entries.size() != keys.entries.size()) return false;
      for (const auto& entry : x.dict.as_dict().entries) {
        if (keys.find(entry.first, budget) == nullptr) return false;
      }
      return true;
    }
    case Kind::kRange: {
      const Range& x = a.as_range();
      const Range& y = b.as_range();
      return x.size() == y.size() && (x.size() == 0 || x.start == y.start) &&
             (x.size() < 2 || x.step == y.step);
    }
    case Kind::kNamespace:
      return &a.as_namespace() == &b.as_namespace();
    case Kind::kLazy:
      return &a.as_lazy() == &b.as_lazy();
    case Kind::kObject:
      return &a.as_object() == &b.as_object();
    default:
      return false;
  }
}

bool less(const Value& a, const Value& b, Budget& budget) {
  budget.step();
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == -1;
  // UTF-8 sorts bytewise as code points do.
  if (a.is_string() && b.is_string()) return a.bytes() < b.bytes();
  if (a.is_sequence() && a.kind() == b.kind()) {
    const std::vector<Value>& x = a.items();
    const std::vector<Value>& y = b.items();
    for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
      if (!equal(x[i], y[i], budget)) return less(x[i], y[i], budget);
    }
    return x.size() < y.size();
  }
  fail_unordered(a, b);
}

size_t hash_of(const Value& key, Budget& budget) {
  budget.step();
  switch (key.kind()) {
    case Kind::kBool:
    case Kind::kInt:
      return std::hash<int64_t>{}(key.as_int());
    case Kind::kBigInt:
      return std::hash<double>{}(nearest_double(key.as_big_int().v));
    case Kind::kFloat: {
      const double d = key.as_float();
      if (std::floor(d) == d && std::abs(d) < 9e18) {
        return std::hash<int64_t>{}(static_cast<int64_t>(d));
      }
      return std::hash<double>{}(d);
    }
    case Kind::kString:
      return std::hash<std::string_view>{}(key.bytes());
    case Kind::kTuple: {
      size_t h = key.items().size();
      for (const Value& item : key.items()) h = h * 31 + hash_of(item, budget);
      return h;
    }
    case Kind::kList:
    case Kind::kDict:
      fail(std::string("unhashable type: '") + key.type_name() + "', which cannot be a dict's key");
    default:
      return static_cast<size_t>(key.kind());
  }
}

template <class IsKey>
size_t Dict::slot(size_t hash, IsKey is_key) const {
  const size_t mask = slots_.size() - 1;
  size_t s = hash & mask;
  while (slots_[s] != 0 && !is_key(entries[slots_[s] - 1].first)) s = (s + 1) & mask;
  return s;
}

void Dict::index(Budget& budget) {
  size_t n_slots = 8;
  while (n_slots < 2 * entries.size()) n_slots *= 2;
  slots_.assign(n_slots, 0);
  size_t n_kept = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    const Value& key = entries[i].first;
    const size_t s =
        slot(hash_of(key, budget), [&](const Value& other) { return equal(other, key, budget); });
    if (slots_[s] != 0) {
      entries[slots_[s] - 1].second = std::move(entries[i].second);
      continue;
    }
    if (n_kept != i) entries[n_kept] = std::move(entries[i]);
    slots_[s] = static_cast<uint32_t>(++n_kept);
  }
  entries.resize(n_kept);
}

const Value* Dict::find(const Value& key, Budget& budget) const {
  const size_t s =
      slot(hash_of(key, budget), [&](const Value& other) { return equal(other, key, budget); });
  return slots_[s] == 0 ? nullptr : &entries[slots_[s] - 1].second;
}

const Value* Dict::find(std::string_view key) const {
  const size_t s = slot(std::hash<std::string_view>{}(key), [&](const Value& other) {
    return other.is_string() && other.bytes() == key;
  });
  return slots_[s] == 0 ? nullptr : &entries[slots_[s] - 1].second;
}

}  // namespace dovetail::core::jinja
