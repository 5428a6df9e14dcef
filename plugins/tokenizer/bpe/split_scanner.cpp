#include "split_scanner.hpp"

#include <array>
#include <utility>

#include "letter_run.hpp"
#include "unicode.hpp"
#include "utf8.hpp"

namespace dovetail::bpe {
namespace {

constexpr uint16_t kNewline = 1u << 15;  // U+000A or U+000D, beside kSpace

constexpr std::array<uint16_t, 128> kAsciiClasses = [] {
  std::array<uint16_t, 128> t{};
  for (int c = '0'; c <= '9'; ++c) t[c] = kNumber;
  for (int c = 'a'; c <= 'z'; ++c) t[c] = kLetter | kNotUpper;
  for (int c = 'A'; c <= 'Z'; ++c) t[c] = kLetter | kNotLower;
  for (const uint8_t c : {'\t', '\v', '\f', ' '}) t[c] = kSpace;
  for (const uint8_t c : {'\n', '\r'}) t[c] = kSpace | kNewline;
  return t;
}();

enum class Contractions { kNone, kLowerCase, kAnyCase };

// What tells the families apart. All share the frame of GPT-2's pattern.
struct Gpt2 {
  static constexpr Contractions kContractions = Contractions::kLowerCase;
  static constexpr bool kPrefixIsSpace =
      true;                                   // in front of letters, numbers and the rest: a space
  static constexpr bool kCutsAtCase = false;  // words end where lower case turns to upper
  static constexpr uint16_t kWord = kLetter;
  static constexpr uint32_t kMaxNumbers = UINT32_MAX;
  static constexpr bool kTakesNewlines = false;  // after other characters; and in whitespace
  static constexpr bool kTakesSlashes = false;
};
struct Llama3 : Gpt2 {
  static constexpr Contractions kContractions = Contractions::kAnyCase;
  static constexpr bool kPrefixIsSpace = false;  // in front of letters: anything but NL, L, N
  static constexpr uint32_t kMaxNumbers = 3;
  static constexpr bool kTakesNewlines = true;
};
struct Qwen2 : Llama3 {
  static constexpr uint32_t kMaxNumbers = 1;
};
struct Qwen35 : Qwen2 {
  static constexpr uint16_t kWord = kLetter | kMark;
};
struct O200k : Llama3 {
  static constexpr bool kCutsAtCase = true;
  static constexpr bool kTakesSlashes = true;
};
struct Tekken : O200k {
  static constexpr Contractions kContractions = Contractions::kNone;
  static constexpr uint32_t kMaxNumbers = 1;
};

template <class Family>
class Scanner {
 public:
  Scanner(std::string_view text, uint32_t end)
      : text_(reinterpret_cast<const uint8_t*>(text.data())), end_(end) {}

  /// End of the piece that starts at i < end.
  uint32_t piece_end(uint32_t i) const {
    if constexpr (Family::kContractions != Contractions::kNone && !Family::kCutsAtCase) {
      if (text_[i] == '\'') {
        if (const uint32_t len = contraction_len(i)) return i + len;
      }
    }
    const Char c = at(i);
    if constexpr (Family::kPrefixIsSpace) {
      const uint32_t k = text_[i] == ' ' ? i + 1 : i;
      if (k < end_) {
        const Char first = k == i ? c : at(k);
        if (first.classes & kLetter) return run_of_letters(k + first.len);
        if (first.classes & kNumber) return run_of(kNumber, k + first.len);
        if (!(first.classes & kSpace)) return run_of_others(k + first.len);
      }
      return whitespace_end(i);
    } else {
      if (const uint32_t j = word_end(i, c)) return j;
      if (c.classes & kNumber) return numbers_end(i + c.len);
      const uint32_t k = text_[i] == ' ' ? i + 1 : i;
      if (const uint32_t j = run_of_others(k); j > k) return trailing_end(j);
      return whitespace_end(i);
    }
  }

 private:
  struct Char {
    uint16_t classes;
    uint32_t len;
  };

  static constexpr uint16_t kUpperRun = kNotLower | kMark;
  static constexpr uint16_t kLowerRun = kNotUpper | kMark;

  Char at(uint32_t i) const {
    if (text_[i] < 0x80) return {kAsciiClasses[text_[i]], 1};
    // No newline is beyond ASCII, and its bit is free there.
    return {class_of(decode_valid(text_ + i)), utf8_len(text_[i])};
  }

  uint32_t run_of(uint16_t classes, uint32_t i) const {
    while (i < end_) {
      const Char c = at(i);
      if (!(c.classes & classes)) break;
      i += c.len;
    }
    return i;
  }
  uint32_t run_of_letters(uint32_t i) const {
    return run_of(Family::kWord, skip_ascii_letters(text_, i, end_));
  }
  uint32_t run_of_others(uint32_t i) const {
    constexpr uint16_t kTaken = Family::kWord | kNumber | kSpace;
    while (i < end_) {
      const Char c = at(i);
      if (c.classes & kTaken) break;
      i += c.len;
    }
    return i;
  }

