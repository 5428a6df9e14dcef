// LineReader: lines of standard input for a prompt, where Ctrl-C is an answer of its own.
#pragma once

#include <string>

namespace dovetail::core {

class LineReader {
 public:
  enum class Outcome { kLine, kEnd, kInterrupted };

  /// Waits for a line and gives it without its end. Input that ends without a line break still is one.
  /// kInterrupted: Ctrl-C came since the last line, told once; what was typed before is gone.
  Outcome next(std::string& line);

 private:
  std::string pending_;  // read, not yet given
  bool told_ = false;    // of the interrupt that interrupted() still reports
};

}  // namespace dovetail::core
