// FolderWriter: a folder that is whole or not there, as FileWriter is for a file.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "core/base/folder_lock.hpp"
#include "core/base/status.hpp"

namespace dovetail::core {

/// A folder beside its final place, for files to be written to; commit() renames it into place. Without
/// commit() nothing is left; what a killed process left, the next one that writes the folder removes.
class FolderWriter {
 public:
  /// errors  kIo: no such parent folder, not permitted.
  static Result<std::unique_ptr<FolderWriter>> create(const std::filesystem::path& path);
  ~FolderWriter();
  FolderWriter(const FolderWriter&) = delete;
  FolderWriter& operator=(const FolderWriter&) = delete;

  /// Where to write.
  const std::filesystem::path& path() const { return temp_; }
  /// Puts the folder in its place. `replace`: what is there goes, in one step; else nothing may be there
  /// but an empty folder.
  /// errors  kIo
  Status commit(bool replace);

 private:
  FolderWriter(std::filesystem::path temp, std::filesystem::path final, std::string name)
      : temp_(std::move(temp)), final_(std::move(final)), name_(std::move(name)) {}

  std::filesystem::path temp_, final_;
  std::string name_;                // as given, for messages
  std::optional<FolderLock> lock_;  // on temp_: somebody is writing it
};

}  // namespace dovetail::core
