// File and FileWriter over the system calls, with errors that name the file and the cause.
#include "core/base/files.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <new>
#include <system_error>

#include "core/base/pages.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "something else";
}

std::string free_space_text(const fs::path& path) {
  const std::optional<uint64_t> n = free_disk_bytes(path);
  return n ? ", " + bytes_text(*n) + " free" : "";
}

Status write_all(int fd, const char* p, size_t n, int* error) {
  while (n > 0) {
    const ssize_t got = ::write(fd, p, n);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      *error = errno;
      return io_error("write failed");
    }
    p += got;
    n -= static_cast<size_t>(got);
  }
  return Status::ok();
}

// Puts [begin, end) among ranges that are apart, and joins those that it touches.
void add_range(std::map<uint64_t, uint64_t>& ranges, uint64_t begin, uint64_t end) {
  auto next = ranges.upper_bound(begin);
  if (next != ranges.begin() && std::prev(next)->second >= begin) begin = (--next)->first;
  while (next != ranges.end() && next->first <= end) {
    end = std::max(end, next->second);
    next = ranges.erase(next);
  }
  ranges[begin] = end;
}

}  // namespace

std::string errno_text(int error) {
  std::string text = std::generic_category().message(error);
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

std::string bytes_text(uint64_t n_bytes) {
  if (n_bytes < 1024) return std::to_string(n_bytes) + " bytes";
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(n_bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1023.95 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %s", value, kUnits[unit]);
  return text;
}

std::optional<uint64_t> free_disk_bytes(const fs::path& path) {
  std::error_code error;
  fs::path at = fs::absolute(path, error);
  while (!error && !fs::exists(at, error) && at.has_relative_path()) at = at.parent_path();
  struct statvfs info {};
  if (statvfs(at.c_str(), &info) != 0) return std::nullopt;
  return uint64_t{info.f_bavail} * info.f_frsize;
}

Result<std::shared_ptr<File>> File::open(const fs::path& path, std::string name) {
  if (name.empty()) name = path.string();
  // O_NONBLOCK: opening a pipe must not wait for its other end.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return io_error(name + ": cannot open: " + errno_text(errno));
  struct stat info {};
  if (fstat(fd, &info) != 0) {
    const int error = errno;
    ::close(fd);
    return io_error(name + ": cannot look at it: " + errno_text(error));
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    return io_error(name + ": is " + kind_of(info.st_mode) + ", expected a file");
  }
  return std::shared_ptr<File>(new File(fd, std::move(name), static_cast<uint64_t>(info.st_size)));
}

File::~File() {
  if (mapped_ != nullptr) munmap(const_cast<std::byte*>(mapped_), whole_huge_pages(size_));
  ::close(fd_);
}

std::string File::version() const {
  struct stat info {};
  if (fstat(fd_, &info) != 0) return std::to_string(size_);
  return std::to_string(info.st_size) + " bytes at " + std::to_string(info.st_mtim.tv_sec) + "." +
         std::to_string(info.st_mtim.tv_nsec);
}

Status File::read_at(uint64_t offset, void* dst, uint64_t n) const {
  if (offset > size_ || n > size_ - offset) {
    return bad_format(name_ + ": " + bytes_text(n) + " at byte " + std::to_string(offset) +
                      " are wanted, but the file has " + std::to_string(size_));
  }
  auto* out = static_cast<char*>(dst);
  while (n > 0) {
    const ssize_t got = pread(fd_, out, n, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error(name_ + ": cannot read: " + errno_text(errno));
    if (got == 0)
      return bad_format(name_ + ": became shorter while it was read, at byte " +
                        std::to_string(offset));
    out += got;
    offset += static_cast<uint64_t>(got);
    n -= static_cast<uint64_t>(got);
  }
  return Status::ok();
}

Result<std::string> File::read_all(uint64_t max_bytes) const {
  if (size_ > max_bytes) {
    return invalid(name_ + ": has " + bytes_text(size_) + ", expected at most " +
                   bytes_text(max_bytes));
  }
  std::string out;
  try {
    out.resize(size_);
  } catch (const std::bad_alloc&) {
    return Status(Code::kNoMemory, name_ + ": no memory for its " + bytes_text(size_));
  }
  DVT_TRY(read_at(0, out.data(), size_));
  return out;
}

Result<std::span<const std::byte>> File::map() const {
  if (size_ == 0) return std::span<const std::byte>();
  const std::lock_guard lock(map_once_);
  if (mapped_ == nullptr) {
    std::byte* place = reserve_pages(whole_huge_pages(size_));
    if (!place || mmap(place, size_, PROT_READ, MAP_SHARED | MAP_FIXED, fd_, 0) == MAP_FAILED) {
      const int error = errno;
      if (place) munmap(place, whole_huge_pages(size_));
      return io_error(name_ + ": cannot map: " + errno_text(error));
    }
    mapped_ = place;
  }
  return std::span<const std::byte>(mapped_, size_);
}

Status File::move_to_huge_pages(uint64_t offset, uint64_t n) const {
  if (!mapped_ || offset > size_ || n > size_ - offset)
    return invalid(name_ + ": bytes to move that are not mapped");
  const uint64_t begin = offset / kHugePage * kHugePage, end = whole_huge_pages(offset + n);
  if (begin == end) return Status::ok();
  {
    const std::lock_guard lock(moved_lock_);
    const auto after = moved_.upper_bound(begin);
    if (after != moved_.begin() && std::prev(after)->second >= end) return Status::ok();
  }
  std::byte* copy = reserve_pages(end - begin);
  const auto failed = [&](Status status) {
    if (copy) munmap(copy, end - begin);
    return status;
  };
  const Status no_memory(Code::kNoMemory, name_ + ": no memory for " + bytes_text(end - begin));
  if (!copy || mprotect(copy, end - begin, PROT_READ | PROT_WRITE) != 0) return failed(no_memory);
  madvise(copy, end - begin, MADV_HUGEPAGE);
  const uint64_t n_read = std::min(end, size_) - begin;
  if (Status s = read_at(begin, copy, n_read); !s.is_ok()) return failed(std::move(s));
  if (mprotect(copy, end - begin, PROT_READ) != 0) return failed(no_memory);
  // One system call takes the file's pages away and puts these there: nobody sees a gap.
  std::byte* place = const_cast<std::byte*>(mapped_) + begin;
  const std::lock_guard lock(moved_lock_);  // not between let_go()'s look and its deed
  if (mremap(copy, end - begin, end - begin, MREMAP_MAYMOVE | MREMAP_FIXED, place) == MAP_FAILED)
    return failed(no_memory);
  add_range(moved_, begin, end);
  return Status::ok();
}

void File::let_go(uint64_t offset, uint64_t n) const {
  static const auto kPage = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (!mapped_ || offset > size_ || n > size_ - offset) return;
  const uint64_t begin = (offset + kPage - 1) / kPage * kPage, end = (offset + n) / kPage * kPage;
  const std::lock_guard lock(moved_lock_);
  for (uint64_t at = begin; at < end;) {
    const auto after = moved_.upper_bound(at);
    if (after != moved_.begin() && std::prev(after)->second > at) {
      at = std::prev(after)->second;
      continue;
    }
    const uint64_t until = after == moved_.end() ? end : std::min(end, after->first);
    madvise(const_cast<std::byte*>(mapped_) + at, until - at, MADV_DONTNEED);
    at = until;
  }
}

Result<std::unique_ptr<FileWriter>> FileWriter::create(const fs::path& path) {
  const std::string name = path.string();
  struct stat info {};
  const bool exists = stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode))
    return io_error(name + ": is a folder, expected a file to write");
  if (exists && !S_ISREG(info.st_mode)) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return io_error(name + ": cannot write: " + errno_text(errno));
    return std::unique_ptr<FileWriter>(new FileWriter(fd, name));
  }

  std::error_code ignored;
  fs::path target =
      exists ? fs::canonical(path, ignored) : path;  // a link stays, its file is replaced
  if (target.empty()) target = path;
  static std::atomic<uint32_t> counter{0};
  for (int attempt = 0; attempt < 100; ++attempt) {
    const fs::path temp =
        target.parent_path() / ("." + target.filename().string() + ".part-" +
                                std::to_string(getpid()) + "-" + std::to_string(counter++));
    const int fd = ::open(temp.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST) continue;
    if (fd < 0) return io_error(name + ": cannot write there: " + errno_text(errno));
    if (exists) (void)!fchmod(fd, info.st_mode & 07777);
    std::unique_ptr<FileWriter> writer(new FileWriter(fd, name));
    writer->temp_ = temp;
    writer->final_ = target;
    return writer;
  }
  return io_error(name + ": cannot make a temporary file beside it");
}

