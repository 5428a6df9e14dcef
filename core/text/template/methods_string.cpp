// Methods of strings.
#include <algorithm>
#include <limits>

#include "core/text/template/builtins.hpp"
#include "core/text/template/format.hpp"
#include "core/text/template/interpreter.hpp"
#include "core/text/template/operators.hpp"
#include "core/text/template/print.hpp"
#include "core/text/template/string_ops.hpp"
#include "core/text/template/unicode.hpp"

namespace dovetail::core::jinja {
namespace {

// Safe if the string was.
Value like(const Value& self, SourcedText text) {
  return self.is_safe() ? Value::safe_string(std::move(text)) : Value::string(std::move(text));
}

Value list_of(const Value& self, std::vector<SourcedText> parts, Budget& budget) {
  std::vector<Value> items;
  items.reserve(parts.size());
  for (SourcedText& part : parts) items.push_back(like(self, std::move(part)));
  return Value::list(std::move(items), budget);
}

template <SourcedText (*kMap)(const SourcedText&, Budget&)>
Value mapped(Interpreter& in, const Value& self, const Args& args) {
  const Bound bound("this method", args, {});
  return like(self, kMap(self.text(), in.budget()));
}

template <Side kSide>
Value method_strip(Interpreter&, const Value& self, const Args& args) {
  const Bound bound("strip", args, {"chars"});
  std::optional<std::string_view> chars;
  if (bound.has(0)) chars = bound.string(0, "");
  return like(self, strip(self.text(), chars, kSide));
}

template <bool kFromRight>
Value method_split(Interpreter& in, const Value& self, const Args& args) {
  const Bound bound(kFromRight ? "rsplit" : "split", args, {"sep", "maxsplit"});
  const int64_t max = bound.integer(1, -1);
  Budget& budget = in.budget();
  if (!bound.has(0)) {
    return list_of(self,
                   kFromRight ? split_space_right(self.text(), max, budget)
                              : split_space(self.text(), max, budget),
                   budget);
  }
  const std::string_view separator = bound.string(0, "");
  if (separator.empty()) fail("empty separator");
  return list_of(self,
                 kFromRight ? split_at_right(self.text(), separator, max, budget)
                            : split_at(self.text(), separator, max, budget),
                 budget);
}

Value method_splitlines(Interpreter& in, const Value& self, const Args& args) {
  const Bound bound("splitlines", args, {"keepends"});
  return list_of(self, split_lines(self.text(), bound.flag(0, false), in.budget()), in.budget());
}

template <bool kFromRight>
Value method_partition(Interpreter& in, const Value& self, const Args& args) {
  const Bound bound(kFromRight ? "rpartition" : "partition", args, {"sep"}, 1);
  const SourcedText& text = self.text();
  const std::string_view separator = bound.string(0, "");
  if (separator.empty()) fail("empty separator");
  const size_t at = kFromRight ? find_last(text.bytes(), separator, in.budget())
                               : find_bytes(text.bytes(), separator);
  std::vector<Value> parts;
  if (at == std::string_view::npos) {
    parts = {like(self, text), like(self, {}), like(self, {})};
    if (kFromRight) std::swap(parts[0], parts[2]);
  } else {
    const size_t end = at + separator.size();
    parts = {like(self, text.slice(0, at)), like(self, text.slice(at, end)),
             like(self, text.slice(end, text.size()))};
  }
  return Value::tuple(std::move(parts), in.budget());
}

Value method_join(Interpreter& in, const Value& self, const Args& args) {
  const Bound bound("join", args, {"iterable"}, 1);
  if (bound.at(0).is_undefined()) fail(bound.at(0).reason());
  TextBuilder out(in.budget());
  const std::vector<Value> items = iterate(bound.at(0), in.budget());
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].is_string()) {
      fail("sequence item " + std::to_string(i) + ": expected str instance, " +
           items[i].type_name() + " found");
    }
    if (i > 0) out.append(self.text());
    const bool escapes = self.is_safe() && !items[i].is_safe();
    out.append(escapes ? escape_html(items[i].text(), in.budget()) : items[i].text());
  }
  return like(self, out.take());
}

