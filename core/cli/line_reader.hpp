// LineReader: lines of standard input for a prompt, where Ctrl-C is an answer of its own.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace dovetail::core {

class LineReader {
 public:
  enum class Outcome { kLine, kEnd, kInterrupted };

  /// Waits for a line and gives it without its end. Input that ends without a line break still is one.
  /// kInterrupted: Ctrl-C came since the last line, told once; what was typed before is gone.
  Outcome next(std::string& line);
  /// The line that next() would give without waiting, if there is one: what was typed meanwhile. It is not taken.
  std::optional<std::string> ready();

 private:
  bool read_some();
  /// The first line that was read, and how long it is with its end; nothing if its end is yet to come.
  std::optional<std::string> first(size_t& n) const;

  std::string pending_;  // read, not yet given
  bool ended_ = false;   // ready() met the end of the input
  bool told_ = false;    // of the interrupt that interrupted() still reports
};

}  // namespace dovetail::core
