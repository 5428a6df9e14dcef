// Tests: what stands after `is`.
#include "core/text/template/big_int.hpp"
#include "core/text/template/builtins.hpp"
#include "core/text/template/interpreter.hpp"
#include "core/text/template/operators.hpp"
#include "core/text/template/print.hpp"
#include "core/text/template/string_ops.hpp"

namespace dovetail::core::jinja {
namespace {

template <bool (*kIs)(const Value&)>
bool plain(Interpreter&, const Value& v, const Args& args) {
  const Bound bound("this test", args, {});
  return kIs(v);
}

bool is_defined(const Value& v) {
  return !v.is_undefined();
}
bool is_undefined(const Value& v) {
  return v.is_undefined();
}
bool is_none(const Value& v) {
  return v.is_none();
}
bool is_string(const Value& v) {
  return v.is_string();
}
bool is_mapping(const Value& v) {
  return v.is(Kind::kDict);
}
bool is_number(const Value& v) {
  return v.is_number();
}
bool is_integer(const Value& v) {
  return v.is_integer();
}
bool is_float(const Value& v) {
  return v.is(Kind::kFloat);
}
bool is_boolean(const Value& v) {
  return v.is(Kind::kBool);
}
bool is_true(const Value& v) {
  return v.is(Kind::kBool) && v.as_bool();
}
bool is_false(const Value& v) {
  return v.is(Kind::kBool) && !v.as_bool();
}
// Anything with a length and indexes: strings, dicts and, as it happens, undefined too.
bool is_sequence(const Value& v) {
  return v.is_sequence() || v.is_string() || v.is(Kind::kDict) || v.is(Kind::kRange) ||
         v.is_undefined();
}
bool is_callable(const Value& v) {
  return v.is_undefined() || (v.is(Kind::kObject) && v.as_object().is_callable());
}

bool test_lower(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("lower", args, {});
  return has_lower_only(to_string(v, in.budget()).bytes());
}

bool test_upper(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("upper", args, {});
  return has_upper_only(to_string(v, in.budget()).bytes());
}

bool leaves_remainder(Interpreter& in, const Value& v, const Value& divisor, int64_t remainder) {
  const Value rest = arithmetic(ArithmeticOp::kModulo, v, divisor, in.budget());
  return equal(rest, Value::integer(remainder), in.budget());
}

bool test_odd(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("odd", args, {});
  return leaves_remainder(in, v, Value::integer(int64_t{2}), 1);
}

bool test_even(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("even", args, {});
  return leaves_remainder(in, v, Value::integer(int64_t{2}), 0);
}

bool test_divisibleby(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("divisibleby", args, {"num"}, 1);
  return leaves_remainder(in, v, bound.at(0), 0);
}

template <CompareOp kOp>
bool compares(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("this test", args, {"other"}, 1);
  return compare(kOp, v, bound.at(0), in.budget());
}

// Identity: of what has no identity here (strings, lists), equality of the same kind.
bool test_sameas(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("sameas", args, {"other"}, 1);
  return v.kind() == bound.at(0).kind() && equal(v, bound.at(0), in.budget());
}

bool test_filter(Interpreter&, const Value& v, const Args& args) {
  const Bound bound("filter", args, {});
  return v.is_string() && find_filter(v.bytes()) != nullptr;
}

bool test_test(Interpreter&, const Value& v, const Args& args) {
  const Bound bound("test", args, {});
  return v.is_string() && find_test(v.bytes()) != nullptr;
}

bool test_escaped(Interpreter&, const Value& v, const Args& args) {
  const Bound bound("escaped", args, {});
  return v.is_safe();
}

constexpr TestEntry kTests[] = {
    {"!=", compares<CompareOp::kNotEqual>},
    {"<", compares<CompareOp::kLess>},
    {"<=", compares<CompareOp::kLessEqual>},
    {"==", compares<CompareOp::kEqual>},
    {">", compares<CompareOp::kGreater>},
    {">=", compares<CompareOp::kGreaterEqual>},
    {"boolean", plain<is_boolean>},
    {"callable", plain<is_callable>},
    {"defined", plain<is_defined>},
    {"divisibleby", test_divisibleby},
    {"eq", compares<CompareOp::kEqual>},
    {"equalto", compares<CompareOp::kEqual>},
    {"escaped", test_escaped},
    {"even", test_even},
    {"false", plain<is_false>},
    {"filter", test_filter},
    {"float", plain<is_float>},
    {"ge", compares<CompareOp::kGreaterEqual>},
    {"greaterthan", compares<CompareOp::kGreater>},
    {"gt", compares<CompareOp::kGreater>},
    {"in", compares<CompareOp::kIn>},
    {"integer", plain<is_integer>},
    {"iterable", plain<is_iterable>},
    {"le", compares<CompareOp::kLessEqual>},
    {"lessthan", compares<CompareOp::kLess>},
    {"lower", test_lower},
    {"lt", compares<CompareOp::kLess>},
    {"mapping", plain<is_mapping>},
    {"ne", compares<CompareOp::kNotEqual>},
    {"none", plain<is_none>},
    {"number", plain<is_number>},
    {"odd", test_odd},
    {"sameas", test_sameas},
    {"sequence", plain<is_sequence>},
    {"string", plain<is_string>},
    {"test", test_test},
    {"true", plain<is_true>},
    {"undefined", plain<is_undefined>},
    {"upper", test_upper},
};

}  // namespace

std::span<const TestEntry> all_tests() {
  return kTests;
}

}  // namespace dovetail::core::jinja