fs::path FileWriter::resumable(const fs::path& path, std::string_view tag) {
  return path.parent_path() / ("." + path.filename().string() + ".part-" + std::string(tag));
}

Result<std::unique_ptr<FileWriter>> FileWriter::resume(const fs::path& path, std::string_view tag) {
  const std::string name = path.string();
  struct stat info {};
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return invalid(name + ": is " + kind_of(info.st_mode) + ", expected a file to write");
  const fs::path temp = resumable(path, tag);
  const int fd = ::open(temp.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (fd < 0) return io_error(name + ": cannot write there: " + errno_text(errno));
  std::unique_ptr<FileWriter> writer(new FileWriter(fd, name));
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
    return io_error(temp.string() + ": is no file");
  writer->temp_ = temp;
  writer->final_ = path;
  writer->stays_ = true;
  writer->n_written_ = static_cast<uint64_t>(info.st_size);
  return writer;
}

FileWriter::~FileWriter() {
  if (fd_ >= 0) ::close(fd_);
  if (!temp_.empty() && (!stays_ || n_written_ == 0)) unlink(temp_.c_str());
}

Status FileWriter::restart() {
  // A pipe has nothing to forget, and an ordinary writer's offset would leave a hole.
  if (!stays_) return internal_error(name_ + ": only a resumable writer starts again");
  if (ftruncate(fd_, 0) != 0) return failed("cannot empty it", errno);
  n_written_ = 0;
  return Status::ok();
}

Status FileWriter::failed(const char* what, int error) const {
  if (error != ENOSPC && error != EDQUOT)
    return io_error(name_ + ": " + what + ": " + errno_text(error));
  const fs::path folder = final_.has_parent_path() ? final_.parent_path() : fs::path(".");
  return io_error(name_ + ": " +
                  (error == EDQUOT ? "the disk quota is used up" : "the disk is full") + " after " +
                  bytes_text(n_written_) +
                  (temp_.empty() ? std::string() : free_space_text(folder)) +
                  "; free some space or write somewhere else");
}

Status FileWriter::write(std::string_view bytes) {
  int error = 0;
  if (!write_all(fd_, bytes.data(), bytes.size(), &error)) return failed("cannot write", error);
  n_written_ += bytes.size();
  return Status::ok();
}

Status FileWriter::write(std::span<const std::byte> bytes) {
  return write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

Status FileWriter::commit() {
  if (!temp_.empty() && fsync(fd_) != 0 && errno != EINVAL)
    return failed("cannot write to the disk", errno);
  const int fd = fd_;
  fd_ = -1;
  if (::close(fd) != 0 && errno != EINTR) return failed("cannot write to the disk", errno);
  if (temp_.empty()) return Status::ok();
  if (rename(temp_.c_str(), final_.c_str()) != 0) return failed("cannot put it in place", errno);
  temp_.clear();
  // The new name is on the disk once its folder is; a file system that cannot say is not an error.
  const fs::path folder = final_.has_parent_path() ? final_.parent_path() : fs::path(".");
  const int folder_fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_fd >= 0) {
    (void)fsync(folder_fd);
    ::close(folder_fd);
  }
  return Status::ok();
}

Status write_file(const fs::path& path, std::string_view bytes) {
  DVT_TRY(const std::unique_ptr<FileWriter> writer, FileWriter::create(path));
  DVT_TRY(writer->write(bytes));
  return writer->commit();
}

}  // namespace dovetail::core