Value method_replace(Interpreter& in, const Value& self, const Args& args) {
  const Bound bound("replace", args, {"old", "new", "count"}, 2);
  return like(self, replace(self.text(), bound.string(0, ""), bound.text(1), bound.integer(2, -1),
                            in.budget()));
}

// The part of the string that optional start and end arguments select, and its first character.
struct Part {
  SourcedText text;
  int64_t start;
};

Part part_of(Interpreter& in, const Value& self, const Bound& bound, size_t first) {
  const Value start = bound.value_or(first, Value::none());
  const Value end = bound.value_or(first + 1, Value::none());
  if (start.is_none() && end.is_none()) return {self.text(), 0};
  const int64_t n = length(self);
  int64_t at = start.is_none() ? 0 : bound.integer(first, 0);
  if (at < 0) at = std::max<int64_t>(at + n, 0);
  return {get_slice(self, start, end, Value::none(), in.budget()).text(), at};
}

template <bool kAtEnd>
Value method_startswith(Interpreter& in, const Value& self, const Args& args) {
  const Bound bound(kAtEnd ? "endswith" : "startswith", args, {"prefix", "start", "end"}, 1);
  const Part part = part_of(in, self, bound, 1);
  const std::string_view s = part.text.bytes();
  const auto matches = [&](std::string_view x) {
    return kAtEnd ? s.ends_with(x) : s.starts_with(x);
  };
  if (!bound.at(0).is(Kind::kTuple)) return Value::boolean(matches(bound.string(0, "")));
  for (const Value& choice : bound.at(0).items()) {
    if (!choice.is_string()) fail("a tuple of prefixes must hold strings");
    if (matches(choice.bytes())) return Value::boolean(true);
  }
  return Value::boolean(false);
}

template <bool kFromRight, bool kMustBeThere>
Value method_find(Interpreter& in, const Value& self, const Args& args) {
  const Bound bound("find", args, {"sub", "start", "end"}, 1);
  const Part part = part_of(in, self, bound, 1);
  const std::string_view s = part.text.bytes();
  const std::string_view what = bound.string(0, "");
  const size_t at = kFromRight ? find_last(s, what, in.budget()) : find_bytes(s, what);
  if (at == s.npos) {
    if (kMustBeThere) fail("substring not found");
    return Value::integer(int64_t{-1});
  }
  return Value::integer(part.start + static_cast<int64_t>(count_chars(s.substr(0, at))));
}

Value method_count(Interpreter& in, const Value& self, const Args& args) {
  const Bound bound("count", args, {"sub", "start", "end"}, 1);
  const Part part = part_of(in, self, bound, 1);
  return Value::integer(count_occurrences(part.text.bytes(), bound.string(0, "")));
}

template <bool (*kIs)(char32_t)>
Value all_chars(Interpreter&, const Value& self, const Args& args) {
  const Bound bound("this method", args, {});
  const std::string_view s = self.bytes();
  for (size_t pos = 0; pos < s.size();) {
    if (!kIs(next_char(s, pos))) return Value::boolean(false);
  }
  return Value::boolean(!s.empty());
}

Value method_isascii(Interpreter&, const Value& self, const Args& args) {
  const Bound bound("isascii", args, {});
  return Value::boolean(is_ascii(self.bytes()));
}

Value method_isupper(Interpreter&, const Value& self, const Args& args) {
  const Bound bound("isupper", args, {});
  return Value::boolean(has_upper_only(self.bytes()));
}

Value method_islower(Interpreter&, const Value& self, const Args& args) {
  const Bound bound("islower", args, {});
  return Value::boolean(has_lower_only(self.bytes()));
}

template <char kAlign>
Value method_justify(Interpreter& in, const Value& self, const Args& args) {
  const Bound bound("this method", args, {"width", "fillchar"}, 1);
  const SourcedText fill = bound.given(1) ? bound.text(1) : SourcedText(" ");
  if (count_chars(fill.bytes()) != 1) fail("the fill character must be exactly one character long");
  return like(self, justify(self.text(), bound.integer(0, 0), fill, kAlign, in.budget()));
}

