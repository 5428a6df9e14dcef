// Filters that give text. Each takes str() of its subject first, so `none|upper` is "NONE".
#include <algorithm>

#include "core/text/template/builtins.hpp"
#include "core/text/template/format.hpp"
#include "core/text/template/interpreter.hpp"
#include "core/text/template/operators.hpp"
#include "core/text/template/print.hpp"
#include "core/text/template/string_ops.hpp"
#include "core/text/template/unicode.hpp"

namespace dovetail::core::jinja {
namespace {

SourcedText subject_text(Interpreter& in, const Value& subject) {
  return to_string(subject, in.budget()).text();
}

// The subject of a filter that takes nothing but strings.
const SourcedText& own_text(const char* filter, const Value& v) {
  if (v.is_undefined()) fail(v.reason());
  if (!v.is_string()) {
    fail(std::string(filter) + ": got " + v.type_name() + ", expected str");
  }
  return v.text();
}

// Safe if the subject was.
Value like(const Value& subject, SourcedText text) {
  return subject.is_safe() ? Value::safe_string(std::move(text)) : Value::string(std::move(text));
}

Value filter_upper(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("upper", args, {});
  return like(v, upper(subject_text(in, v), in.budget()));
}

Value filter_lower(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("lower", args, {});
  return like(v, lower(subject_text(in, v), in.budget()));
}

Value filter_capitalize(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("capitalize", args, {});
  return like(v, capitalize(subject_text(in, v), in.budget()));
}

bool starts_word_after(char32_t c) {
  return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
}

// Unlike str.title, only white space and opening brackets begin a word: "it's" becomes "It's".
Value filter_title(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("title", args, {});
  const SourcedText text = subject_text(in, v);
  const std::string_view s = text.bytes();
  TextBuilder out(in.budget());
  bool at_start = true;
  for (size_t pos = 0; pos < s.size();) {
    const size_t begin = pos;
    const char32_t c = next_char(s, pos);
    out.append(at_start ? upper_of(c) : lower_of(c, s, begin), text.source_at(begin));
    at_start = starts_word_after(c);
  }
  return Value::string(out.take());
}

Value filter_trim(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("trim", args, {"chars"});
  std::optional<std::string_view> chars;
  if (bound.has(0)) chars = bound.string(0, "");
  return like(v, strip(subject_text(in, v), chars, Side::kBoth));
}

Value filter_string(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("string", args, {});
  return to_string(v, in.budget());
}

Value filter_safe(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("safe", args, {});
  return Value::safe_string(subject_text(in, v));
}

Value filter_escape(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("escape", args, {});
  if (v.is_safe()) return v;
  return Value::safe_string(escape_html(subject_text(in, v), in.budget()));
}

Value filter_replace(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("replace", args, {"old", "new", "count"}, 2);
  const int64_t count = bound.has(2) ? bound.integer(2, -1) : -1;
  const SourcedText old = str_of(bound.at(0), in.budget());
  return Value::string(replace(subject_text(in, v), old.bytes(), str_of(bound.at(1), in.budget()),
                               count, in.budget()));
}

Value filter_indent(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("indent", args, {"width", "first", "blank"});
  TextBuilder indent(in.budget());
  if (bound.given(0) && bound.at(0).is_string()) {
    indent.append(bound.text(0));
  } else {
    const int64_t width = std::max<int64_t>(bound.integer(0, 4), 0);
    indent.repeat(SourcedText(" "), static_cast<size_t>(width));
  }
  const bool blank = bound.flag(2, false);
  SourcedText text = own_text("indent", v);
  text.append("\n", Source::kTemplate);  // so that a line break at the end begins an empty line
  TextBuilder out(in.budget());
  const std::vector<SourcedText> lines = split_lines(text, false, in.budget());
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out.append("\n");
    const bool is_indented = i == 0 ? bound.flag(1, false) : blank || !lines[i].empty();
    if (is_indented) out.append(indent.text());
    out.append(lines[i]);
  }
  return like(v, out.take());
}

Value filter_center(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("center", args, {"width"});
  return like(
      v, justify(subject_text(in, v), bound.integer(0, 80), SourcedText(" "), '^', in.budget()));
}

Value filter_format(Interpreter& in, const Value& v, const Args& args) {
  if (!args.positional.empty() && !args.named.empty()) {
    fail("format takes positional or keyword arguments, not both");
  }
  const Value format = to_string(v, in.budget());
  if (args.named.empty()) {
    return printf_format(format, Value::tuple(args.positional, in.budget()), in.budget());
  }
  std::vector<std::pair<Value, Value>> entries;
  for (const auto& [name, value] : args.named) entries.emplace_back(Value::string(name), value);
  return printf_format(format, Value::dict(std::move(entries), in.budget()), in.budget());
}

bool is_word_char(char32_t c) {
  return is_alnum(c) || c == '_';
}

Value filter_wordcount(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("wordcount", args, {});
  const SourcedText text = subject_text(in, v);
  int64_t n = 0;
  bool in_word = false;
  for (size_t pos = 0; pos < text.size();) {
    const bool is_word = is_word_char(next_char(text.bytes(), pos));
    if (is_word && !in_word) ++n;
    in_word = is_word;
  }
  return Value::integer(n);
}

Value filter_truncate(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("truncate", args, {"length", "killwords", "end", "leeway"});
  const int64_t limit = bound.integer(0, 255);
  const int64_t leeway = bound.has(3) ? bound.integer(3, 5) : 5;
  const SourcedText end = bound.given(2) ? bound.text(2) : SourcedText("...");
  const auto n_end = static_cast<int64_t>(count_chars(end.bytes()));
  if (limit < n_end) fail("truncate: expected length >= " + std::to_string(n_end));
  if (leeway < 0) fail("truncate: expected leeway >= 0");
  if (length(v) <= limit + std::min(leeway, INT64_MAX - limit)) return v;
  const SourcedText& text = own_text("truncate", v);
  size_t cut = byte_offset(text.bytes(), static_cast<size_t>(limit - n_end));
  if (!bound.flag(1, false)) {
    const size_t blank = text.bytes().rfind(' ', cut == 0 ? 0 : cut - 1);
    if (cut > 0 && blank != std::string::npos) cut = blank;
  }
  TextBuilder out(in.budget());
  out.append_slice(text, 0, cut);
  out.append(end);
  return like(v, out.take());
}

// Words of one paragraph, broken at blanks, and inside words longer than a line if asked to.
class LineWrapper {
 public:
  LineWrapper(size_t width, bool break_long, Budget& budget)
      : width_(width), break_long_(break_long), budget_(budget) {}

