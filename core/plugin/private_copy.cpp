// The copy keeps the places of the files to each other: $ORIGIN/../lib of the original is
// $ORIGIN/../lib of the copy.
#include "core/plugin/private_copy.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <system_error>
#include <vector>

#include "core/base/files.hpp"
#include "core/base/sha256.hpp"
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

}  // namespace

Result<PrivateCopy> private_copy(const fs::path& plugin, const ElfFile& elf,
                                 const fs::path& cache) {
  Collector collector(plugin.parent_path());
  DVT_TRY(collector.add(plugin, elf));
  const std::vector<Piece> pieces = collector.take();

  std::string text;
  std::ptrdiff_t n_up = 0;  // folders that the libraries lie above the plugin's
  for (const Piece& p : pieces) {
    text += p.to.string() + '\0' + p.sha256 + '\n';
    n_up = std::max(n_up, std::count(p.to.begin(), p.to.end(), fs::path("..")));
  }
  PrivateCopy out;
  out.key = sha256_hex(std::as_bytes(std::span(text)));
  fs::path below;
  for (std::ptrdiff_t i = 0; i < n_up; ++i) below /= "in";
  const fs::path root = cache / out.key;
  out.path = root / below / plugin.filename();
  if (is_whole(pieces, root / below)) return out;

  std::error_code error;
  fs::create_directories(cache, error);
  fs::permissions(cache, fs::perms::owner_all, error);
  const fs::path made = root.string() + "." + std::to_string(getpid());
  fs::remove_all(made, error);
  Status status;
  for (const Piece& p : pieces)
    if (status.is_ok()) status = clone_file(p.from, (made / below / p.to).lexically_normal());
  if (status.is_ok() && !is_whole(pieces, made / below))
    status = io_error("changed while it was copied to " + cache.string());
  if (status.is_ok()) {
    fs::remove_all(root, error);  // damaged
    fs::rename(made, root, error);
    // Another process may have been first: its copy is as good, if it is one.
    if (error && !is_whole(pieces, root / below))
      status = io_error("cannot be copied to " + root.string() + ": " + errno_text(error.value()));
  }
  fs::remove_all(made, error);
  DVT_TRY(status);
  return out;
}

}  // namespace dovetail::core
