// yaml-cpp guesses encodings, lets bad UTF-8 through and takes 0x04 for the end of the file, so none
// of that may reach it.
#include "core/config/source_text.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/base/utf8.hpp"
#include "core/config/yaml.hpp"

namespace dovetail::core {
namespace {

std::string hex_byte(char c) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  const auto byte = static_cast<uint8_t>(c);
  return {'0', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
}

std::string place(std::string_view text, size_t offset, const std::string& source) {
  const std::string_view before = text.substr(0, offset);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t line_start = before.rfind('\n');
  const size_t column = offset - (line_start == std::string_view::npos ? 0 : line_start + 1) + 1;
  return source + ":" + std::to_string(line) + ":" + std::to_string(column) + ": ";
}

bool is_refused_control(std::string_view text, size_t i) {
  const auto byte = static_cast<uint8_t>(text[i]);
  if (byte == '\r') return i + 1 == text.size() || text[i + 1] != '\n';
  return (byte < 0x20 && byte != '\t' && byte != '\n') || byte == 0x7F;
}

}  // namespace

Status check_source_text(std::string_view text, const std::string& source) {
  if (text.size() > kYamlMaxBytes) {
    return invalid(source + ": the text is over the limit of " + std::to_string(kYamlMaxBytes) +
                   " bytes");
  }
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    return invalid(source + ":1:1: the text is UTF-16, expected UTF-8: save it as UTF-8");
  }
  if (const size_t bad = find_invalid_utf8(text); bad != std::string_view::npos) {
    return invalid(place(text, bad, source) + "byte " + hex_byte(text[bad]) +
                   " is not valid UTF-8: save the text as UTF-8");
  }
  for (size_t i = 0; i < text.size(); ++i) {
    if (!is_refused_control(text, i)) continue;
    return invalid(place(text, i, source) + "control character " + hex_byte(text[i]) +
                   " is not allowed; in a double-quoted string write it as an escape");
  }
  return Status::ok();
}

std::string quote_for_message(std::string_view text) {
  constexpr size_t kMaxShown = 60;
  std::string out = "\"";
  for (size_t i = 0; i < text.size();) {
    const size_t len = std::max<size_t>(utf8_sequence_len(text.substr(i)), 1);
    if (i + len > kMaxShown) {
      out += "...";
      break;
    }
    const auto byte = static_cast<uint8_t>(text[i]);
    if (byte == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7F || (byte >= 0x80 && len == 1)) {
      out += "\\x" + hex_byte(text[i]).substr(2);
    } else {
      out += text.substr(i, len);
    }
    i += len;
  }
  return out + "\"";
}

}  // namespace dovetail::core
