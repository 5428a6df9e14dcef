#include "core/base/utf8.hpp"

#include <algorithm>
#include <cstdint>

namespace dovetail::core {
namespace {

struct Prefix {
  size_t len = 0;  // bytes of `text` that a well formed sequence may begin with; at least 1
  bool is_whole = false;
};

Prefix scan(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {1, true};
  if (lead < 0xC2 || lead > 0xF4) return {1, false};
  const size_t len = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte's range excludes overlong forms, surrogates and values over U+10FFFF.
  const uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < len; ++i) {
    if (i == text.size()) return {i, false};
    const bool fits = i == 1 ? byte(i) >= low && byte(i) <= high : (byte(i) & 0xC0) == 0x80;
    if (!fits) return {i, false};
  }
  return {len, true};
}

}  // namespace

size_t utf8_sequence_len(std::string_view text) {
  const Prefix prefix = scan(text);
  return prefix.is_whole ? prefix.len : 0;
}

size_t find_invalid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const Prefix prefix = scan(text.substr(i));
    if (!prefix.is_whole) return i;
    i += prefix.len;
  }
  return std::string_view::npos;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t bad = std::min(find_invalid_utf8(text), text.size());
    out += text.substr(0, bad);
    text.remove_prefix(bad);
    if (text.empty()) break;
    out += "\xEF\xBF\xBD";
    text.remove_prefix(scan(text).len);
  }
  return out;
}

}  // namespace dovetail::core
