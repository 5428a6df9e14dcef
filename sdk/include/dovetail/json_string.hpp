// Text as a JSON string.
#pragma once

#include <string>
#include <string_view>

namespace dovetail {

/// Appends `s` in quotes; only what JSON demands is escaped. `s` is UTF-8.
inline void append_json_string(std::string_view s, std::string& out) {
  static constexpr std::string_view kShort = "\"\\\b\f\n\r\t", kLetters = "\"\\bfnrt";
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  size_t run = 0;  // start of the bytes that need no escape
  for (size_t i = 0; i < s.size(); ++i) {
    const auto c = static_cast<unsigned char>(s[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out.append(s, run, i - run);
    run = i + 1;
    if (const size_t letter = kShort.find(s[i]); letter != std::string_view::npos) {
      out += {'\\', kLetters[letter]};
    } else {
      out += {'\\', 'u', '0', '0', kHex[c >> 4], kHex[c & 15]};
    }
  }
  out.append(s, run);
  out += '"';
}

}  // namespace dovetail
