// One spdlog logger on standard error, made on first use.
#include "core/base/log.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <exception>
#include <memory>

namespace dovetail::core {
namespace {

spdlog::logger& logger() {
  // Leaked: plugins may log while static objects are being destroyed.
  static spdlog::logger* const instance = [] {
    auto* made =
        new spdlog::logger("dovetail", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("%^%l:%$ %v");
    made->set_level(spdlog::level::warn);
    return made;
  }();
  return *instance;
}

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::info;  // a plugin's number that we do not know
}

}  // namespace

void set_log_level(LogLevel level) {
  logger().set_level(to_spdlog(level));
}

void log(LogLevel level, std::string_view area, std::string_view message) {
  const spdlog::level::level_enum wanted = to_spdlog(level);
  if (wanted == spdlog::level::off || !logger().should_log(wanted)) return;
  std::string line = printable(area);
  if (!line.empty()) line += ": ";
  line += printable(message);
  try {
    logger().log(wanted, line);
  } catch (const std::exception&) {
    // Standard error is gone: there is nowhere left to say so.
  }
}

std::string printable(std::string_view text, bool keep_line_breaks) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte >= 0x20 && byte != 0x7f) || (c == '\n' && keep_line_breaks)) {
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else {
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return out;
}

}  // namespace dovetail::core
