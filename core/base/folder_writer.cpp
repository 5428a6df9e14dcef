#include "core/base/folder_writer.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "core/base/files.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

// The new name is on the disk once the folder around it is; a file system that cannot say is no error.
void flush_folder(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  (void)fsync(fd);
  ::close(fd);
}

// Folders in `parent` that begin with `stem` and that nobody writes any more.
void remove_left_behind(const fs::path& parent, const std::string& stem) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, error))
    if (entry.path().filename().string().starts_with(stem) && entry.is_directory(error) &&
        FolderLock::is_free(entry.path()))
      fs::remove_all(entry.path(), error);
}

}  // namespace

Result<std::unique_ptr<FolderWriter>> FolderWriter::create(const fs::path& path) {
  const std::string name = path.string();
  std::error_code error;
  fs::path target =
      fs::weakly_canonical(path, error);  // a link to a folder stays; no slash at the end
  if (error || target.filename().empty()) target = fs::absolute(path);
  if (target.filename().empty()) target = target.parent_path();
  const std::string stem = "." + target.filename().string() + ".part-";
  remove_left_behind(target.parent_path(), stem);
  for (int attempt = 0; attempt < 100; ++attempt) {
    fs::path temp =
        target.parent_path() / (stem + std::to_string(getpid()) + "-" + std::to_string(attempt));
    if (mkdir(temp.c_str(), 0777) == 0) {
      std::unique_ptr<FolderWriter> writer(
          new FolderWriter(std::move(temp), std::move(target), name));
      // A file system without locks is no error: then nothing is taken for left behind either.
      if (Result<FolderLock> lock = FolderLock::take(writer->temp_, FolderLock::Kind::kShared))
        writer->lock_.emplace(std::move(*lock));
      return writer;
    }
    if (errno != EEXIST) return io_error(name + ": cannot make the folder: " + errno_text(errno));
  }
  return io_error(name + ": cannot make a temporary folder beside it");
}

FolderWriter::~FolderWriter() {
  std::error_code ignored;
  if (!temp_.empty()) fs::remove_all(temp_, ignored);
}

Status FolderWriter::commit(bool replace) {
  struct stat info {};
  const bool exchange = replace && stat(final_.c_str(), &info) == 0;
  const int code =
      exchange ? renameat2(AT_FDCWD, temp_.c_str(), AT_FDCWD, final_.c_str(), RENAME_EXCHANGE)
               : rename(temp_.c_str(), final_.c_str());  // takes the place of an empty folder only
  if (code != 0) return io_error(name_ + ": cannot put it in place: " + errno_text(errno));
  flush_folder(final_.parent_path());
  if (!exchange) temp_.clear();  // else the old one, which the destructor removes
  return Status::ok();
}

}  // namespace dovetail::core
