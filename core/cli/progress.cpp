#include "core/cli/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace dovetail::core {
namespace {

constexpr auto kQuiet = std::chrono::milliseconds(400);   // work shorter than this shows nothing
constexpr auto kRedraw = std::chrono::milliseconds(100);  // on a terminal
constexpr auto kPlainLine = std::chrono::seconds(5);      // elsewhere
constexpr size_t kBarWidth = 30;

}  // namespace

Progress::Progress() : terminal_(isatty(STDERR_FILENO) != 0) {}

void Progress::update(std::string_view what, uint64_t done, uint64_t total,
                      std::string_view detail) {
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
  char number[32];
  if (total)
    std::snprintf(number, sizeof number, terminal_ ? "%3.0f %%" : "%.0f %%", share * 100.0);
  else
    std::snprintf(number, sizeof number, "%llu", static_cast<unsigned long long>(done));
  std::string rest = number;
  if (!detail.empty()) rest += std::string(terminal_ ? "  " : ", ") + std::string(detail);
  if (!terminal_) {
    std::fprintf(stderr, "%s: %s\n", what_.c_str(), rest.c_str());
    return;
  }
  shown_ = true;
  std::string line = what_ + " ";
  if (total) {
    const auto filled = static_cast<size_t>(share * kBarWidth);
    line += "[" + std::string(filled, '#') + std::string(kBarWidth - filled, '.') + "] ";
  }
  line += rest;
  // A line that wraps could not be redrawn.
  struct winsize window {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1)
    line.resize(std::min<size_t>(line.size(), window.ws_col - 1));
  std::fprintf(stderr, "\r%s\033[K", line.c_str());
  std::fflush(stderr);
}

void Progress::finish() {
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
  what_.clear();
}

}  // namespace dovetail::core
