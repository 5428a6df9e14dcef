// UTF-8: walking valid text, finding broken text, and replacing what is broken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dovetail::bpe {

inline constexpr std::string_view kReplacementChar = "\xEF\xBF\xBD";  // U+FFFD

/// Length in bytes of the character that starts with `lead`, in valid UTF-8.
inline uint32_t utf8_len(uint8_t lead) {
  return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

/// The code point at `p`, in valid UTF-8.
inline uint32_t decode_valid(const uint8_t* p) {
  if (p[0] < 0x80) return p[0];
  if (p[0] < 0xE0) return (p[0] & 0x1Fu) << 6 | (p[1] & 0x3Fu);
  if (p[0] < 0xF0) return (p[0] & 0x0Fu) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu);
  return (p[0] & 0x07u) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu);
}

/// Start of the character that ends before `pos` (> 0), in valid UTF-8.
inline size_t previous_char(std::string_view text, size_t pos) {
  do --pos;
  while ((static_cast<uint8_t>(text[pos]) & 0xC0) == 0x80);
  return pos;
}

void append_utf8(uint32_t code_point, std::string* out);

/// One step through text that may be broken.
struct Utf8Step {
  enum class Kind : uint8_t { kValid, kBroken, kCut };
  Kind kind;     // kCut: the text ends inside a character that is right so far
  uint32_t len;  // bytes of the character, or of the maximal subpart that becomes one U+FFFD
};
Utf8Step next_utf8(std::string_view text, size_t pos);

/// Bytes at the front of `text` that are valid UTF-8: text.size() if all is.
size_t valid_utf8_prefix(std::string_view text);

}  // namespace dovetail::bpe
