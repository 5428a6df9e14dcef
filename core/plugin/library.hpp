// Getting a checked file into the process: the only place that calls dlopen, through Boost.DLL.
//
// A library that was loaded stays: code of a plugin may be needed by whatever it left behind
// (threads, exception objects, thread-local destructors).
#pragma once

#include <dovetail/abi/plugin.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/base/status.hpp"
#include "core/plugin/host.hpp"
#include "core/plugin/manifest.hpp"

namespace dovetail::core {

/// A copy of a file in memory that nobody can change any more.
class SealedCopy {
 public:
  static constexpr uint64_t kMostBytes = uint64_t{64} << 20;

  /// errors  kUnsupported: longer than kMostBytes, or no memory files on this system. kIo.
  static Result<SealedCopy> make(const File& file);
  SealedCopy(SealedCopy&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  SealedCopy& operator=(SealedCopy&&) = delete;
  ~SealedCopy();

  /// A path to open it by; valid while this lives.
  std::filesystem::path path() const;
  /// Leaves it open for good: the dynamic linker takes two files of one name for the same.
  void leak() { fd_ = -1; }

 private:
  explicit SealedCopy(int fd) : fd_(fd) {}
  int fd_;
};

/// Loads the library and asks for its descriptor, which must say what its manifest says.
/// `path` is absolute and without links, or a SealedCopy's.
/// errors  kFormat, kUnsupported with the dynamic linker's words; kVersion: another interface.
Result<const dvt_plugin_v1*> load_library(const std::filesystem::path& path,
                                          const Manifest& manifest);

/// Whether a started plugin has every interface that its manifest promises, each with a size.
/// errors  kFormat
Status check_interfaces(const dvt_plugin_v1& plugin, void* self, const Manifest& manifest);

/// Loads and starts the plugin in a child process, asks for its interfaces and, of a backend, for its
/// devices, drains and stops it; at most `limit_ms`. What the plugin started there ends with it.
/// errors  kUnsupported: it crashed or refused, with the reason. kBusy: it hung. kIo: no child could
///         be made.
Status probe_in_child(const std::filesystem::path& path, const Manifest& manifest,
                      int limit_ms = 5000);

}  // namespace dovetail::core