  // A word with what may stand before it; 0 if there is none at i.
  uint32_t word_end(uint32_t i, Char c) const {
    const bool may_be_prefix = !(c.classes & (kLetter | kNumber | kNewline));
    if constexpr (Family::kCutsAtCase) {
      // The longest first: with the prefix, then without it; up to lower case, then upper alone.
      const uint32_t after = i + c.len;
      if (may_be_prefix) {
        if (const uint32_t j = mixed_end(after)) return with_contraction(j);
      }
      if (const uint32_t j = mixed_end(i)) return with_contraction(j);
      if (may_be_prefix) {
        if (const uint32_t j = upper_end(after)) return with_contraction(j);
      }
      if (const uint32_t j = upper_end(i)) return with_contraction(j);
      return 0;
    } else {
      if (c.classes & kLetter) return run_of_letters(i + c.len);
      if (may_be_prefix && i + c.len < end_) {
        const Char next = at(i + c.len);
        if (next.classes & Family::kWord) return run_of_letters(i + c.len + next.len);
      }
      return c.classes & Family::kWord ? run_of_letters(i + c.len) : 0;
    }
  }

  // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+
  uint32_t mixed_end(uint32_t b) const {
    uint32_t u = b, after_both = 0;  // after_both: behind the last that may also end the word
    while (u < end_) {
      const Char c = at(u);
      if (!(c.classes & kUpperRun)) break;
      u += c.len;
      if (c.classes & kLowerRun) after_both = u;
    }
    const uint32_t w = run_of(kLowerRun, skip_ascii_lower(text_, u, end_));
    return w > u ? w : after_both;
  }
  // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*
  uint32_t upper_end(uint32_t b) const {
    const uint32_t u = run_of(kUpperRun, b);
    return u > b ? run_of(kLowerRun, u) : 0;
  }
  uint32_t with_contraction(uint32_t i) const {
    if constexpr (Family::kContractions == Contractions::kNone) return i;
    return i < end_ && text_[i] == '\'' ? i + contraction_len(i) : i;
  }

  uint32_t numbers_end(uint32_t i) const {
    for (uint32_t n = 1; n < Family::kMaxNumbers && i < end_; ++n) {
      const Char c = at(i);
      if (!(c.classes & kNumber)) break;
      i += c.len;
    }
    return i;
  }

  // [\r\n]* or [\r\n/]*
  uint32_t trailing_end(uint32_t i) const {
    const auto is_trailing = [](uint8_t c) {
      return c == '\n' || c == '\r' || (Family::kTakesSlashes && c == '/');
    };
    while (i < end_ && is_trailing(text_[i])) ++i;
    return i;
  }

  // 's 't 'm 'd 're 've 'll; in any case U+017F (C5 BF) folds to s.
  uint32_t contraction_len(uint32_t i) const {
    constexpr bool kAnyCase = Family::kContractions == Contractions::kAnyCase;
    const uint32_t left = end_ - i;
    if (left < 2) return 0;
    const auto letter = [this](uint32_t at) {
      return static_cast<char>(kAnyCase ? text_[at] | 0x20 : text_[at]);
    };
    const char first = letter(i + 1);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
    if (left < 3) return 0;
    if (kAnyCase && text_[i + 1] == 0xC5 && text_[i + 2] == 0xBF) return 3;
    const char second = letter(i + 2);
    const bool matches =
        ((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l');
    return matches ? 3 : 0;
  }

  // \s*[\r\n]+ (save in GPT-2) | \s+(?!\S) | \s+
  uint32_t whitespace_end(uint32_t i) const {
    uint32_t j = i, last = i, after_newline = 0;
    while (j < end_) {
      const Char c = at(j);
      if (!(c.classes & kSpace)) break;
      last = j;
      j += c.len;
      if (c.classes & kNewline) after_newline = j;
    }
    if (Family::kTakesNewlines && after_newline > 0) return after_newline;
    return j == end_ || last == i ? j : last;
  }

  const uint8_t* text_;
  uint32_t end_;
};

template <class Family>
void scan(std::string_view text, uint32_t begin, uint32_t end, std::vector<Piece>* out) {
  const Scanner<Family> scanner(text, end);
  for (uint32_t i = begin; i < end;) {
    const uint32_t next = scanner.piece_end(i);
    out->push_back({i, next});
    i = next;
  }
}

// GPT-2's pattern as newer files spell it; it cuts exactly alike.
constexpr std::string_view kGpt2NewPattern =
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)";

}  // namespace

ScanFn* find_scanner(std::string_view pattern) {
  static constexpr std::pair<std::string_view, ScanFn*> kScanners[] = {
      {kQwen2Pattern, scan<Qwen2>},   {kQwen35Pattern, scan<Qwen35>},
      {kLlama3Pattern, scan<Llama3>}, {kGpt2Pattern, scan<Gpt2>},
      {kGpt2NewPattern, scan<Gpt2>},  {kO200kPattern, scan<O200k>},
      {kTekkenPattern, scan<Tekken>},
  };
  for (const auto& [text, fn] : kScanners) {
    if (pattern == text) return fn;
  }
  return nullptr;
}

}  // namespace dovetail::bpe