  std::vector<SourcedText> wrap(const SourcedText& paragraph) {
    for (SourcedText& word : split_at(paragraph, " ", -1, budget_)) add(std::move(word));
    flush();
    return std::move(lines_);
  }

 private:
  void add(SourcedText word) {
    size_t n = count_chars(word.bytes());
    if (has_line_ && n_line_ + 1 + n > width_) flush();
    while (break_long_ && n > width_) {
      const size_t cut = byte_offset(word.bytes(), width_);
      lines_.push_back(word.slice(0, cut));
      word = word.slice(cut, word.size());
      n -= width_;
    }
    if (has_line_) line_.append(" ", Source::kTemplate);
    n_line_ += n + (has_line_ ? 1 : 0);
    line_.append(word);
    has_line_ = true;
  }

  void flush() {
    if (has_line_) lines_.push_back(strip(line_, " ", Side::kRight));
    line_ = SourcedText();
    n_line_ = 0;
    has_line_ = false;
  }

  size_t width_;
  bool break_long_;
  Budget& budget_;
  std::vector<SourcedText> lines_;
  SourcedText line_;
  size_t n_line_ = 0;
  bool has_line_ = false;
};

Value filter_wordwrap(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("wordwrap", args,
                    {"width", "break_long_words", "wrapstring", "break_on_hyphens"});
  const int64_t width = bound.integer(0, 79);
  if (width <= 0) fail("wordwrap: width is " + std::to_string(width) + ", expected more than 0");
  const SourcedText& text = own_text("wordwrap", v);
  if (bound.flag(3, true) && text.bytes().find('-') != std::string::npos) {
    fail_unsupported("wordwrap of text with hyphens is not supported, pass break_on_hyphens=false");
  }
  if (text.bytes().find_first_of("\t\v\f") != std::string::npos) {
    fail_unsupported("wordwrap of text with tabs is not supported");
  }
  const SourcedText wrap = bound.has(2) ? bound.text(2) : SourcedText("\n");
  std::vector<SourcedText> lines;
  for (const SourcedText& line : split_lines(text, false, in.budget())) {
    LineWrapper wrapper(static_cast<size_t>(width), bound.flag(1, true), in.budget());
    lines.push_back(join(wrapper.wrap(line), wrap, in.budget()));
  }
  return like(v, join(lines, wrap, in.budget()));
}

SourcedText url_quoted(const SourcedText& text, bool for_query, Budget& budget) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  const std::string_view plain = for_query ? "_.-~" : "_.-~/";
  TextBuilder out(budget);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text.bytes()[i]);
    const char escape[] = {'%', kHex[c >> 4], kHex[c & 15]};
    const bool stays = c < 0x80 && (is_alnum(c) || plain.find(static_cast<char>(c)) != plain.npos);
    if (stays) {
      out.append_slice(text, i, i + 1);
    } else if (for_query && c == ' ') {
      out.append("+", text.source_at(i));
    } else {
      out.append(std::string_view(escape, 3), text.source_at(i));
    }
  }
  return out.take();
}

