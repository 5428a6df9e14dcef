#include "core/text/template/value.hpp"

#include <algorithm>
#include <limits>

#include "core/text/template/big_int.hpp"
#include "core/text/template/unicode.hpp"

namespace dovetail::core::jinja {
namespace {

uint32_t depth_over(const std::vector<Value>& items) {
  uint32_t deepest = 0;
  for (const Value& v : items) deepest = std::max(deepest, v.depth());
  return deepest + 1;
}

}  // namespace

Value Value::undefined(std::string reason) {
  Value v;
  v.ref_ = std::make_shared<const std::string>(std::move(reason));
  return v;
}

Value Value::boolean(bool b) {
  Value v(Kind::kBool);
  v.int_ = b ? 1 : 0;
  return v;
}

Value Value::integer(int64_t i) {
  Value v(Kind::kInt);
  v.int_ = i;
  return v;
}

Value Value::integer(BigInt big) {
  if (big.v >= std::numeric_limits<int64_t>::min() &&
      big.v <= std::numeric_limits<int64_t>::max()) {
    return integer(static_cast<int64_t>(big.v));
  }
  if (msb(abs(big.v)) >= kMaxBigIntBits) {
    fail("an integer gets more than " + std::to_string(kMaxBigIntBits) + " bits");
  }
  Value v(Kind::kBigInt);
  v.ref_ = std::make_shared<const BigInt>(std::move(big));
  return v;
}

Value Value::number(double d) {
  Value v(Kind::kFloat);
  v.float_ = d;
  return v;
}

Value Value::string(SourcedText text) {
  Value v(Kind::kString);
  v.ref_ = std::make_shared<const SourcedText>(std::move(text));
  return v;
}

Value Value::safe_string(SourcedText text) {
  Value v = string(std::move(text));
  v.is_safe_ = true;
  return v;
}

Value Value::list(std::vector<Value> items, Budget& budget) {
  budget.charge(sizeof(Sequence) + items.size() * sizeof(Value));
  Value v(Kind::kList);
  const uint32_t depth = depth_over(items);
  budget.check_value_depth(depth);
  v.ref_ = std::make_shared<const Sequence>(Sequence{std::move(items), depth});
  return v;
}

Value Value::tuple(std::vector<Value> items, Budget& budget) {
  Value v = list(std::move(items), budget);
  v.kind_ = Kind::kTuple;
  return v;
}

Value Value::group(Value grouper, Value list, Budget& budget) {
  Value v = tuple({std::move(grouper), std::move(list)}, budget);
  Sequence pair = v.sequence();
  pair.is_group = true;
  v.ref_ = std::make_shared<const Sequence>(std::move(pair));
  return v;
}

Value Value::dict(std::vector<std::pair<Value, Value>> entries, Budget& budget) {
  budget.charge(sizeof(Dict) + 2 * entries.size() * sizeof(Value));
  Dict dict;
  dict.entries = std::move(entries);
  for (const auto& [key, value] : dict.entries) {
    dict.depth = std::max({dict.depth, key.depth(), value.depth()});
  }
  ++dict.depth;
  budget.check_value_depth(dict.depth);
  dict.index(budget);
  Value v(Kind::kDict);
  v.ref_ = std::make_shared<const Dict>(std::move(dict));
  return v;
}

Value Value::dict_view(DictView view) {
  Value v(Kind::kDictView);
  v.ref_ = std::make_shared<const DictView>(std::move(view));
  return v;
}

Value Value::range(Range range) {
  Value v(Kind::kRange);
  v.ref_ = std::make_shared<const Range>(range);
  return v;
}

Value Value::lazy(LazyItems::Next next, uint32_t depth, Budget& budget) {
  budget.charge(sizeof(LazyItems) + 4 * sizeof(Value));
  budget.check_value_depth(depth + 1);
  Value v(Kind::kLazy);
  v.ref_ = std::make_shared<LazyItems>(LazyItems{std::move(next), depth + 1});
  return v;
}

Value Value::name_space(Namespace* ns) {
  Value v(Kind::kNamespace);
  v.namespace_ = ns;
  return v;
}

Value Value::object(std::shared_ptr<Object> object) {
  Value v(Kind::kObject);
  v.ref_ = std::shared_ptr<const void>(std::move(object));
  return v;
}

const char* Value::type_name() const {
  switch (kind_) {
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
    case Kind::kBigInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return "str";
    case Kind::kList:
      return "list";
    case Kind::kTuple:
      return "tuple";
    case Kind::kDict:
      return "dict";
    case Kind::kDictView:
      switch (as_dict_view().part) {
        case DictView::Part::kItems:
          return "dict_items";
        case DictView::Part::kKeys:
          return "dict_keys";
        case DictView::Part::kValues:
          return "dict_values";
      }
      break;
    case Kind::kRange:
      return "range";
    case Kind::kLazy:
      return "generator";
    case Kind::kNamespace:
      return "Namespace";
    case Kind::kObject:
      return as_object().type_name();
  }
  return "?";
}

const std::string& Value::reason() const {
  static const std::string unknown = "a value is undefined";
  return ref_ == nullptr ? unknown : *static_cast<const std::string*>(ref_.get());
}

const BigInt& Value::as_big_int() const {
  return *static_cast<const BigInt*>(ref_.get());
}
const SourcedText& Value::text() const {
  return *static_cast<const SourcedText*>(ref_.get());
}
const Sequence& Value::sequence() const {
  return *static_cast<const Sequence*>(ref_.get());
}
const std::vector<Value>& Value::items() const {
  return sequence().items;
}
const Dict& Value::as_dict() const {
  return *static_cast<const Dict*>(ref_.get());
}
const DictView& Value::as_dict_view() const {
  return *static_cast<const DictView*>(ref_.get());
}
const Range& Value::as_range() const {
  return *static_cast<const Range*>(ref_.get());
}

// The two mutable kinds are made from objects that are not const.
LazyItems& Value::as_lazy() const {
  return *const_cast<LazyItems*>(static_cast<const LazyItems*>(ref_.get()));
}
Object& Value::as_object() const {
  return *const_cast<Object*>(static_cast<const Object*>(ref_.get()));
}

bool Value::truth() const {
  switch (kind_) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return int_ != 0;
    case Kind::kFloat:
      return float_ != 0;
    case Kind::kString:
      return !text().empty();
    case Kind::kList:
    case Kind::kTuple:
      return !items().empty();
    case Kind::kDict:
      return !as_dict().entries.empty();
    case Kind::kDictView:
      return as_dict_view().dict.truth();
    case Kind::kRange:
      return as_range().size() != 0;
    case Kind::kBigInt:
    case Kind::kLazy:
    case Kind::kNamespace:
    case Kind::kObject:
      return true;
  }
  return true;
}

