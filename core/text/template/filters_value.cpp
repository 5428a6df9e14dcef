// Filters on one value: defaults, numbers, JSON.
#include <algorithm>
#include <cmath>

#include "core/base/json.hpp"
#include "core/text/template/big_int.hpp"
#include "core/text/template/builtins.hpp"
#include "core/text/template/interpreter.hpp"
#include "core/text/template/literals.hpp"
#include "core/text/template/operators.hpp"
#include "core/text/template/print.hpp"

namespace dovetail::core::jinja {
namespace {

Value filter_default(Interpreter&, const Value& v, const Args& args) {
  const Bound bound("default", args, {"default_value", "boolean"});
  const bool replaces = v.is_undefined() || (bound.flag(1, false) && !v.truth());
  return replaces ? bound.value_or(0, Value::string("")) : v;
}

Value filter_attr(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("attr", args, {"name"}, 1);
  if (v.is(Kind::kDict)) {  // attributes only, never items
    Value method = find_method(v, bound.string(0, ""));
    if (!method.is_undefined()) return method;
    return Value::undefined("'dict object' has no attribute '" + std::string(bound.string(0, "")) +
                            "'");
  }
  return get_attribute(v, bound.string(0, ""), in.budget());
}

Value truncated(double d, const Value& fallback) {
  if (!std::isfinite(d)) return fallback;
  return Value::integer(BigInt{boost::multiprecision::cpp_int(std::trunc(d))});
}

Value filter_int(Interpreter&, const Value& v, const Args& args) {
  const Bound bound("int", args, {"default", "base"});
  Value fallback = bound.value_or(0, Value::integer(int64_t{0}));
  if (v.is_undefined()) fail(v.reason());
  if (v.is(Kind::kBool)) return Value::integer(v.as_int());
  if (v.is_integer()) return v;
  if (v.is(Kind::kFloat)) return truncated(v.as_float(), fallback);
  if (!v.is_string()) return fallback;
  const int64_t base = bound.integer(1, 10);
  if (base != 0 && (base < 2 || base > 36)) return fallback;
  Value exact = parse_integer(v.bytes(), static_cast<int>(base));
  if (!exact.is_undefined()) return exact;
  const Value real = parse_float(v.bytes());
  return real.is_undefined() ? fallback : truncated(real.as_float(), fallback);
}

Value filter_float(Interpreter&, const Value& v, const Args& args) {
  const Bound bound("float", args, {"default"});
  Value fallback = bound.value_or(0, Value::number(0));
  if (v.is_undefined()) fail(v.reason());
  if (v.is_number()) return Value::number(real_of(v));
  if (!v.is_string()) return fallback;
  const Value real = parse_float(v.bytes());
  return real.is_undefined() ? fallback : real;
}

Value filter_abs(Interpreter&, const Value& v, const Args& args) {
  const Bound bound("abs", args, {});
  return absolute(v);
}

// A double rounded to `precision` digits as Python does: through its exact decimal expansion.
double rounded(double d, int64_t precision) {
  if (precision >= 300 || !std::isfinite(d)) return d;
  if (precision < 0) {
    const double scale = std::pow(10.0, static_cast<double>(-precision));
    return std::nearbyint(d / scale) * scale;
  }
  std::string text(700, '\0');
  const int n = std::snprintf(text.data(), text.size(), "%.*f", static_cast<int>(precision), d);
  return parse_float(std::string_view(text).substr(0, static_cast<size_t>(n))).as_float();
}

Value filter_round(Interpreter&, const Value& v, const Args& args) {
  const Bound bound("round", args, {"precision", "method"});
  const int64_t precision = bound.integer(0, 0);
  const std::string_view method = bound.string(1, "common");
  if (v.is_undefined()) fail(v.reason());
  if (!v.is_number()) {
    fail(std::string("type ") + v.type_name() + " cannot be rounded, expected a number");
  }
  if (method == "common") {
    if (!v.is(Kind::kFloat) && precision >= 0) return positive(v);
    return Value::number(rounded(real_of(v), precision));
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  if (method == "ceil") return Value::number(std::ceil(real_of(v) * scale) / scale);
  if (method == "floor") return Value::number(std::floor(real_of(v) * scale) / scale);
  fail("round: method must be common, ceil or floor");
}

Value filter_tojson(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("tojson", args, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = bound.flag(0, false);
  style.sort_keys = bound.flag(3, false);
  if (bound.has(1)) {
    if (bound.at(1).is_string()) {
      style.indent = bound.text(1);
    } else {
      TextBuilder blanks(in.budget());
      blanks.repeat(SourcedText(" "),
                    static_cast<size_t>(std::max<int64_t>(bound.integer(1, 0), 0)));
      style.indent = blanks.take();
    }
    style.item_separator = SourcedText(",");
  }
  if (bound.has(2)) {
    const std::vector<Value> both = iterate(bound.at(2), in.budget());
    if (both.size() != 2 || !both[0].is_string() || !both[1].is_string()) {
      fail("tojson: separators are two strings, for items and for keys");
    }
    style.item_separator = both[0].text();
    style.key_separator = both[1].text();
  }
  TextBuilder out(in.budget());
  write_json(v, style, out);
  return Value::string(out.take());
}

// Not in Jinja: variants of templates made for llama.cpp parse tool arguments with it.
Value filter_from_json(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("from_json", args, {});
  if (!v.is_string()) fail(std::string("from_json: got ") + v.type_name() + ", expected str");
  const Result<Node> node = parse_json(v.bytes(), "from_json");
  if (!node.is_ok()) fail(node.status().message());
  const Source source = v.text().has_data() ? Source::kData : Source::kTemplate;
  return value_of(*node, source, in.budget());
}

constexpr FilterEntry kFilters[] = {
    {"abs", filter_abs},
    {"attr", filter_attr},
    {"d", filter_default},
    {"default", filter_default},
    {"float", filter_float},
    {"from_json", filter_from_json},
    {"fromjson", filter_from_json},
    {"int", filter_int},
    {"round", filter_round},
    {"tojson", filter_tojson},
};

}  // namespace

std::span<const FilterEntry> value_filters() {
  return kFilters;
}

}  // namespace dovetail::core::jinja
