#include "qwen2_scanner.hpp"

#include <array>

#include "unicode.hpp"
#include "utf8.hpp"

namespace dovetail::bpe {
namespace {

constexpr uint8_t kNewline = 128;  // U+000A or U+000D, beside kSpace
constexpr uint8_t kAnyWord = kLetter | kNumber | kSpace;

constexpr std::array<uint8_t, 128> kAsciiClasses = [] {
  std::array<uint8_t, 128> t{};
  for (int c = '0'; c <= '9'; ++c) t[c] = kNumber;
  for (int c = 'a'; c <= 'z'; ++c) t[c] = t[c - 0x20] = kLetter;
  for (const uint8_t c : {'\t', '\v', '\f', ' '}) t[c] = kSpace;
  for (const uint8_t c : {'\n', '\r'}) t[c] = kSpace | kNewline;
  return t;
}();

class Scanner {
 public:
  Scanner(std::string_view text, uint32_t end)
      : text_(reinterpret_cast<const uint8_t*>(text.data())), end_(end) {}

  /// End of the piece that starts at i < end.
  uint32_t piece_end(uint32_t i) const {
    if (text_[i] == '\'') {
      if (const uint32_t len = contraction_len(i)) return i + len;
    }
    const Char c = at(i);
    if (c.classes & kLetter) return run_of(kLetter, i + c.len);
    if (!(c.classes & (kNumber | kNewline)) && i + c.len < end_) {
      const Char next = at(i + c.len);
      if (next.classes & kLetter) return run_of(kLetter, i + c.len + next.len);
    }
    if (c.classes & kNumber) return i + c.len;

    const uint32_t k = text_[i] == ' ' ? i + 1 : i;
    if (const uint32_t j = run_of_others(k); j > k) return run_of(kNewline, j);
    return whitespace_end(i);
  }

 private:
  struct Char {
    uint8_t classes;
    uint32_t len;
  };

  Char at(uint32_t i) const {
    if (text_[i] < 0x80) return {kAsciiClasses[text_[i]], 1};
    return {static_cast<uint8_t>(class_of(decode_valid(text_ + i)) & kAnyWord), utf8_len(text_[i])};
  }

  uint32_t run_of(uint8_t classes, uint32_t i) const {
    while (i < end_) {
      const Char c = at(i);
      if (!(c.classes & classes)) break;
      i += c.len;
    }
    return i;
  }

  uint32_t run_of_others(uint32_t i) const {
    while (i < end_) {
      const Char c = at(i);
      if (c.classes & kAnyWord) break;
      i += c.len;
    }
    return i;
  }

  // 's 't 'm 'd 're 've 'll in any case; U+017F (C5 BF) folds to s.
  uint32_t contraction_len(uint32_t i) const {
    const uint32_t left = end_ - i;
    if (left < 2) return 0;
    const auto lower = [this](uint32_t at) { return static_cast<char>(text_[at] | 0x20); };
    const char first = lower(i + 1);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
    if (left < 3) return 0;
    if (text_[i + 1] == 0xC5 && text_[i + 2] == 0xBF) return 3;
    const char second = lower(i + 2);
    const bool matches =
        ((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l');
    return matches ? 3 : 0;
  }

  // \s*[\r\n]+ | \s+(?!\S) | \s+
  uint32_t whitespace_end(uint32_t i) const {
    uint32_t j = i, last = i, after_newline = 0;
    while (j < end_) {
      const Char c = at(j);
      if (!(c.classes & kSpace)) break;
      last = j;
      j += c.len;
      if (c.classes & kNewline) after_newline = j;
    }
    if (after_newline > 0) return after_newline;
    return j == end_ || last == i ? j : last;
  }

  const uint8_t* text_;
  uint32_t end_;
};

}  // namespace

void scan_qwen2(std::string_view text, uint32_t begin, uint32_t end, std::vector<Piece>* out) {
  const Scanner scanner(text, end);
  for (uint32_t i = begin; i < end;) {
    const uint32_t next = scanner.piece_end(i);
    out->push_back({i, next});
    i = next;
  }
}

}  // namespace dovetail::bpe