Value method_zfill(Interpreter& in, const Value& self, const Args& args) {
  const Bound bound("zfill", args, {"width"}, 1);
  const SourcedText& text = self.text();
  const bool has_sign = text.bytes().starts_with('-') || text.bytes().starts_with('+');
  const size_t n_sign = has_sign ? 1 : 0;
  TextBuilder out(in.budget());
  out.append_slice(text, 0, n_sign);
  out.append(justify(text.slice(n_sign, text.size()),
                     bound.integer(0, 0) - static_cast<int64_t>(n_sign), SourcedText("0"), '>',
                     in.budget()));
  return like(self, out.take());
}

Value method_removeprefix(Interpreter&, const Value& self, const Args& args) {
  const Bound bound("removeprefix", args, {"prefix"}, 1);
  const SourcedText& text = self.text();
  const std::string_view prefix = bound.string(0, "");
  const size_t n = text.bytes().starts_with(prefix) ? prefix.size() : 0;
  return like(self, text.slice(n, text.size()));
}

Value method_removesuffix(Interpreter&, const Value& self, const Args& args) {
  const Bound bound("removesuffix", args, {"suffix"}, 1);
  const SourcedText& text = self.text();
  const std::string_view suffix = bound.string(0, "");
  const size_t n = text.bytes().ends_with(suffix) ? suffix.size() : 0;
  return like(self, text.slice(0, text.size() - n));
}

Value method_format(Interpreter& in, const Value& self, const Args& args) {
  return brace_format(self, args, in.budget());
}

// Bytes do not exist here: what prints like Python's b'...' is all a template could want of them.
Value method_encode(Interpreter& in, const Value& self, const Args& args) {
  const Bound bound("encode", args, {"encoding"});
  const std::string_view encoding = bound.string(0, "utf-8");
  if (encoding != "utf-8" && encoding != "utf8") fail_unsupported("encode() supports utf-8 only");
  if (!is_ascii(self.bytes())) {
    fail_unsupported("encode() of text that is not ASCII is not supported");
  }
  TextBuilder out(in.budget());
  out.append("b");
  write_repr(Value::string(self.text()), out);
  return Value::string(out.take());
}

constexpr MethodEntry kMethods[] = {
    {"capitalize", mapped<capitalize>},
    {"casefold", mapped<fold_case>},
    {"center", method_justify<'^'>},
    {"count", method_count},
    {"encode", method_encode},
    {"endswith", method_startswith<true>},
    {"find", method_find<false, false>},
    {"format", method_format},
    {"index", method_find<false, true>},
    {"isalnum", all_chars<is_alnum>},
    {"isalpha", all_chars<is_alpha>},
    {"isascii", method_isascii},
    {"isdecimal", all_chars<is_digit>},
    {"isdigit", all_chars<is_digit>},
    {"islower", method_islower},
    {"isspace", all_chars<is_space>},
    {"isupper", method_isupper},
    {"join", method_join},
    {"ljust", method_justify<'<'>},
    {"lower", mapped<lower>},
    {"lstrip", method_strip<Side::kLeft>},
    {"partition", method_partition<false>},
    {"removeprefix", method_removeprefix},
    {"removesuffix", method_removesuffix},
    {"replace", method_replace},
    {"rfind", method_find<true, false>},
    {"rindex", method_find<true, true>},
    {"rjust", method_justify<'>'>},
    {"rpartition", method_partition<true>},
    {"rsplit", method_split<true>},
    {"rstrip", method_strip<Side::kRight>},
    {"split", method_split<false>},
    {"splitlines", method_splitlines},
    {"startswith", method_startswith<false>},
    {"strip", method_strip<Side::kBoth>},
    {"swapcase", mapped<swap_case>},
    {"title", mapped<title>},
    {"upper", mapped<upper>},
    {"zfill", method_zfill},
};

}  // namespace

std::span<const MethodEntry> string_methods() {
  return kMethods;
}

}  // namespace dovetail::core::jinja