Value filter_urlencode(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("urlencode", args, {});
  Budget& budget = in.budget();
  if (v.is_string() || !is_iterable(v)) {
    return Value::string(url_quoted(subject_text(in, v), false, budget));
  }
  const Value pairs = v.is(Kind::kDict) ? Value::dict_view({v, DictView::Part::kItems}) : v;
  std::vector<SourcedText> parts;
  for (const Value& pair : iterate(pairs, budget)) {
    const std::vector<Value> both = iterate(pair, budget);
    if (both.size() != 2) fail("urlencode: expected pairs of key and value");
    TextBuilder part(budget);
    part.append(url_quoted(str_of(both[0], budget), true, budget));
    part.append("=");
    part.append(url_quoted(str_of(both[1], budget), true, budget));
    parts.push_back(part.take());
  }
  return Value::string(join(parts, SourcedText("&"), budget));
}

// Comments and tags go, runs of white space become one blank, entities their characters.
Value filter_striptags(Interpreter& in, const Value& v, const Args& args) {
  const Bound bound("striptags", args, {});
  const SourcedText text = subject_text(in, v);
  const std::string_view s = text.bytes();
  TextBuilder out(in.budget());
  for (size_t pos = 0; pos < s.size();) {
    const size_t open = std::min(find_bytes(s, "<", pos), s.size());
    out.append_slice(text, pos, open);
    if (open == s.size()) break;
    const bool is_comment = s.substr(open, 4) == "<!--";
    const std::string_view end = is_comment ? "-->" : ">";
    const size_t close = find_bytes(s, end, open);
    if (close == s.npos) {
      out.append_slice(text, open, s.size());
      break;
    }
    pos = close + end.size();
  }
  if (out.text().bytes().find('&') != std::string::npos) {
    fail_unsupported("striptags of text with '&' is not supported");
  }
  return Value::string(
      join(split_space(out.take(), -1, in.budget()), SourcedText(" "), in.budget()));
}

constexpr FilterEntry kFilters[] = {
    {"capitalize", filter_capitalize},
    {"center", filter_center},
    {"e", filter_escape},
    {"escape", filter_escape},
    {"format", filter_format},
    {"indent", filter_indent},
    {"lower", filter_lower},
    {"replace", filter_replace},
    {"safe", filter_safe},
    {"string", filter_string},
    {"striptags", filter_striptags},
    {"title", filter_title},
    {"trim", filter_trim},
    {"truncate", filter_truncate},
    {"upper", filter_upper},
    {"urlencode", filter_urlencode},
    {"wordcount", filter_wordcount},
    {"wordwrap", filter_wordwrap},
};

}  // namespace

std::span<const FilterEntry> text_filters() {
  return kFilters;
}

}  // namespace dovetail::core::jinja
