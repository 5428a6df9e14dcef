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

}  // namespace

// Not std::getline: the library's stream takes an interrupted read for the end of the input.
LineReader::Outcome LineReader::next(std::string& line) {
  const InterruptsHeld held;
  for (size_t searched = 0;;) {
    if (const size_t end = pending_.find('\n', searched); end != std::string::npos) {
      line = pending_.substr(0, end);
      if (line.ends_with('\r')) line.pop_back();
      pending_.erase(0, end + 1);
      told_ = false;
      return Outcome::kLine;
    }
    searched = pending_.size();
    if ((interrupted() && !told_) || !held.wait()) {
      pending_.clear();
      told_ = true;
      return Outcome::kInterrupted;
    }
    std::array<char, 4096> part;
    const ssize_t n = ::read(STDIN_FILENO, part.data(), part.size());
    if (n <= 0) {  // the end, or a terminal that went away
      line = std::exchange(pending_, {});
      return line.empty() ? Outcome::kEnd : Outcome::kLine;
    }
    pending_.append(part.data(), static_cast<size_t>(n));
  }
}

}  // namespace dovetail::core
