// Folder: files by relative name, and never one outside.
//
// The names come from files that somebody downloaded (a shard index, a manifest), so they are not
// trusted to stay where they belong.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/files.hpp"
#include "core/base/status.hpp"

namespace dovetail::core {

/// Whether `name` is one that Folder::open_file() takes, without a look at the file system.
/// errors  kInvalid: empty, absolute, with a NUL, a backslash or a ".." part.
Status check_name_inside(std::string_view name);

class Folder {
 public:
  /// errors  kIo: absent, not a folder, not readable.
  static Result<Folder> open(const std::filesystem::path& path);

  const std::string& name() const { return name_; }  // as it was given
  const std::filesystem::path& path() const { return real_; }

  /// Opens the file `name` in this folder or below it.
  ///
  /// Symbolic links may lead to files in the folder. In a snapshot of a Hugging Face cache
  /// (NAME/snapshots/REVISION beside NAME/blobs) they may lead anywhere inside NAME.
  /// errors  kInvalid: empty, absolute, with a NUL, a backslash or a ".." part, or a link that leads
  ///         outside. kIo: absent or not readable.
  Result<std::shared_ptr<File>> open_file(std::string_view name) const;
  bool has(std::string_view name) const;
  /// The files right in this folder, sorted by name; those that open_file() refuses are left out.
  std::vector<std::string> files() const;
  Result<std::string> read(std::string_view name, uint64_t max_bytes = uint64_t{1} << 30) const;

 private:
  /// Where the file really is.
  Result<std::filesystem::path> resolve(std::string_view name) const;

  std::string name_;
  std::filesystem::path real_;   // without links
  std::filesystem::path limit_;  // links may lead to here and below
};

}  // namespace dovetail::core
