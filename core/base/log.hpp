// The log: one line to standard error per message, through spdlog.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dovetail::core {

enum class LogLevel : int32_t { kDebug = 0, kInfo = 1, kWarn = 2, kError = 3, kOff = 4 };

/// Messages below `level` are dropped. The default is kWarn.
void set_log_level(LogLevel level);

/// Writes "warning: area: message". Control characters are escaped, so that text from a file cannot
/// drive the terminal.
/// threads  any
void log(LogLevel level, std::string_view area, std::string_view message);

inline void log_debug(std::string_view area, std::string_view m) {
  log(LogLevel::kDebug, area, m);
}
inline void log_info(std::string_view area, std::string_view m) {
  log(LogLevel::kInfo, area, m);
}
inline void log_warn(std::string_view area, std::string_view m) {
  log(LogLevel::kWarn, area, m);
}
inline void log_error(std::string_view area, std::string_view m) {
  log(LogLevel::kError, area, m);
}

/// `text` with control characters written as \n, \t or \x1b; line breaks too unless they are kept.
std::string printable(std::string_view text, bool keep_line_breaks = false);

}  // namespace dovetail::core
