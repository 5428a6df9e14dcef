// PullRecord: what a folder was pulled from and which of its files are whole, in FOLDER/.pull.json.
//
// It lets a later pull know a file without reading it, tells an own file from one that somebody put there or
// changed, and says without the hub what is missing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "core/base/status.hpp"
#include "core/hub/listing.hpp"

namespace dovetail::core {

struct PullRecord {
  struct Entry {
    std::optional<uint64_t> size;
    Checksum checksum;
    std::string version;    // File::version() of what a pull put there; empty: nothing yet
    bool is_whole = false;  // it is what is wanted, not an earlier version of it
  };

  std::string id, revision, commit;
  std::map<std::string, Entry> files;

  /// The folder's record; nothing if it has none.
  /// errors  kIo, kFormat: it cannot be read; it may be deleted.
  static Result<std::optional<PullRecord>> load(const std::filesystem::path& folder);
  /// One process at a time (FolderLock).
  Status save(const std::filesystem::path& folder) const;
  static std::filesystem::path path_in(const std::filesystem::path& folder);

  /// Its files as a listing, for work without the hub.
  HubListing listing() const;
};

}  // namespace dovetail::core
