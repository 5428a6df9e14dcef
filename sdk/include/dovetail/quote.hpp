// Text from a file, for a message.
#pragma once

#include <string>
#include <string_view>

namespace dovetail {

/// `s` in quotes, cut short if it is long; controls are written as \n or \x1b, so that a message stays one line and no
/// name in a damaged file reaches a terminal as a command.
inline std::string quote(std::string_view s) {
  constexpr size_t kShown = 120;
  constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : s.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f)
      out += c;
    else if (c == '\n')
      out += "\\n";
    else
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
  }
  return out + (s.size() > kShown ? "...\"" : "\"");
}

}  // namespace dovetail
