#include "core/base/folder_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/files.hpp"

namespace dovetail::core {
namespace {

int open_folder(const std::filesystem::path& folder) {
  return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

}  // namespace

Result<FolderLock> FolderLock::take(const std::filesystem::path& folder, Kind kind) {
  FolderLock lock(open_folder(folder));
  int error = lock.fd_ < 0 ? errno : 0;
  while (error == 0 && flock(lock.fd_, kind == Kind::kAlone ? LOCK_EX : LOCK_SH) != 0)
    error = errno == EINTR ? 0 : errno;
  if (error != 0) return io_error(folder.string() + ": cannot be locked: " + errno_text(error));
  return lock;
}

Result<std::optional<FolderLock>> FolderLock::try_take(const std::filesystem::path& folder,
                                                       Kind kind) {
  FolderLock lock(open_folder(folder));
  const int operation = (kind == Kind::kAlone ? LOCK_EX : LOCK_SH) | LOCK_NB;
  const int error = lock.fd_ < 0 || flock(lock.fd_, operation) != 0 ? errno : 0;
  if (error == EWOULDBLOCK) return std::optional<FolderLock>();
  if (error != 0) return io_error(folder.string() + ": cannot be locked: " + errno_text(error));
  return std::optional<FolderLock>(std::move(lock));
}

bool FolderLock::is_free(const std::filesystem::path& folder) {
  const Result<std::optional<FolderLock>> lock = try_take(folder, Kind::kAlone);
  return lock.is_ok() && lock->has_value();
}

FolderLock::~FolderLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace dovetail::core
