// Global functions.
#include <algorithm>

#include "core/text/template/builtins.hpp"
#include "core/text/template/format.hpp"
#include "core/text/template/function.hpp"
#include "core/text/template/print.hpp"

namespace dovetail::core::jinja {
namespace {

constexpr int64_t kMaxRange = 100'000;
constexpr int64_t kMaxRangeBound = int64_t{1} << 40;  // keeps every sum of bounds inside int64

Value function_raise_exception(Interpreter& in, const Args& args) {
  const Bound bound("raise_exception", args, {"message"}, 1);
  throw Fault(Code::kInvalid, str_of(bound.at(0), in.budget()).take_bytes(), Fault::Kind::kRaised);
}

Value function_strftime_now(Interpreter& in, const Args& args) {
  const Bound bound("strftime_now", args, {"format"}, 1);
  return Value::string(format_time(bound.string(0, ""), in.now()));
}

std::vector<std::pair<Value, Value>> entries_from(Interpreter& in, const Args& args,
                                                  const char* callee) {
  if (args.positional.size() > 1)
    fail(std::string(callee) + " takes at most one positional argument");
  std::vector<std::pair<Value, Value>> entries;
  if (!args.positional.empty()) {
    const Value& from = args.positional[0];
    if (from.is(Kind::kDict)) {
      entries = from.as_dict().entries;
    } else {
      for (const Value& pair : iterate(from, in.budget())) {
        std::vector<Value> both = iterate(pair, in.budget());
        if (both.size() != 2) fail(std::string(callee) + ": expected pairs of key and value");
        entries.emplace_back(std::move(both[0]), std::move(both[1]));
      }
    }
  }
  for (const auto& [name, value] : args.named) entries.emplace_back(Value::string(name), value);
  return entries;
}

Value function_dict(Interpreter& in, const Args& args) {
  return Value::dict(entries_from(in, args, "dict"), in.budget());
}

Value function_namespace(Interpreter& in, const Args& args) {
  Namespace& ns = in.new_namespace();
  for (auto& [name, value] : entries_from(in, args, "namespace")) {
    if (!name.is_string()) fail("namespace: names must be strings");
    in.budget().charge(2 * sizeof(Value));
    ns.set(name, std::move(value));
  }
  return Value::name_space(&ns);
}

Value function_range(Interpreter&, const Args& args) {
  const size_t n = args.positional.size();
  if (n == 0 || n > 3 || !args.named.empty()) fail("range expected 1 to 3 positional arguments");
  int64_t bounds[3] = {0, 0, 1};
  for (size_t i = 0; i < n; ++i) {
    const Value& v = args.positional[i];
    if (v.is_undefined()) fail(v.reason());
    if (!v.is(Kind::kInt) && !v.is(Kind::kBool)) {
      fail(std::string("range: got ") + v.type_name() + ", expected int");
    }
    if (v.as_int() > kMaxRangeBound || v.as_int() < -kMaxRangeBound) {
      fail("range: an argument is beyond " + std::to_string(kMaxRangeBound));
    }
    bounds[n == 1 ? 1 : i] = v.as_int();
  }
  if (bounds[2] == 0) fail("range() arg 3 must not be zero");
  const Range range{bounds[0], bounds[1], bounds[2]};
  if (range.size() > kMaxRange) {
    fail("range too big: the sandbox blocks ranges larger than " + std::to_string(kMaxRange));
  }
  return Value::range(range);
}

uint32_t depth_of(const std::vector<Value>& items) {
  uint32_t depth = 0;
  for (const Value& v : items) depth = std::max(depth, v.depth());
  return depth + 1;
}

// joiner(sep): nothing the first time it is called, then `sep`.
Value function_joiner(Interpreter& in, const Args& args) {
  const Bound bound("joiner", args, {"sep"});
  const Value separator = to_string(bound.value_or(0, Value::string(", ")), in.budget());
  const auto used = std::make_shared<bool>(false);
  return make_function(0, [separator, used](Interpreter&, const Args&) {
    return std::exchange(*used, true) ? separator : Value::string("");
  });
}

class Cycler : public Object, public std::enable_shared_from_this<Cycler> {
 public:
  explicit Cycler(std::vector<Value> items) : items_(std::move(items)), depth_(depth_of(items_)) {}

  const char* type_name() const override { return "Cycler"; }
  bool is_callable() const override { return false; }
  uint32_t depth() const override { return depth_; }

  Value attribute(std::string_view name) const override {
    if (name == "current") return items_[at_];
    if (name != "next" && name != "reset") return {};
    const bool resets = name == "reset";
    return make_function(depth_ + 1,
                         [self = shared_from_this(), resets](Interpreter&, const Args&) {
                           const Value now = self->items_[self->at_];
                           self->at_ = resets ? 0 : (self->at_ + 1) % self->items_.size();
                           return resets ? Value::none() : now;
                         });
  }

 private:
  std::vector<Value> items_;
  uint32_t depth_;
  mutable size_t at_ = 0;
};

Value function_cycler(Interpreter& in, const Args& args) {
  if (args.positional.empty() || !args.named.empty()) fail("cycler: expected at least one item");
  in.budget().check_value_depth(depth_of(args.positional));
  return Value::object(std::make_shared<Cycler>(args.positional));
}

Value function_lipsum(Interpreter&, const Args&) {
  throw unknown_function("lipsum");
}

struct FunctionEntry {
  std::string_view name;
  FunctionFn* fn;
};

constexpr FunctionEntry kFunctions[] = {
    {"cycler", function_cycler},       {"dict", function_dict},
    {"joiner", function_joiner},       {"lipsum", function_lipsum},
    {"namespace", function_namespace}, {"raise_exception", function_raise_exception},
    {"range", function_range},         {"strftime_now", function_strftime_now},
};

}  // namespace

Value find_function(std::string_view name) {
  for (const FunctionEntry& entry : kFunctions) {
    if (entry.name == name) return make_function(0, entry.fn);
  }
  return {};
}

bool has_function(std::string_view name) {
  return name != "lipsum" && !find_function(name).is_undefined();
}

Fault unknown_function(std::string_view name) {
  if (name == "lipsum")
    return {Code::kUnsupported, "the function 'lipsum' is not supported in chat templates"};
  return {Code::kFormat, "no function or macro is named " + in_quotes(name)};
}

}  // namespace dovetail::core::jinja
