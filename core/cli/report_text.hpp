// Numbers and columns of the reports that commands print.
#pragma once

#include <cstdio>
#include <string>

namespace dovetail::core {

inline std::string number_text(double value, const char* format = "%.3g") {
  char buffer[48];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

/// At least `width` characters, filled up in front, or behind where it stands to the left.
inline std::string padded(std::string text, size_t width, bool left = false) {
  const size_t missing = text.size() < width ? width - text.size() : 0;
  return left ? text.append(missing, ' ') : text.insert(0, missing, ' ');
}

}  // namespace dovetail::core
