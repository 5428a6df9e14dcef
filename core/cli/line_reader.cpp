#include "core/cli/line_reader.hpp"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "core/cli/command.hpp"

namespace dovetail::core {
namespace {

// Holds interrupts back, but for the time that wait() waits: none is lost between a look at the flag and
// the wait.
class InterruptsHeld {
 public:
  InterruptsHeld() {
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  ~InterruptsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  InterruptsHeld(const InterruptsHeld&) = delete;
  InterruptsHeld& operator=(const InterruptsHeld&) = delete;

  /// Until there is input; false if a signal came instead.
  bool wait() const {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    return ppoll(&input, 1, nullptr, &before_) >= 0 || errno != EINTR;
  }

 private:
  sigset_t before_;
};

bool has_input() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  return poll(&input, 1, 0) > 0;
}

}  // namespace

// Not std::getline: the library's stream takes an interrupted read for the end of the input.
bool LineReader::read_some() {
  std::array<char, 4096> part;
  const ssize_t n = ::read(STDIN_FILENO, part.data(), part.size());
  if (n <= 0) return false;  // the end, or a terminal that went away
  pending_.append(part.data(), static_cast<size_t>(n));
  return true;
}

std::optional<std::string> LineReader::first(size_t& n) const {
  const size_t end = pending_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  n = end + 1;
  return pending_.substr(0, end > 0 && pending_[end - 1] == '\r' ? end - 1 : end);
}

LineReader::Outcome LineReader::next(std::string& line) {
  const InterruptsHeld held;
  for (;;) {
    size_t n = 0;
    if (std::optional<std::string> given = first(n)) {
      line = std::move(*given);
      pending_.erase(0, n);
      told_ = false;
      return Outcome::kLine;
    }
    if ((interrupted() && !told_) || (!ended_ && !held.wait())) {
      pending_.clear();
      told_ = true;
      return Outcome::kInterrupted;
    }
    if (std::exchange(ended_, false) || !read_some()) {
      line = std::exchange(pending_, {});
      return line.empty() ? Outcome::kEnd : Outcome::kLine;
    }
  }
}

std::optional<std::string> LineReader::ready() {
  const InterruptsHeld held;
  size_t n = 0;
  std::optional<std::string> line = first(n);
  while (!line && !ended_ && has_input()) {
    ended_ = !read_some();
    line = first(n);
  }
  return line;
}

}  // namespace dovetail::core
