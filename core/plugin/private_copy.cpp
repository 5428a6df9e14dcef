// The copy keeps the places of the files to each other: $ORIGIN/../lib of the original is
// $ORIGIN/../lib of the copy.
#include "core/plugin/private_copy.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <dovetail/sha256.hpp>

#include <algorithm>
#include <set>
#include <system_error>
#include <vector>

#include "core/base/files.hpp"
#include "core/plugin/libraries.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFiles = 256;

struct Piece {
  fs::path from, to;  // `to` is relative to the plugin's folder
  std::string sha256;
};

Result<std::string> hash_of(const fs::path& path) {
  DVT_TRY(const std::shared_ptr<File> file, File::open(path));
  DVT_TRY(const std::span<const std::byte> bytes, file->map());
  return sha256_hex(bytes);
}

std::string origin_parts(const std::string& runpath) {
  std::string out;
  for (size_t begin = 0; begin <= runpath.size();) {
    const size_t end = std::min(runpath.find(':', begin), runpath.size());
    const std::string part = runpath.substr(begin, end - begin);
    if (part.starts_with("$ORIGIN") || part.starts_with("${ORIGIN}")) out += part + ":";
    begin = end + 1;
  }
  return out;
}

class Collector {
 public:
  explicit Collector(fs::path folder) : folder_(std::move(folder)) {}

  Status add(const fs::path& file, const ElfFile& elf) {
    const fs::path place = file.lexically_normal();
    if (!seen_.insert(place).second) return Status::ok();
    if (pieces_.size() == kMostFiles)
      return unsupported("brings more than " + std::to_string(kMostFiles) + " libraries");
    DVT_TRY(std::string sha256, hash_of(place));
    pieces_.push_back({place, place.lexically_relative(folder_), std::move(sha256)});
    const std::vector<fs::path> own =
        runpath_folders(origin_parts(elf.runpath), place.parent_path());
    for (const std::string& name : elf.needed) {
      for (const fs::path& folder : own) {
        std::error_code error;
        if (!fs::is_regular_file(folder / name, error)) continue;
        DVT_TRY(const std::shared_ptr<File> library, File::open(folder / name));
        DVT_TRY(const std::span<const std::byte> bytes, library->map());
        const Result<ElfFile> needs = read_elf(bytes);
        DVT_TRY(add(folder / name, needs ? *needs : ElfFile{}));
        break;
      }
    }
    return Status::ok();
  }
  std::vector<Piece> take() { return std::move(pieces_); }

 private:
  const fs::path folder_;
  std::set<fs::path> seen_;
  std::vector<Piece> pieces_;  // the plugin first
};

// Shares the blocks where the file system can.
Status clone_file(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to.parent_path(), error);
  const int in = ::open(from.c_str(), O_RDONLY | O_CLOEXEC);
  const int out = ::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const bool shared = in >= 0 && out >= 0 && ioctl(out, FICLONE, in) == 0;
  if (in >= 0) ::close(in);
  if (out >= 0) ::close(out);
  if (!shared) fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (error)
    return io_error("cannot be copied to " + to.string() + ": " + errno_text(error.value()));
  return Status::ok();
}

bool is_whole(const std::vector<Piece>& pieces, const fs::path& folder) {
  return std::all_of(pieces.begin(), pieces.end(), [&](const Piece& p) {
    const Result<std::string> sha256 = hash_of((folder / p.to).lexically_normal());
    return sha256.is_ok() && *sha256 == p.sha256;
  });
}

uint64_t bytes_below(const fs::path& folder) {
  uint64_t sum = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code gone;
    if (it->is_regular_file(gone)) sum += it->file_size(gone);
  }
  return sum;
}

// The caller has the lock of `cache`: nobody makes a copy, or begins to use one, meanwhile.
void make_room(const fs::path& cache, uint64_t most_bytes) {
  struct Copy {
    fs::file_time_type used;
    fs::path path;
    uint64_t bytes;
  };
  std::vector<Copy> copies;
  std::error_code error;
  for (fs::directory_iterator it(cache, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    if (it->path().has_extension()) {
      fs::remove_all(it->path(), gone);  // its maker was killed
    } else {
      copies.push_back({it->last_write_time(gone), it->path(), bytes_below(it->path())});
    }
  }
  std::sort(copies.begin(), copies.end(),
            [](const Copy& a, const Copy& b) { return a.used > b.used; });
  uint64_t sum = 0;
  for (const Copy& copy : copies) {
    sum += copy.bytes;
    if (sum <= most_bytes || !FolderLock::is_free(copy.path)) continue;
    fs::remove_all(copy.path, error);
    sum -= copy.bytes;
  }
}

// Made under another name first, so that a copy of the right name is whole, or was damaged later.
Status make_copy(const std::vector<Piece>& pieces, const fs::path& root, const fs::path& below) {
  const fs::path made = root.string() + ".new";
  std::error_code error;
  fs::remove_all(made, error);
  Status status;
  for (const Piece& p : pieces)
    if (status.is_ok()) status = clone_file(p.from, (made / below / p.to).lexically_normal());
  if (status.is_ok() && !is_whole(pieces, made / below))
    status = io_error("changed while it was copied to " + root.parent_path().string());
  if (status.is_ok()) {
    fs::remove_all(root, error);  // damaged
    fs::rename(made, root, error);
    if (error)
      status = io_error("cannot be copied to " + root.string() + ": " + errno_text(error.value()));
  }
  fs::remove_all(made, error);
  return status;
}

}  // namespace

Result<PrivateCopy> private_copy(const fs::path& plugin, const ElfFile& elf, const fs::path& cache,
                                 uint64_t most_bytes) {
  Collector collector(plugin.parent_path());
  DVT_TRY(collector.add(plugin, elf));
  const std::vector<Piece> pieces = collector.take();

  std::string text;
  std::ptrdiff_t n_up = 0;  // folders that the libraries lie above the plugin's
  for (const Piece& p : pieces) {
    text += p.to.string() + '\0' + p.sha256 + '\n';
    n_up = std::max(n_up, std::count(p.to.begin(), p.to.end(), fs::path("..")));
  }
  const std::string key = sha256_hex(std::as_bytes(std::span(text)));
  fs::path below;
  for (std::ptrdiff_t i = 0; i < n_up; ++i) below /= "in";
  const fs::path root = cache / key;

  std::error_code error;
  fs::create_directories(cache, error);
  fs::permissions(cache, fs::perms::owner_all, error);
  DVT_TRY(const FolderLock one_at_a_time, FolderLock::take(cache, FolderLock::Kind::kAlone));
  const bool is_new = !is_whole(pieces, root / below);
  if (is_new) DVT_TRY(make_copy(pieces, root, below));
  fs::last_write_time(root, fs::file_time_type::clock::now(), error);  // when it was used
  DVT_TRY(FolderLock in_use, FolderLock::take(root, FolderLock::Kind::kShared));
  if (is_new) make_room(cache, most_bytes);
  return PrivateCopy{root / below / plugin.filename(), key, std::move(in_use)};
}

}  // namespace dovetail::core
