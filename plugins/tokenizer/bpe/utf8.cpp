#include "utf8.hpp"

#include <cstring>

namespace dovetail::bpe {

void append_utf8(uint32_t c, std::string* out) {
  if (c < 0x80) {
    out->push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out->push_back(static_cast<char>(0xC0 | c >> 6));
    out->push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else if (c < 0x10000) {
    out->push_back(static_cast<char>(0xE0 | c >> 12));
    out->push_back(static_cast<char>(0x80 | (c >> 6 & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else {
    out->push_back(static_cast<char>(0xF0 | c >> 18));
    out->push_back(static_cast<char>(0x80 | (c >> 12 & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (c >> 6 & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3F)));
  }
}

Utf8Step next_utf8(std::string_view text, size_t pos) {
  using Kind = Utf8Step::Kind;
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(pos);
  if (lead < 0x80) return {Kind::kValid, 1};
  if (lead < 0xC2 || lead > 0xF4) return {Kind::kBroken, 1};
  // The second byte's range excludes overlong forms, surrogates and what lies above U+10FFFF.
  uint8_t low = 0x80, high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  const uint32_t len = utf8_len(lead);
  for (uint32_t i = 1; i < len; ++i) {
    if (pos + i == text.size()) return {Kind::kCut, i};
    if (byte(pos + i) < low || byte(pos + i) > high) return {Kind::kBroken, i};
    low = 0x80, high = 0xBF;
  }
  return {Kind::kValid, len};
}

size_t valid_utf8_prefix(std::string_view text) {
  size_t pos = 0;
  while (pos < text.size()) {
    uint64_t word;
    if (pos + sizeof word <= text.size()) {
      std::memcpy(&word, text.data() + pos, sizeof word);
      if ((word & 0x8080808080808080u) == 0) {
        pos += sizeof word;
        continue;
      }
    }
    const Utf8Step step = next_utf8(text, pos);
    if (step.kind != Utf8Step::Kind::kValid) break;
    pos += step.len;
  }
  return pos;
}

}  // namespace dovetail::bpe