uint32_t Value::depth() const {
  switch (kind_) {
    case Kind::kList:
    case Kind::kTuple:
      return sequence().depth;
    case Kind::kDict:
      return as_dict().depth;
    case Kind::kDictView:
      return as_dict_view().dict.depth() + 1;
    case Kind::kLazy:
      return as_lazy().depth;
    case Kind::kObject:
      return as_object().depth();
    default:
      return 0;
  }
}

int64_t Range::size() const {
  if (step > 0) return stop > start ? (stop - start - 1) / step + 1 : 0;
  return start > stop ? (start - stop - 1) / -step + 1 : 0;
}

const Value* Namespace::find(std::string_view name) const {
  for (const auto& [key, value] : entries_) {
    if (key.is_string() && key.bytes() == name) return &value;
  }
  return nullptr;
}

void Namespace::set(const Value& name, Value value) {
  for (auto& [key, old] : entries_) {
    if (key.is_string() && key.bytes() == name.bytes()) {
      old = std::move(value);
      return;
    }
  }
  entries_.emplace_back(name, std::move(value));
}

Value Object::call(Interpreter&, const Args&) {
  fail(std::string("'") + type_name() + "' object is not callable");
}

Value Object::attribute(std::string_view) const {
  return {};
}

bool is_iterable(const Value& v) {
  switch (v.kind()) {
    case Kind::kUndefined:
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kDictView:
    case Kind::kRange:
    case Kind::kLazy:
      return true;
    default:
      return false;
  }
}

std::vector<Value> iterate(const Value& v, Budget& budget) {
  std::vector<Value> out;
  switch (v.kind()) {
    case Kind::kUndefined:
      break;
    case Kind::kList:
    case Kind::kTuple:
      budget.charge(v.items().size() * sizeof(Value));
      out = v.items();
      break;
    case Kind::kString: {
      const SourcedText& text = v.text();
      budget.charge(count_chars(text.bytes()) * (sizeof(Value) + sizeof(SourcedText)));
      for (size_t pos = 0; pos < text.size();) {
        const size_t begin = pos;
        next_char(text.bytes(), pos);
        out.push_back(Value::string(text.slice(begin, pos)));
      }
      break;
    }
    case Kind::kDict:
      budget.charge(v.as_dict().entries.size() * sizeof(Value));
      for (const auto& entry : v.as_dict().entries) out.push_back(entry.first);
      break;
    case Kind::kDictView: {
      const DictView& view = v.as_dict_view();
      budget.charge(view.dict.as_dict().entries.size() * sizeof(Value));
      for (const auto& [key, value] : view.dict.as_dict().entries) {
        switch (view.part) {
          case DictView::Part::kItems:
            out.push_back(Value::tuple({key, value}, budget));
            break;
          case DictView::Part::kKeys:
            out.push_back(key);
            break;
          case DictView::Part::kValues:
            out.push_back(value);
            break;
        }
      }
      break;
    }
    case Kind::kRange: {
      const Range& r = v.as_range();
      const int64_t n = r.size();
      budget.charge(static_cast<size_t>(n) * sizeof(Value));
      for (int64_t i = 0; i < n; ++i) out.push_back(Value::integer(r.start + i * r.step));
      break;
    }
    case Kind::kLazy: {
      LazyItems& lazy = v.as_lazy();
      while (std::optional<Value> item = lazy.next()) {
        budget.charge(sizeof(Value));
        out.push_back(*std::move(item));
      }
      break;
    }
    default:
      fail(std::string("'") + v.type_name() + "' object is not iterable");
  }
  budget.step(out.size());
  return out;
}

int64_t length(const Value& v) {
  switch (v.kind()) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString:
      return static_cast<int64_t>(count_chars(v.bytes()));
    case Kind::kList:
    case Kind::kTuple:
      return static_cast<int64_t>(v.items().size());
    case Kind::kDict:
      return static_cast<int64_t>(v.as_dict().entries.size());
    case Kind::kDictView:
      return length(v.as_dict_view().dict);
    case Kind::kRange:
      return v.as_range().size();
    default:
      fail(std::string("object of type '") + v.type_name() + "' has no len()");
  }
}

}  // namespace dovetail::core::jinja
