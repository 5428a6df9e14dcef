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

bool FolderLock::is_free(const std::filesystem::path& folder) {
  const FolderLock lock(open_folder(folder));
  return lock.fd_ >= 0 && flock(lock.fd_, LOCK_EX | LOCK_NB) == 0;
}

FolderLock::~FolderLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace dovetail::core
