// The rules that keep a name inside its folder.
#include "core/base/folder.hpp"

#include <algorithm>
#include <system_error>

#include "core/base/log.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

bool is_inside(const fs::path& path, const fs::path& folder) {
  const auto end = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first;
  return end == folder.end();
}

/// NAME for a folder NAME/snapshots/REVISION[/...] with NAME/blobs beside it; else the folder.
fs::path link_limit(const fs::path& folder) {
  for (fs::path dir = folder; dir.has_relative_path(); dir = dir.parent_path()) {
    const fs::path parent = dir.parent_path();
    std::error_code error;
    if (parent.filename() == "snapshots" &&
        fs::is_directory(parent.parent_path() / "blobs", error)) {
      return parent.parent_path();
    }
  }
  return folder;
}

}  // namespace

Status check_name_inside(std::string_view name) {
  const auto refuse = [&](const char* why) {
    return invalid("\"" + printable(name) + "\" is not a file name inside the folder: it " + why);
  };
  if (name.empty()) return refuse("is empty");
  if (name.find('\0') != std::string_view::npos) return refuse("has a NUL in it");
  if (name.find('\\') != std::string_view::npos) return refuse("has a backslash in it");
  if (name.front() == '/') return refuse("is an absolute path");
  for (const fs::path& part : fs::path(name)) {
    if (part == "..") return refuse("leads outside");
  }
  return Status::ok();
}

Result<Folder> Folder::open(const fs::path& path) {
  Folder folder;
  folder.name_ = path.string();
  std::error_code error;
  folder.real_ = fs::canonical(path, error);
  if (error)
    return io_error(folder.name_ + ": cannot open the folder: " + errno_text(error.value()));
  if (!fs::is_directory(folder.real_, error)) return io_error(folder.name_ + ": is not a folder");
  folder.limit_ = link_limit(folder.real_);
  return folder;
}

Result<fs::path> Folder::resolve(std::string_view name) const {
  if (Status s = check_name_inside(name); !s) return s.in(name_);
  std::error_code error;
  const fs::path real = fs::canonical(real_ / fs::path(name), error);
  const std::string shown = (fs::path(name_) / fs::path(name)).string();
  if (error) return io_error(shown + ": cannot open: " + errno_text(error.value()));
  if (!is_inside(real, real_) && !is_inside(real, limit_)) {
    return invalid(shown + ": is a link to " + real.string() +
                   ", which is outside the folder; copy the file into it");
  }
  return real;
}

Result<std::shared_ptr<File>> Folder::open_file(std::string_view name) const {
  DVT_TRY(const fs::path real, resolve(name));
  return File::open(real, (fs::path(name_) / fs::path(name)).string());
}

bool Folder::has(std::string_view name) const {
  const Result<fs::path> real = resolve(name);
  std::error_code error;
  return real.is_ok() && fs::is_regular_file(*real, error);
}

std::vector<std::string> Folder::files() const {
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(real_, error)) {
    std::string name = entry.path().filename().string();
    if (has(name)) out.push_back(std::move(name));
  }
  std::sort(out.begin(), out.end());
  return out;
}

Result<std::string> Folder::read(std::string_view name, uint64_t max_bytes) const {
  DVT_TRY(const std::shared_ptr<File> file, open_file(name));
  return file->read_all(max_bytes);
}

}  // namespace dovetail::core
