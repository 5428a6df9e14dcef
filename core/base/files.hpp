// File: a regular file that is read or mapped. write_file(): a file that is whole or not there.
//
// A File keeps the name that messages print (what the user typed or a config names) beside the path
// that was opened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/status.hpp"

namespace dovetail::core {

class File {
 public:
  /// Opens a regular file for reading. `name` is for messages; empty means the path.
  /// errors  kIo: absent, not readable, not a regular file.
  static Result<std::shared_ptr<File>> open(const std::filesystem::path& path,
                                            std::string name = {});
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::string& name() const { return name_; }
  uint64_t size() const { return size_; }
  /// Size and time of the last change, as text: tells a file from another version of it.
  std::string version() const;

  /// Reads bytes [offset, offset + n) to dst.
  /// threads  any
  /// errors   kFormat: the file ends before. kIo.
  Status read_at(uint64_t offset, void* dst, uint64_t n) const;

  /// The whole file as a string.
  /// errors  kInvalid: longer than max_bytes. kIo. kNoMemory.
  Result<std::string> read_all(uint64_t max_bytes = uint64_t{1} << 30) const;

  /// The whole file, mapped read-only on the first call; valid as long as this object. Empty for an
  /// empty file. A file that another process cuts short afterwards raises SIGBUS on access.
  /// threads  any
  /// errors   kIo
  Result<std::span<const std::byte>> map() const;

  /// Copies bytes [offset, offset + n) of the mapping, rounded out to kHugePage, into private memory
  /// of 2 MiB pages which takes the place of the file at the same addresses: a reader sees the same
  /// bytes before, during and after. Meant for memory that is streamed through again and again. What has moved
  /// stays there as long as this object.
  /// threads  any, one call at a time; others may read the mapping meanwhile
  /// errors   kInvalid: not mapped. kNoMemory. kIo, kFormat: the file changed. The rest stays mapped.
  Status move_to_huge_pages(uint64_t offset, uint64_t n) const;
  /// Bytes [offset, offset + n) of the mapping will not be read again soon: this process need not hold their pages.
  /// Those that have moved to huge pages stay: no file stands behind them.
  /// threads  any
  void let_go(uint64_t offset, uint64_t n) const;

 private:
  File(int fd, std::string name, uint64_t size) : fd_(fd), name_(std::move(name)), size_(size) {}

  const int fd_;
  const std::string name_;
  const uint64_t size_;
  mutable std::mutex map_once_, moved_lock_;
  mutable std::map<uint64_t, uint64_t>
      moved_;  // to huge pages: begin to end, apart from one another
  mutable const std::byte* mapped_ = nullptr;  // at a multiple of kHugePage
};

/// Writes a file under a temporary name beside it, flushes it to the disk and renames it into
/// place: a reader sees the old file, the new file, never a part. Without commit() nothing is left.
/// A path that is a device or a pipe (/dev/stdout) is written to directly.
class FileWriter {
 public:
  /// errors  kIo: no such folder, not permitted, a folder of that name.
  static Result<std::unique_ptr<FileWriter>> create(const std::filesystem::path& path);
  /// The same, but what is written (a byte at least) stays without commit() too, and the next writer of the same path
  /// and `tag` goes on after it. The caller sees to it that there is one at a time (FolderLock).
  /// errors  kIo; kInvalid: the path is a device or a pipe.
  static Result<std::unique_ptr<FileWriter>> resume(const std::filesystem::path& path,
                                                    std::string_view tag);
  /// Where resume() keeps what is written.
  static std::filesystem::path resumable(const std::filesystem::path& path, std::string_view tag);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  /// errors  kIo; a full disk says how much was wanted and how much is free.
  Status write(std::string_view bytes);
  Status write(std::span<const std::byte> bytes);
  Status commit();
  /// Bytes so far, those of earlier writers too.
  uint64_t n_written() const { return n_written_; }
  /// Forgets them.
  Status restart();

 private:
  FileWriter(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  Status failed(const char* what, int error) const;

  int fd_;
  std::string name_;            // as given, for messages
  std::filesystem::path temp_;  // empty when written directly
  std::filesystem::path final_;
  bool stays_ = false;  // without commit()
  uint64_t n_written_ = 0;
};

/// FileWriter in one call.
Status write_file(const std::filesystem::path& path, std::string_view bytes);

/// "1.2 GiB", "512 bytes".
std::string bytes_text(uint64_t n_bytes);

/// What this user may still write to the file system of `path`, or of the nearest folder above it that
/// is there; nothing if the system does not say.
std::optional<uint64_t> free_disk_bytes(const std::filesystem::path& path);

/// What errno says, in lower case: "no such file or directory".
std::string errno_text(int error);

}  // namespace dovetail::core
