#include "regex_parser.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "error.hpp"
#include "utf8.hpp"

namespace dovetail::bpe {
namespace {

constexpr int kMaxDepth = 64;  // of nested groups and classes

bool is_ascii_letter(uint32_t c) {
  return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

const CodePointSet* find_property(std::string_view name) {
  static const std::vector<std::pair<std::string_view, CodePointSet>> kSets = [] {
    std::vector<std::pair<std::string_view, CodePointSet>> sets;
    for (size_t i = 0; i < kPropertiesLen; ++i) {
      sets.emplace_back(kProperties[i].name, CodePointSet(kProperties[i].ranges));
    }
    return sets;
  }();
  const auto it =
      std::find_if(kSets.begin(), kSets.end(), [&](auto& s) { return s.first == name; });
  return it == kSets.end() ? nullptr : &it->second;
}

class Parser {
 public:
  explicit Parser(std::string_view pattern) : text_(pattern) {
    if (const size_t ok = valid_utf8_prefix(pattern); ok != pattern.size()) {
      fail_format("pattern is not valid UTF-8 at byte " + std::to_string(ok));
    }
  }

  RegexProgram parse() {
    parse_alternatives(0);
    if (pos_ < text_.size()) refuse_format("unmatched )");
    return std::move(program_);
  }

 private:
  [[noreturn]] void refuse_format(const std::string& what) const {
    fail_format("pattern: " + what + " at byte " + std::to_string(pos_));
  }
  [[noreturn]] void refuse(const std::string& what) const {
    fail_unsupported("pattern: " + what + " at byte " + std::to_string(pos_) + " is not supported");
  }

  bool at_end() const { return pos_ == text_.size(); }
  bool looking_at(std::string_view s) const { return text_.substr(pos_, s.size()) == s; }
  bool take(std::string_view s) {
    if (!looking_at(s)) return false;
    pos_ += s.size();
    return true;
  }
  uint32_t take_char() {
    if (at_end()) refuse_format("unexpected end");
    const uint32_t c = decode_valid(reinterpret_cast<const uint8_t*>(text_.data()) + pos_);
    pos_ += utf8_len(static_cast<uint8_t>(text_[pos_]));
    return c;
  }

  void emit(std::string syntax) { program_.items.push_back({-1, std::move(syntax)}); }
  void emit(const CodePointSet& set) {
    auto& sets = program_.sets;
    const auto index = std::find(sets.begin(), sets.end(), set) - sets.begin();
    if (static_cast<size_t>(index) == sets.size()) sets.push_back(set);
    program_.items.push_back({static_cast<int>(index), ""});
  }
  void wrap(size_t first_item) {
    program_.items.insert(program_.items.begin() + static_cast<ptrdiff_t>(first_item), {-1, "(?:"});
    emit(")");
  }

  // Everything up to the end or an unmatched ")".
  void parse_alternatives(int depth) {
    if (depth > kMaxDepth) refuse("nesting this deep");
    last_folded_ = 0;
    while (!at_end() && !looking_at(")")) {
      if (take("|")) {
        emit("|");
        last_folded_ = 0;
        continue;
      }
      const size_t first_item = program_.items.size();
      parse_atom(depth);
      parse_quantifiers(first_item);
    }
    last_folded_ = 0;
  }

  void parse_atom(int depth) {
    const CodePointSet newline = CodePointSet::of('\n');
    before_ = std::exchange(last_folded_, 0);
    if (take("(")) return parse_group(depth);
    if (looking_at("[")) return emit(fold_class(parse_class(depth)));
    if (take(".")) return emit(newline.complement());
    if (take("^")) {  // after every LF but one that ends the text
      emit("(?:\\A|(?<=");
      emit(newline);
      return emit(")(?!\\z))");
    }
    if (take("$")) {
      emit("(?=");
      emit(newline);
      return emit("|\\z)");
    }
    if (looking_at("*") || looking_at("+") || looking_at("?")) refuse_format("nothing to repeat");
    if (looking_at("\\")) return parse_escape_atom();
    emit_literal(take_char());
  }

  void parse_group(int depth) {
    const bool outer_fold = fold_case_;
    std::string open = "(?:";
    if (take("?")) {
      if (take("i:")) {
        fold_case_ = true;
      } else if (take("-i:")) {
        fold_case_ = false;
      } else if (take("=")) {
        open = "(?=";
      } else if (take("!")) {
        open = "(?!";
      } else if (take("<=")) {
        open = "(?<=";
      } else if (take("<!")) {
        open = "(?<!";
      } else if (take(">")) {
        open = "(?>";
      } else if (!take(":")) {
        refuse("this kind of group (?" + std::string(text_.substr(pos_, 1)));
      }
    }
    emit(open);
    parse_alternatives(depth + 1);
    if (!take(")")) refuse_format("missing )");
    emit(")");
    fold_case_ = outer_fold;
  }

  void parse_quantifiers(size_t first_item) {
    for (bool quantified = false;; quantified = true) {
      std::string syntax;
      if (looking_at("*") || looking_at("+") || looking_at("?")) {
        syntax = text_.substr(pos_++, 1);
        if (looking_at("?") || looking_at("+")) syntax += text_[pos_++];  // lazy, possessive
      } else if (const std::optional<std::string> interval = take_interval()) {
        // {m,n}? is lazy, but {n}? is an optional {n} and {m,n}+ repeats {m,n}: both are left to
        // the next turn, which wraps.
        syntax = *interval;
        if (syntax.find(',') != std::string::npos && take("?")) syntax += "?";
      } else {
        return;
      }
      last_folded_ = 0;
      if (quantified) wrap(first_item);
      emit(syntax);
    }
  }

  // "{n}", "{n,}", "{,m}" or "{n,m}"; anything else that starts with "{" is literal text.
  std::optional<std::string> take_interval() {
    if (!looking_at("{")) return std::nullopt;
    const size_t close = text_.find('}', pos_);
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view body = text_.substr(pos_ + 1, close - pos_ - 1);
    const size_t comma = body.find(',');
    const std::string_view low = body.substr(0, comma);
    const std::string_view high = comma == std::string_view::npos ? "" : body.substr(comma + 1);
    const auto digits = [](std::string_view s) {
      return std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
    };
    if (!digits(low) || !digits(high) || (low.empty() && high.empty())) return std::nullopt;
    if (low.size() > 4 || high.size() > 4) refuse("a repeat count over 9999");
    pos_ = close + 1;
    std::string out = "{" + (low.empty() ? "0" : std::string(low));
    if (comma != std::string_view::npos) out += "," + std::string(high);
    return out + "}";
  }

  void parse_escape_atom() {
    const CodePointSet& word = *find_property("word");
    const size_t start = pos_++;
    if (take("A")) return emit("\\A");
    if (take("z")) return emit("\\z");
    if (take("Z")) {
      emit("(?=");
      emit(CodePointSet::of('\n'));
      return emit("?\\z)");
    }
    if (looking_at("b") || looking_at("B")) {
      const bool boundary = text_[pos_++] == 'b';
      emit("(?:(?<=");
      emit(word);
      emit(boundary ? ")(?!" : ")(?=");
      emit(word);
      emit(")|(?<!");
      emit(word);
      emit(boundary ? ")(?=" : ")(?!");
      emit(word);
      return emit("))");
    }
    pos_ = start;
    const Escape escape = parse_escape();
    if (escape.set) return emit(fold_class(*escape.set));
    emit_literal(escape.literal);
  }

  struct Escape {
    std::optional<CodePointSet> set;
    uint32_t literal = 0;
  };

  // A backslash and what follows, as it stands both in and outside of classes.
  Escape parse_escape() {
    ++pos_;
    const size_t at = pos_;
    const uint32_t c = take_char();
    const auto property = [&](std::string_view name, bool negated) -> Escape {
      const CodePointSet* set = find_property(name);
      return {negated ? set->complement() : *set, 0};
    };
    switch (c) {
      case 's':
      case 'S':
        return property("space", c == 'S');
      case 'd':
      case 'D':
        return property("digit", c == 'D');
      case 'w':
      case 'W':
        return property("word", c == 'W');
      case 'h':
      case 'H': {
        CodePointSet hex = CodePointSet::range('0', '9');
        hex.add(CodePointSet::range('A', 'F'));
        hex.add(CodePointSet::range('a', 'f'));
        return {c == 'H' ? hex.complement() : hex, 0};
      }
      case 'p':
      case 'P':
        return {parse_property(c == 'P'), 0};
      case 't':
        return {std::nullopt, '\t'};
      case 'n':
        return {std::nullopt, '\n'};
      case 'v':
        return {std::nullopt, '\v'};
      case 'f':
        return {std::nullopt, '\f'};
      case 'r':
        return {std::nullopt, '\r'};
      case 'a':
        return {std::nullopt, '\a'};
      case 'e':
        return {std::nullopt, 0x1B};
      case 'x':
        return {std::nullopt, take("{") ? parse_hex(1, 8, true) : parse_hex(1, 2, false)};
      case 'u':
        return {std::nullopt, parse_hex(4, 4, false)};
      default:
        break;
    }
    if (c < 0x80 && (is_ascii_letter(c) || (c >= '0' && c <= '9'))) {
      pos_ = at;
      refuse("the escape \\" + std::string(1, static_cast<char>(c)));
    }
    return {std::nullopt, c};
  }

  uint32_t parse_hex(size_t min_len, size_t max_len, bool braced) {
    uint32_t value = 0;
    size_t n = 0;
    for (; n < max_len && !at_end(); ++n, ++pos_) {
      const char c = text_[pos_];
      const char lower = static_cast<char>(c | 0x20);
      if (c >= '0' && c <= '9') {
        value = value << 4 | static_cast<uint32_t>(c - '0');
      } else if (lower >= 'a' && lower <= 'f') {
        value = value << 4 | static_cast<uint32_t>(lower - 'a' + 10);
      } else {
        break;
      }
    }
    if (n < min_len || (braced && !take("}"))) refuse_format("bad hexadecimal escape");
    if (value >= kCodePointEnd) refuse_format("code point above U+10FFFF");
    return value;
  }

  CodePointSet parse_property(bool negated) {
    if (!take("{")) refuse_format("\\p without {");
    if (take("^")) negated = !negated;
    const size_t close = text_.find('}', pos_);
    if (close == std::string_view::npos) refuse_format("\\p{ without }");
    const std::string name(text_.substr(pos_, close - pos_));
    const CodePointSet* set = find_property(name);
    const bool lower_first = !name.empty() && name[0] >= 'a' && name[0] <= 'z';  // our own names
    if (set == nullptr || lower_first) {
      refuse("the property \\p{" + name + "} (supported: L N M P S Lu Ll Lt Lm Lo Nd Zs Cf Han)");
    }
    pos_ = close + 1;
    return negated ? set->complement() : *set;
  }

  // "[...]" with ranges, escapes, nested classes and &&.
  CodePointSet parse_class(int depth) {
    if (depth > kMaxDepth) refuse("nesting this deep");
    ++pos_;
    const bool negated = take("^");
    CodePointSet set;
    std::optional<CodePointSet> left;  // of &&
    for (bool first = true;; first = false) {
      if (at_end()) refuse_format("missing ]");
      if (!first && take("]")) break;
      if (looking_at("[:")) refuse("a POSIX bracket [:name:]");
      if (looking_at("[")) {
        set.add(parse_class(depth + 1));
      } else if (take("&&")) {
        left = left ? left->intersect(set) : set;
        set = CodePointSet();
      } else {
        parse_class_item(&set);
      }
    }
    if (left) set = left->intersect(set);
    return negated ? set.complement() : set;
  }

  void parse_class_item(CodePointSet* set) {
    const auto take_one = [this]() -> Escape {
      if (looking_at("\\b")) {
        pos_ += 2;
        return {std::nullopt, '\b'};
      }
      if (looking_at("\\")) return parse_escape();
      return {std::nullopt, take_char()};
    };
    const Escape low = take_one();
    if (low.set) return set->add(*low.set);
    const bool is_range = looking_at("-") && pos_ + 1 < text_.size() && text_[pos_ + 1] != ']';
    if (!is_range) return set->add(CodePointSet::of(low.literal));
    ++pos_;
    const Escape high = take_one();
    if (high.set) refuse("a class as the end of a range");
    if (high.literal < low.literal) refuse_format("range out of order");
    set->add(CodePointSet::range(low.literal, high.literal));
  }

  // ---- (?i:...): ASCII letters, and the two characters outside ASCII that fold to one of them.

  static CodePointSet both_cases(uint32_t c) {
    const uint32_t lower = c == 0x17F ? 's' : c == 0x212A ? 'k' : c | 0x20;
    CodePointSet set = CodePointSet::of(lower);
    set.add(CodePointSet::of(lower - 0x20));
    if (lower == 's') set.add(CodePointSet::of(0x17F));
    if (lower == 'k') set.add(CodePointSet::of(0x212A));
    return set;
  }

  void emit_literal(uint32_t c) {
    if (!fold_case_ || !(is_ascii_letter(c) || c >= 0x80)) return emit(CodePointSet::of(c));
    if (c >= 0x80 && c != 0x17F && c != 0x212A) {
      if (find_property("L")->contains(c)) refuse("a letter outside ASCII in (?i:...)");
      return emit(CodePointSet::of(c));
    }
    // Two letters that together also match one character (ss and the sharp s, ff and its ligature).
    const uint32_t lower = c == 0x17F ? 's' : c == 0x212A ? 'k' : c | 0x20;
    const bool folds_to_one = (before_ == 's' && (lower == 's' || lower == 't')) ||
                              (before_ == 'f' && (lower == 'f' || lower == 'i' || lower == 'l'));
    if (folds_to_one)
      refuse("ss, st, ff, fi or fl in (?i:...), which also match single characters,");
    last_folded_ = lower;
    emit(both_cases(c));
  }

  CodePointSet fold_class(CodePointSet set) {
    if (!fold_case_) return set;
    const CodePointSet& letters = *find_property("L");
    const CodePointSet in_set = set.intersect(letters);
    if (in_set == letters) return set;
    CodePointSet foldable = CodePointSet::range(0, 0x7F);
    foldable.add(both_cases('s'));
    foldable.add(both_cases('k'));
    if (!in_set.intersect(foldable.complement()).empty()) {
      refuse("a class with letters outside ASCII in (?i:...)");
    }
    for (const CodePointRange& r : in_set.ranges()) {
      for (uint32_t c = r.first; c <= r.last; ++c) set.add(both_cases(c));
    }
    return set;
  }

  std::string_view text_;
  size_t pos_ = 0;
  bool fold_case_ = false;
  uint32_t last_folded_ = 0;  // the lower-case letter that the last atom was in (?i:...), else 0
  uint32_t before_ = 0;       // the same of the atom before the one being read
  RegexProgram program_;
};

}  // namespace

RegexProgram parse_regex(std::string_view pattern) {
  return Parser(pattern).parse();
}

}  // namespace dovetail::bpe
