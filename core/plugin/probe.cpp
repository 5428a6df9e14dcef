// A plugin's first run, where a crash costs nothing but a child process.
#include <dovetail/abi/backend.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/log.hpp"
#include "core/plugin/library.hpp"

namespace dovetail::core {
namespace {

constexpr size_t kMostReason = 4096;
constexpr uint64_t kMostDevices = 4096;

Status list_devices(const dvt_plugin_v1* plugin, void* self) {
  const auto* backend = static_cast<const dvt_backend_v1*>(
      plugin->get_interface(self, abi_text("dovetail.backend/1")));
  if (backend == nullptr) return Status::ok();
  if (!DVT_HAS(backend, devices)) return bad_format("cannot list its devices");
  CallFrame call;
  uint64_t n = 0;
  const dvt_code code = backend->devices(self, call, nullptr, 0, &n);
  if (code != DVT_ETOOSMALL) DVT_TRY(call.check(code).in("devices"));
  if (n > kMostDevices) return bad_format("says that it has " + std::to_string(n) + " devices");
  std::vector<dvt_device> devices(n);
  for (dvt_device& device : devices) device.struct_size = sizeof device;
  CallFrame again;
  return again.check(backend->devices(self, again, devices.data(), n, &n)).in("devices");
}

// Runs in the child: other threads are gone, and whatever they held stays locked. So: no log, a pool
// of one lane, and out with _exit.
Status try_plugin(const std::filesystem::path& path, const Manifest& manifest) {
  DVT_TRY(const dvt_plugin_v1* plugin, load_library(path, manifest));
  ThreadPool pool(1);
  HostServices host(pool);
  CallFrame call;
  void* self = nullptr;
  DVT_TRY(call.check(plugin->start(call, host.table_for(manifest.id), &self)).in("start"));
  DVT_TRY(check_interfaces(*plugin, self, manifest));
  DVT_TRY(list_devices(plugin, self));
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

// What the child wrote, or nothing if it ended or the time ran out before. Its end of the pipe says
// little: processes that it started may hold it open, and it may close it and go on.
std::string listen(int fd, int child, int limit_ms, bool* in_time) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                          end - std::chrono::steady_clock::now())
                          .count();
    pollfd waits[] = {{fd, POLLIN, 0}, {child, POLLIN, 0}};
    const int ready = left <= 0 ? 0 : poll(waits, 2, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      *in_time = false;
      return {};
    }
    *in_time = true;
    if (waits[0].revents == 0) return {};  // it ended without a word
    char part[kMostReason];
    const ssize_t n = ::read(fd, part, sizeof part);
    if (n < 0 && errno == EINTR) continue;
    if (n > 0) return std::string(part, static_cast<size_t>(n));  // the report is one write
    if (child < 0) return {};
    fd = -1;
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
  // Negative where the system has none.
  const int child_end = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  const std::string report = listen(ends[0], child_end, limit_ms, &in_time);
  ::close(ends[0]);
  if (child_end >= 0) ::close(child_end);
  kill(-child, SIGKILL);  // whatever it started
  kill(child, SIGKILL);   // says nothing to a process that has ended
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
