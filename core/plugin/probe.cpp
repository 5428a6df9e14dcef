// A plugin's first run, where a crash costs nothing but a child process.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>

#include "core/base/log.hpp"
#include "core/plugin/library.hpp"

namespace dovetail::core {
namespace {

constexpr size_t kMostReason = 4096;

// Runs in the child: other threads are gone, and whatever they held stays locked. So: no log, a pool
// of one lane, and out with _exit.
Status try_plugin(const std::filesystem::path& path, const Manifest& manifest) {
  DVT_TRY(const dvt_plugin_v1* plugin, load_library(path, manifest));
  ThreadPool pool(1);
  HostServices host(pool);
  CallFrame call;
  void* self = nullptr;
  DVT_TRY(call.check(plugin->start(call, host.table_for(manifest.id), &self)).in("start"));
  if (plugin->drain != nullptr) DVT_TRY(call.check(plugin->drain(call, self)).in("drain"));
  plugin->stop(self);
  return Status::ok();
}

[[noreturn]] void run_child(const std::filesystem::path& path, const Manifest& manifest,
                            int report) {
  setsid();  // its own children can be ended with it
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  for (int s = 1; s < NSIG; ++s) signal(s, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nowhere = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) dup2(nowhere, fd);
  set_log_level(LogLevel::kOff);

  const Status status = try_plugin(path, manifest);
  const std::string text = status.is_ok() ? "+" : "-" + status.message();
  const ssize_t n = ::write(report, text.data(), std::min(text.size(), kMostReason));
  _exit(n > 0 ? 0 : 1);
}

// What the child wrote until it closed its end; nothing if the time ran out.
std::string listen(int fd, int limit_ms, bool* in_time) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
  std::string out;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                          end - std::chrono::steady_clock::now())
                          .count();
    pollfd wait{fd, POLLIN, 0};
    const int ready = left <= 0 ? 0 : poll(&wait, 1, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      *in_time = false;
      return {};
    }
    char part[kMostReason];
    const ssize_t n = ::read(fd, part, sizeof part);
    if (n < 0 && errno == EINTR) continue;
    if (n > 0) out.append(part, static_cast<size_t>(n));
    if (n <= 0 || !out.empty()) {  // the report is one write
      *in_time = true;
      return out;
    }
  }
}

std::string end_text(int status) {
  if (WIFSIGNALED(status)) {
    const char* name = sigabbrev_np(WTERMSIG(status));
    return std::string("crashed with SIG") +
           (name != nullptr ? name : std::to_string(WTERMSIG(status)).c_str());
  }
  return "ended the process with exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

Status probe_in_child(const std::filesystem::path& path, const Manifest& manifest, int limit_ms) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return io_error("the probe has no pipe: " + errno_text(errno));
  const pid_t child = fork();
  if (child == 0) run_child(path, manifest, ends[1]);
  const int fork_error = errno;
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    return io_error("the probe cannot start a child process: " + errno_text(fork_error));
  }
  bool in_time = false;
  const std::string report = listen(ends[0], limit_ms, &in_time);
  ::close(ends[0]);
  if (!in_time || !report.empty()) kill(-child, SIGKILL), kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time)
    return {Code::kBusy,
            "did not start and stop within " + std::to_string(limit_ms / 1000) + " s in the probe"};
  if (report == "+") return Status::ok();
  if (!report.empty()) return unsupported(report.substr(1));
  return unsupported(end_text(status) + " when it was loaded in a child process");
}

}  // namespace dovetail::core
