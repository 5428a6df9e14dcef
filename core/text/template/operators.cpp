// Arithmetic on numbers, strings and lists; `in`.
#include "core/text/template/operators.hpp"

#include <cmath>
#include <limits>

#include "core/text/template/big_int.hpp"
#include "core/text/template/format.hpp"
#include "core/text/template/text_builder.hpp"
#include "core/text/template/unicode.hpp"

namespace dovetail::core::jinja {
namespace {

using Big = boost::multiprecision::cpp_int;

const char* symbol(ArithmeticOp op) {
  switch (op) {
    case ArithmeticOp::kAdd:
      return "+";
    case ArithmeticOp::kSubtract:
      return "-";
    case ArithmeticOp::kMultiply:
      return "*";
    case ArithmeticOp::kDivide:
      return "/";
    case ArithmeticOp::kFloorDivide:
      return "//";
    case ArithmeticOp::kModulo:
      return "%";
    case ArithmeticOp::kPower:
      return "** or pow()";
  }
  return "?";
}

[[noreturn]] void fail_operands(ArithmeticOp op, const Value& a, const Value& b) {
  if (op == ArithmeticOp::kAdd && (a.is_string() || a.is_sequence())) {
    fail(std::string("can only concatenate ") + a.type_name() + " (not \"" + b.type_name() +
         "\") to " + a.type_name());
  }
  fail(std::string("unsupported operand type(s) for ") + symbol(op) + ": '" + a.type_name() +
       "' and '" + b.type_name() + "'");
}

Big big_of(const Value& v) {
  return v.is(Kind::kBigInt) ? v.as_big_int().v : Big(v.as_int());
}

/// Of an integer.
bool is_exact_double(const Value& v) {
  return !v.is(Kind::kBigInt) && v.as_int() >= -(int64_t{1} << 53) &&
         v.as_int() <= int64_t{1} << 53;
}

double floor_modulo(double a, double b) {
  double r = std::fmod(a, b);
  if (r != 0) {
    if ((r < 0) != (b < 0)) r += b;
  } else {
    r = std::copysign(0.0, b);
  }
  return r;
}

Value float_arithmetic(ArithmeticOp op, double a, double b) {
  switch (op) {
    case ArithmeticOp::kAdd:
      return Value::number(a + b);
    case ArithmeticOp::kSubtract:
      return Value::number(a - b);
    case ArithmeticOp::kMultiply:
      return Value::number(a * b);
    case ArithmeticOp::kDivide:
      if (b == 0) fail("float division by zero");
      return Value::number(a / b);
    case ArithmeticOp::kFloorDivide: {
      if (b == 0) fail("float floor division by zero");
      const double quotient = (a - floor_modulo(a, b)) / b;
      double whole = std::floor(quotient);
      if (quotient - whole > 0.5) whole += 1;
      return Value::number(whole);
    }
    case ArithmeticOp::kModulo:
      if (b == 0) fail("float modulo");
      return Value::number(floor_modulo(a, b));
    case ArithmeticOp::kPower: {
      if (a == 0 && b < 0) fail("0.0 cannot be raised to a negative power");
      const double power = std::pow(a, b);
      if (std::isnan(power) && !std::isnan(a) && !std::isnan(b)) {
        fail_unsupported("complex numbers, from a root of a negative number, are not supported");
      }
      if (std::isinf(power) && !std::isinf(a) && !std::isinf(b))
        fail("the result of ** is too large");
      return Value::number(power);
    }
  }
  return {};
}

Value big_power(const Big& base, const Value& exponent) {
  if (!exponent.is(Kind::kInt) && !exponent.is(Kind::kBool)) fail("the result of ** is too large");
  const auto n = static_cast<uint64_t>(exponent.as_int());
  const bool is_small = base == 0 || base == 1 || base == -1;
  if (is_small)
    return Value::integer(BigInt{base == -1 && n % 2 == 0 ? Big(1) : n == 0 ? Big(1) : base});
  if (n > kMaxBigIntBits || n * (msb(abs(base)) + 1) > 2 * uint64_t{kMaxBigIntBits}) {
    fail("the result of ** is too large");
  }
  return Value::integer(BigInt{pow(base, static_cast<unsigned>(n))});
}

// Floors, as Python does: the remainder has the divisor's sign.
Value big_arithmetic(ArithmeticOp op, const Value& x, const Value& y) {
  const Big a = big_of(x);
  const Big b = big_of(y);
  switch (op) {
    case ArithmeticOp::kAdd:
      return Value::integer(BigInt{a + b});
    case ArithmeticOp::kSubtract:
      return Value::integer(BigInt{a - b});
    case ArithmeticOp::kMultiply:
      return Value::integer(BigInt{a * b});
    case ArithmeticOp::kPower:
      return big_power(a, y);
    default:
      break;
  }
  if (b == 0) fail("integer division or modulo by zero");
  Big quotient = a / b;
  Big remainder = a % b;
  if (remainder != 0 && (remainder < 0) != (b < 0)) {
    quotient -= 1;
    remainder += b;
  }
  return Value::integer(BigInt{op == ArithmeticOp::kModulo ? remainder : quotient});
}

Value int_arithmetic(ArithmeticOp op, const Value& x, const Value& y) {
  if (x.is(Kind::kBigInt) || y.is(Kind::kBigInt)) return big_arithmetic(op, x, y);
  const int64_t a = x.as_int();
  const int64_t b = y.as_int();
  int64_t result = 0;
  bool overflows = false;
  switch (op) {
    case ArithmeticOp::kAdd:
      overflows = __builtin_add_overflow(a, b, &result);
      break;
    case ArithmeticOp::kSubtract:
      overflows = __builtin_sub_overflow(a, b, &result);
      break;
    case ArithmeticOp::kMultiply:
      overflows = __builtin_mul_overflow(a, b, &result);
      break;
    case ArithmeticOp::kFloorDivide:
    case ArithmeticOp::kModulo:
      if (b == 0) fail("integer division or modulo by zero");
      if (b == -1) return big_arithmetic(op, x, y);  // INT64_MIN // -1
      result = op == ArithmeticOp::kModulo ? a % b : a / b;
      if (a % b != 0 && (a < 0) != (b < 0)) result += op == ArithmeticOp::kModulo ? b : -1;
      break;
    default:
      return big_arithmetic(op, x, y);
  }
  return overflows ? big_arithmetic(op, x, y) : Value::integer(result);
}

Value number_arithmetic(ArithmeticOp op, const Value& a, const Value& b) {
  const bool is_inexact = a.is(Kind::kFloat) || b.is(Kind::kFloat);
  if (!is_inexact && op != ArithmeticOp::kDivide) {
    const bool is_fraction = op == ArithmeticOp::kPower && compare_to_zero(b) < 0;
    if (!is_fraction) return int_arithmetic(op, a, b);
  }
  if (!is_inexact && op == ArithmeticOp::kDivide) {
    if (!b.truth()) fail("division by zero");
    if (!is_exact_double(a) || !is_exact_double(b)) {
      const double d = nearest_quotient(big_of(a), big_of(b));
      if (std::isinf(d)) fail("integer division result too large for a float");
      return Value::number(d);
    }
  }
  return float_arithmetic(op, real_of(a), real_of(b));
}

Value joined_strings(const Value& a, const Value& b, Budget& budget) {
  TextBuilder out(budget);
  if (a.is_safe() == b.is_safe()) {
    out.append(a.text());
    out.append(b.text());
  } else {
    out.append(a.is_safe() ? a.text() : escape_html(a.text(), budget));
    out.append(b.is_safe() ? b.text() : escape_html(b.text(), budget));
  }
  const bool is_safe = a.is_safe() || b.is_safe();
  return is_safe ? Value::safe_string(out.take()) : Value::string(out.take());
}

Value joined_sequences(const Value& a, const Value& b, Budget& budget) {
  budget.charge_items(a.items().size() + b.items().size());
  std::vector<Value> items = a.items();
  items.insert(items.end(), b.items().begin(), b.items().end());
  return a.is(Kind::kList) ? Value::list(std::move(items), budget)
                           : Value::tuple(std::move(items), budget);
}

// What cannot be repeated is left undefined.
Value repeated(const Value& v, const Value& times, Budget& budget) {
  if (times.is(Kind::kBigInt)) fail("cannot fit the number of repetitions into 64 bits");
  const auto n = static_cast<size_t>(std::max<int64_t>(times.as_int(), 0));
  if (v.is_string()) {
    TextBuilder out(budget);
    out.repeat(v.text(), v.text().empty() ? 0 : n);
    return v.is_safe() ? Value::safe_string(out.take()) : Value::string(out.take());
  }
  const std::vector<Value>& one = v.items();
  const bool overflows = !one.empty() && n > SIZE_MAX / one.size();
  budget.charge_items(overflows ? SIZE_MAX : one.size() * n);
  std::vector<Value> items;
  for (size_t i = 0; i < n && !one.empty(); ++i) items.insert(items.end(), one.begin(), one.end());
  return v.is(Kind::kList) ? Value::list(std::move(items), budget)
                           : Value::tuple(std::move(items), budget);
}

bool is_whole(const Value& v) {
  return v.is_integer() || v.is(Kind::kBool);
}

}  // namespace

double real_of(const Value& number) {
  if (number.is(Kind::kFloat)) return number.as_float();
  if (!number.is(Kind::kBigInt)) return static_cast<double>(number.as_int());
  const double d = nearest_double(number.as_big_int().v);
  if (std::isinf(d)) fail("int too large to convert to float");
  return d;
}

int compare_to_zero(const Value& v) {
  if (v.is(Kind::kFloat)) return v.as_float() < 0 ? -1 : v.as_float() > 0 ? 1 : 0;
  if (v.is(Kind::kBigInt)) return v.as_big_int().v < 0 ? -1 : 1;
  return v.as_int() < 0 ? -1 : v.as_int() > 0 ? 1 : 0;
}

Value arithmetic(ArithmeticOp op, const Value& a, const Value& b, Budget& budget) {
  if (a.is_undefined()) fail(a.reason());
  if (op == ArithmeticOp::kModulo && a.is_string()) return printf_format(a, b, budget);
  if (b.is_undefined()) fail(b.reason());
  if (a.is_number() && b.is_number()) return number_arithmetic(op, a, b);
  if (op == ArithmeticOp::kAdd) {
    if (a.is_string() && b.is_string()) return joined_strings(a, b, budget);
    if (a.is_sequence() && a.kind() == b.kind()) return joined_sequences(a, b, budget);
  }
  if (op == ArithmeticOp::kMultiply) {
    if ((a.is_string() || a.is_sequence()) && is_whole(b)) return repeated(a, b, budget);
    if ((b.is_string() || b.is_sequence()) && is_whole(a)) return repeated(b, a, budget);
  }
  fail_operands(op, a, b);
}

Value negative(const Value& v) {
  if (v.is_undefined()) fail(v.reason());
  if (v.is(Kind::kFloat)) return Value::number(-v.as_float());
  if (v.is(Kind::kBool) ||
      (v.is(Kind::kInt) && v.as_int() != std::numeric_limits<int64_t>::min())) {
    return Value::integer(-v.as_int());
  }
  if (v.is_integer()) return Value::integer(BigInt{-big_of(v)});
  fail(std::string("bad operand type for unary -: '") + v.type_name() + "'");
}

Value positive(const Value& v) {
  if (v.is_undefined()) fail(v.reason());
  if (v.is(Kind::kBool)) return Value::integer(v.as_int());
  if (v.is_number()) return v;
  fail(std::string("bad operand type for unary +: '") + v.type_name() + "'");
}

Value absolute(const Value& v) {
  if (v.is_undefined()) fail(v.reason());
  if (!v.is_number()) fail(std::string("bad operand type for abs(): '") + v.type_name() + "'");
  if (v.is(Kind::kFloat)) return Value::number(std::abs(v.as_float()));
  return compare_to_zero(v) < 0 ? negative(v) : positive(v);
}

bool contains(const Value& container, const Value& item, Budget& budget) {
  switch (container.kind()) {
    case Kind::kUndefined:
      return false;
    case Kind::kString:
      if (!item.is_string()) {
        fail(std::string("'in <string>' requires string as left operand, not ") + item.type_name());
      }
      return find_bytes(container.bytes(), item.bytes()) != std::string_view::npos;
    case Kind::kList:
    case Kind::kTuple:
      for (const Value& v : container.items()) {
        if (equal(v, item, budget)) return true;
      }
      return false;
    case Kind::kDict:
      return container.as_dict().find(item, budget) != nullptr;
    case Kind::kDictView:
    case Kind::kRange:
    case Kind::kLazy:
      for (const Value& v : iterate(container, budget)) {
        if (equal(v, item, budget)) return true;
      }
      return false;
    default:
      fail(std::string("argument of type '") + container.type_name() + "' is not iterable");
  }
}

bool compare(CompareOp op, const Value& a, const Value& b, Budget& budget) {
  switch (op) {
    case CompareOp::kEqual:
      return equal(a, b, budget);
    case CompareOp::kNotEqual:
      return !equal(a, b, budget);
    case CompareOp::kLess:
      return less(a, b, budget);
    case CompareOp::kGreater:
      return less(b, a, budget);
    case CompareOp::kLessEqual:
      return less(a, b, budget) || equal(a, b, budget);
    case CompareOp::kGreaterEqual:
      return less(b, a, budget) || equal(a, b, budget);
    case CompareOp::kIn:
      return contains(b, a, budget);
    case CompareOp::kNotIn:
      return !contains(b, a, budget);
  }
  return false;
}

SourcedText escape_html(const SourcedText& text, Budget& budget) {
  TextBuilder out(budget);
  const std::string& s = text.bytes();
  size_t run = 0;
  for (size_t i = s.find_first_of("&<>\"'"); i != s.npos; i = s.find_first_of("&<>\"'", i + 1)) {
    out.append_slice(text, run, i);
    run = i + 1;
    const char c = s[i];
    out.append(c == '&'   ? "&amp;"
               : c == '<' ? "&lt;"
               : c == '>' ? "&gt;"
               : c == '"' ? "&#34;"
                          : "&#39;",
               text.source_at(i));
  }
  out.append_slice(text, run, s.size());
  return out.take();
}

}  // namespace dovetail::core::jinja
