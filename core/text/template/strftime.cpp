// strftime with the C locale's names whatever the process's locale is.
#include <cstdio>

#include "core/text/template/fault.hpp"
#include "core/text/template/format.hpp"

namespace dovetail::core::jinja {
namespace {

constexpr const char* kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                 "Thursday", "Friday", "Saturday"};
constexpr const char* kMonths[] = {"January",   "February", "March",    "April",
                                   "May",       "June",     "July",     "August",
                                   "September", "October",  "November", "December"};

// `n` in `width` columns, padded as glibc's flag says: '-' not at all, '_' with blanks, else zeros.
std::string padded(int n, int width, char pad, char flag) {
  if (flag == '-') return std::to_string(n);
  if (flag == '_') pad = ' ';
  if (flag == '0') pad = '0';
  std::string s = std::to_string(n);
  if (s.size() < static_cast<size_t>(width))
    s.insert(0, static_cast<size_t>(width) - s.size(), pad);
  return s;
}

std::string directive(char c, char flag, const std::tm& t) {
  const int hour12 = t.tm_hour % 12 == 0 ? 12 : t.tm_hour % 12;
  const int year = t.tm_year + 1900;
  switch (c) {
    case 'Y':
      return std::to_string(year);
    case 'C':
      return padded(year / 100, 2, '0', flag);
    case 'y':
      return padded(year % 100, 2, '0', flag);
    case 'm':
      return padded(t.tm_mon + 1, 2, '0', flag);
    case 'd':
      return padded(t.tm_mday, 2, '0', flag);
    case 'e':
      return padded(t.tm_mday, 2, ' ', flag);
    case 'H':
      return padded(t.tm_hour, 2, '0', flag);
    case 'k':
      return padded(t.tm_hour, 2, ' ', flag);
    case 'I':
      return padded(hour12, 2, '0', flag);
    case 'l':
      return padded(hour12, 2, ' ', flag);
    case 'M':
      return padded(t.tm_min, 2, '0', flag);
    case 'S':
      return padded(t.tm_sec, 2, '0', flag);
    case 'j':
      return padded(t.tm_yday + 1, 3, '0', flag);
    case 'u':
      return std::to_string(t.tm_wday == 0 ? 7 : t.tm_wday);
    case 'w':
      return std::to_string(t.tm_wday);
    case 'U':
      return padded((t.tm_yday + 7 - t.tm_wday) / 7, 2, '0', flag);
    case 'W':
      return padded((t.tm_yday + 7 - (t.tm_wday + 6) % 7) / 7, 2, '0', flag);
    case 'A':
      return kDays[t.tm_wday];
    case 'a':
      return std::string(kDays[t.tm_wday], 3);
    case 'B':
      return kMonths[t.tm_mon];
    case 'b':
    case 'h':
      return std::string(kMonths[t.tm_mon], 3);
    case 'p':
      return t.tm_hour < 12 ? "AM" : "PM";
    case 'P':
      return t.tm_hour < 12 ? "am" : "pm";
    case 'n':
      return "\n";
    case 't':
      return "\t";
    case '%':
      return "%";
    default:
      return {};
  }
}

// Directives that stand for others.
const char* expansion(char c) {
  switch (c) {
    case 'D':
    case 'x':
      return "%m/%d/%y";
    case 'F':
      return "%Y-%m-%d";
    case 'T':
    case 'X':
      return "%H:%M:%S";
    case 'R':
      return "%H:%M";
    case 'r':
      return "%I:%M:%S %p";
    case 'c':
      return "%a %b %e %H:%M:%S %Y";
    default:
      return nullptr;
  }
}

}  // namespace

std::string format_time(std::string_view format, const std::tm& time) {
  if (time.tm_wday < 0 || time.tm_wday > 6 || time.tm_mon < 0 || time.tm_mon > 11) {
    fail("the clock's weekday or month is out of range");
  }
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    const size_t begin = i++;
    char flag = '\0';
    if (i < format.size() && (format[i] == '-' || format[i] == '_' || format[i] == '0')) {
      flag = format[i++];
    }
    const char c = i < format.size() ? format[i] : '\0';
    const char* const longer = expansion(c);
    const std::string text =
        longer != nullptr ? format_time(longer, time) : directive(c, flag, time);
    if (text.empty()) {
      fail_unsupported(
          "strftime_now does not support '" + std::string(format.substr(begin, i + 1 - begin)) +
          "', which is not one of %Y %m %d %H %M %S %B %b %A %a %j %y %p %I and the like");
    }
    out += text;
  }
  return out;
}

}  // namespace dovetail::core::jinja
