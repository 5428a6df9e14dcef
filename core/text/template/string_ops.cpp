#include "core/text/template/string_ops.hpp"

#include <algorithm>

#include "core/text/template/unicode.hpp"

namespace dovetail::core::jinja {
namespace {

constexpr size_t kNpos = std::string_view::npos;

// One call of `piece_of(c, pos)` per code point gives what stands for it, from the same source.
template <class PieceOf>
SourcedText map_chars(const SourcedText& text, Budget& budget, PieceOf piece_of) {
  TextBuilder out(budget);
  const std::string_view s = text.bytes();
  for (size_t pos = 0; pos < s.size();) {
    const size_t begin = pos;
    const char32_t c = next_char(s, pos);
    out.append(piece_of(c, begin), text.source_at(begin));
  }
  return out.take();
}

// Where the last code point of s[0, end) begins; end > 0.
size_t char_before(std::string_view s, size_t end) {
  do {
    --end;
  } while (end > 0 && (static_cast<unsigned char>(s[end]) & 0xC0) == 0x80);
  return end;
}

bool is_space_at(std::string_view s, size_t pos) {
  return is_space(next_char(s, pos));
}

void add_part(std::vector<SourcedText>& parts, const SourcedText& text, size_t begin, size_t end,
              Budget& budget) {
  budget.step();
  budget.charge(end - begin + sizeof(SourcedText) + sizeof(Value));
  parts.push_back(text.slice(begin, end));
}

size_t skip_space(std::string_view s, size_t pos) {
  while (pos < s.size()) {
    size_t next = pos;
    if (!is_space(next_char(s, next))) break;
    pos = next;
  }
  return pos;
}

size_t skip_space_left(std::string_view s, size_t end) {
  while (end > 0) {
    const size_t begin = char_before(s, end);
    if (!is_space_at(s, begin)) break;
    end = begin;
  }
  return end;
}

}  // namespace

SourcedText strip(const SourcedText& text, std::optional<std::string_view> chars, Side side) {
  const std::string_view s = text.bytes();
  const auto goes = [&](size_t begin, size_t end) {
    if (!chars) return is_space_at(s, begin);
    return find_bytes(*chars, s.substr(begin, end - begin)) != kNpos;
  };
  size_t begin = 0;
  size_t end = s.size();
  while (side != Side::kRight && begin < end) {
    size_t next = begin;
    next_char(s, next);
    if (!goes(begin, next)) break;
    begin = next;
  }
  while (side != Side::kLeft && end > begin) {
    const size_t last = char_before(s, end);
    if (!goes(last, end)) break;
    end = last;
  }
  return text.slice(begin, end);
}

std::vector<SourcedText> split_space(const SourcedText& text, int64_t max_splits, Budget& budget) {
  const std::string_view s = text.bytes();
  std::vector<SourcedText> parts;
  for (size_t pos = skip_space(s, 0); pos < s.size();) {
    size_t end = pos;
    if (max_splits >= 0 && static_cast<int64_t>(parts.size()) >= max_splits) {
      end = skip_space_left(s, s.size());
    } else {
      while (end < s.size() && !is_space_at(s, end)) next_char(s, end);
    }
    add_part(parts, text, pos, end, budget);
    pos = skip_space(s, end);
  }
  return parts;
}

std::vector<SourcedText> split_space_right(const SourcedText& text, int64_t max_splits,
                                           Budget& budget) {
  const std::string_view s = text.bytes();
  std::vector<SourcedText> parts;
  for (size_t end = skip_space_left(s, s.size()); end > 0;) {
    size_t begin = end;
    if (max_splits >= 0 && static_cast<int64_t>(parts.size()) >= max_splits) {
      begin = skip_space(s, 0);
    } else {
      while (begin > 0 && !is_space_at(s, char_before(s, begin))) begin = char_before(s, begin);
    }
    add_part(parts, text, begin, end, budget);
    end = skip_space_left(s, begin);
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<SourcedText> split_at(const SourcedText& text, std::string_view separator,
                                  int64_t max_splits, Budget& budget) {
  std::vector<SourcedText> parts;
  size_t begin = 0;
  while (max_splits < 0 || static_cast<int64_t>(parts.size()) < max_splits) {
    const size_t at = find_bytes(text.bytes(), separator, begin);
    if (at == kNpos) break;
    add_part(parts, text, begin, at, budget);
    begin = at + separator.size();
  }
  add_part(parts, text, begin, text.size(), budget);
  return parts;
}

std::vector<SourcedText> split_at_right(const SourcedText& text, std::string_view separator,
                                        int64_t max_splits, Budget& budget) {
  std::vector<SourcedText> parts;
  size_t end = text.size();
  while (max_splits < 0 || static_cast<int64_t>(parts.size()) < max_splits) {
    const size_t at = find_last(std::string_view(text.bytes()).substr(0, end), separator, budget);
    if (at == kNpos) break;
    add_part(parts, text, at + separator.size(), end, budget);
    end = at;
  }
  add_part(parts, text, 0, end, budget);
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<SourcedText> split_lines(const SourcedText& text, bool keep_ends, Budget& budget) {
  const std::string_view s = text.bytes();
  std::vector<SourcedText> lines;
  size_t begin = 0;
  for (size_t pos = 0; pos < s.size();) {
    const size_t end = pos;
    const char32_t c = next_char(s, pos);
    if (!is_line_break(c)) continue;
    if (c == '\r' && pos < s.size() && s[pos] == '\n') ++pos;
    add_part(lines, text, begin, keep_ends ? pos : end, budget);
    begin = pos;
  }
  if (begin < s.size()) add_part(lines, text, begin, s.size(), budget);
  return lines;
}

SourcedText replace(const SourcedText& text, std::string_view old, const SourcedText& with,
                    int64_t count, Budget& budget) {
  TextBuilder out(budget);
  const std::string_view s = text.bytes();
  size_t begin = 0;
  for (int64_t n = 0; count < 0 || n < count; ++n) {
    size_t at = begin;
    if (!old.empty()) {
      at = find_bytes(s, old, begin);
      if (at == kNpos) break;
    } else if (n > 0) {  // an empty text stands before every character and at the end
      if (begin >= s.size()) break;
      next_char(s, at);
    }
    budget.step();
    out.append_slice(text, begin, at);
    out.append(with);
    begin = at + old.size();
  }
  out.append_slice(text, begin, s.size());
  return out.take();
}

SourcedText join(const std::vector<SourcedText>& parts, const SourcedText& separator,
                 Budget& budget) {
  TextBuilder out(budget);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out.append(separator);
    out.append(parts[i]);
  }
  return out.take();
}

SourcedText upper(const SourcedText& text, Budget& budget) {
  return map_chars(text, budget, [](char32_t c, size_t) { return upper_of(c); });
}

SourcedText lower(const SourcedText& text, Budget& budget) {
  const std::string_view s = text.bytes();
  return map_chars(text, budget, [s](char32_t c, size_t pos) { return lower_of(c, s, pos); });
}

SourcedText capitalize(const SourcedText& text, Budget& budget) {
  const std::string_view s = text.bytes();
  return map_chars(text, budget, [s](char32_t c, size_t pos) {
    return pos == 0 ? title_of(c) : lower_of(c, s, pos);
  });
}

SourcedText title(const SourcedText& text, Budget& budget) {
  const std::string_view s = text.bytes();
  bool after_letter = false;
  return map_chars(text, budget, [s, &after_letter](char32_t c, size_t pos) {
    std::string piece = after_letter ? lower_of(c, s, pos) : title_of(c);
    after_letter = is_cased(c);
    return piece;
  });
}

SourcedText swap_case(const SourcedText& text, Budget& budget) {
  const std::string_view s = text.bytes();
  return map_chars(text, budget, [s](char32_t c, size_t pos) {
    if (is_upper(c)) return lower_of(c, s, pos);
    return is_lower(c) ? upper_of(c) : to_utf8(c);
  });
}

SourcedText fold_case(const SourcedText& text, Budget& budget) {
  return map_chars(text, budget, [](char32_t c, size_t) { return folded(c); });
}

SourcedText reversed(const SourcedText& text, Budget& budget) {
  TextBuilder out(budget);
  for (size_t end = text.size(); end > 0;) {
    const size_t begin = char_before(text.bytes(), end);
    out.append_slice(text, begin, end);
    end = begin;
  }
  return out.take();
}

SourcedText justify(const SourcedText& text, int64_t width, const SourcedText& fill, char align,
                    Budget& budget) {
  const auto n = static_cast<int64_t>(count_chars(text.bytes()));
  if (width <= n) return text;
  const auto n_fill = static_cast<size_t>(width - n);
  size_t before = align == '>' ? n_fill : 0;
  // str.center puts an odd blank before an even-sized field, after an odd-sized one.
  if (align == '^') before = n_fill / 2 + (n_fill & static_cast<size_t>(width) & 1);
  TextBuilder out(budget);
  out.repeat(fill, before);
  out.append(text);
  out.repeat(fill, n_fill - before);
  return out.take();
}

size_t find_last(std::string_view s, std::string_view what, Budget& budget) {
  if (what.size() > s.size()) return kNpos;
  for (size_t at = s.size() - what.size() + 1; at-- > 0;) {
    if (s.compare(at, what.size(), what) == 0) return at;
    budget.step(1 + what.size() / 256);
  }
  return kNpos;
}

int64_t count_occurrences(std::string_view s, std::string_view what) {
  if (what.empty()) return static_cast<int64_t>(count_chars(s)) + 1;
  int64_t n = 0;
  for (size_t at = find_bytes(s, what); at != kNpos; at = find_bytes(s, what, at + what.size()))
    ++n;
  return n;
}

bool has_upper_only(std::string_view s) {
  bool any = false;
  for (size_t pos = 0; pos < s.size();) {
    const char32_t c = next_char(s, pos);
    if (is_lower(c) || is_title(c)) return false;
    any = any || is_upper(c);
  }
  return any;
}

bool has_lower_only(std::string_view s) {
  bool any = false;
  for (size_t pos = 0; pos < s.size();) {
    const char32_t c = next_char(s, pos);
    if (is_upper(c) || is_title(c)) return false;
    any = any || is_lower(c);
  }
  return any;
}

}  // namespace dovetail::core::jinja
