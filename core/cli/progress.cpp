#include "core/cli/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace dovetail::core {
namespace {

constexpr auto kQuiet = std::chrono::milliseconds(400);   // work shorter than this shows nothing
constexpr auto kRedraw = std::chrono::milliseconds(100);  // on a terminal
constexpr auto kPlainLine = std::chrono::seconds(5);      // elsewhere
constexpr int kBarWidth = 30;

}  // namespace

Progress::Progress() : terminal_(isatty(STDERR_FILENO) != 0) {}

void Progress::update(std::string_view what, uint64_t done, uint64_t total) {
  const auto now = Clock::now();
  if (what != what_) {
    finish();
    what_ = what;
    started_ = last_ = now;
  }
  if (now - started_ < kQuiet) return;
  const Clock::duration pause = terminal_ ? Clock::duration(kRedraw) : Clock::duration(kPlainLine);
  const bool first_bar = terminal_ && !shown_;
  if (!first_bar && now - last_ < pause) return;
  last_ = now;
  const double share =
      total ? std::min(1.0, static_cast<double>(done) / static_cast<double>(total)) : 0.0;
  if (!terminal_) {
    if (total)
      std::fprintf(stderr, "%s: %.0f %%\n", what_.c_str(), share * 100.0);
    else
      std::fprintf(stderr, "%s: %llu\n", what_.c_str(), static_cast<unsigned long long>(done));
    return;
  }
  shown_ = true;
  if (total) {
    const int filled = static_cast<int>(share * kBarWidth);
    std::fprintf(stderr, "\r%s [%.*s%.*s] %3.0f %%\033[K", what_.c_str(), filled,
                 "##############################", kBarWidth - filled,
                 "..............................", share * 100.0);
  } else {
    std::fprintf(stderr, "\r%s %llu\033[K", what_.c_str(), static_cast<unsigned long long>(done));
  }
  std::fflush(stderr);
}

void Progress::finish() {
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
  what_.clear();
}

}  // namespace dovetail::core
