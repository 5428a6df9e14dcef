// RepackCache: weights in a backend's layout, on disk, so that the next start maps them.
//
// A file holds all packed weights of one checkpoint in one set of layouts. Its name is a hash of what
// they were made of and by: the checkpoint's files (size, time and samples of the bytes), names, shapes,
// layouts, the bytes of the backend's file. A file is whole or not there, whoever writes at the same time or is killed.
// The folder is bounded: the files used longest ago go first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/files.hpp"
#include "core/base/status.hpp"
#include "core/model/checkpoint.hpp"

namespace dovetail::core {

class RepackCache {
 public:
  /// Packed weights of one plan group.
  struct Item {
    std::string name;  // of its first tensor
    std::vector<const TensorInfo*> sources;
    uint64_t layout_hash = 0, bytes = 0;
  };
  /// A file of the cache, for people.
  struct Entry {
    std::filesystem::path path;
    std::string model, backend;  // what it was made of and by
    uint64_t bytes = 0;
    std::filesystem::file_time_type used{};
  };
  /// Less than this is packed again each time: it takes no time.
  static constexpr uint64_t kLeast = uint64_t{32} << 20;

  /// Keeps nothing.
  RepackCache() = default;
  /// `folder` is made when something is written.
  RepackCache(std::filesystem::path folder, uint64_t max_bytes)
      : folder_(std::move(folder)), max_bytes_(max_bytes) {}
  /// $XDG_CACHE_HOME/dovetail/weights or ~/.cache/dovetail/weights; nothing if there is no home.
  static std::optional<std::filesystem::path> default_folder();

  bool is_on() const { return !folder_.empty() && max_bytes_ > 0; }
  /// Looks for these items, made by the file `backend`; find() answers afterwards. A damaged file is
  /// no file.
  void open(const std::vector<Item>& items, const std::filesystem::path& backend);
  bool is_open() const { return file_ != nullptr; }
  /// Item i, mapped; valid as long as this object. Only when open.
  std::span<const std::byte> find(size_t i) const { return bytes_.subspan(offsets_[i], sizes_[i]); }
  const File* file() const { return file_.get(); }
  uint64_t offset(size_t i) const { return offsets_[i]; }
  /// Writes what open() did not find.
  /// errors   kIo: the disk is full, the folder cannot be written. kCancelled. Nothing is left behind.
  Status store(const std::vector<std::span<const std::byte>>& packed, const std::string& model,
               const uint32_t* cancel, const ProgressFn& progress);

  static std::vector<Entry> list(const std::filesystem::path& folder);
  /// Removes every file of the cache; gives the bytes freed.
  static Result<uint64_t> clear(const std::filesystem::path& folder);

 private:
  Status map(const std::filesystem::path& path);
  void make_room() const;

  std::filesystem::path folder_;
  uint64_t max_bytes_ = 0;
  std::string key_, backend_;
  std::vector<std::string> names_;
  std::vector<uint64_t> layouts_, sizes_, offsets_;
  std::shared_ptr<File> file_;
  std::span<const std::byte> bytes_;
};

}  // namespace dovetail::core
