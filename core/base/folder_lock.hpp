// FolderLock: processes that use one folder of the file system keep out of each other's way.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>

#include "core/base/status.hpp"

namespace dovetail::core {

/// A lock on a folder, gone with the object or with the process, however that ends. It binds those
/// who ask for it; the folder may be renamed meanwhile.
class FolderLock {
 public:
  enum class Kind : uint8_t { kShared, kAlone };

  /// Waits until it can be had.
  /// threads  any; two locks of one process keep each other out like those of two processes
  /// errors   kIo: no such folder, or a file system without locks.
  static Result<FolderLock> take(const std::filesystem::path& folder, Kind kind);
  /// The same without the wait: nothing if somebody else holds it.
  static Result<std::optional<FolderLock>> try_take(const std::filesystem::path& folder, Kind kind);
  /// Whether nobody holds a lock on it now.
  static bool is_free(const std::filesystem::path& folder);

  FolderLock(FolderLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FolderLock& operator=(FolderLock&&) = delete;
  ~FolderLock();

  /// Keeps it until the process ends.
  void leak() { fd_ = -1; }

 private:
  explicit FolderLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace dovetail::core
