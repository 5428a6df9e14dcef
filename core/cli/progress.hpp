// Progress of long work: a bar that redraws itself on a terminal, a plain line now and then elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace dovetail::core {

class Progress {
 public:
  Progress();
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Work `what` is at `done` of `total` (0 = unknown); `detail` stands after the share. Cheap enough to
  /// call often.
  void update(std::string_view what, uint64_t done, uint64_t total, std::string_view detail = {});
  /// Takes the bar away.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  bool terminal_;
  bool shown_ = false;
  std::string what_;
  Clock::time_point started_, last_;
};

}  // namespace dovetail::core
