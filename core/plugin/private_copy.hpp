// private_copy(): a plugin that cannot run from memory, kept in the user's cache with the libraries it
// brings, so that what was checked is what runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/base/elf.hpp"
#include "core/base/folder_lock.hpp"
#include "core/base/status.hpp"

namespace dovetail::core {

struct PrivateCopy {
  std::filesystem::path path;  // of the plugin in it
  std::string key;             // SHA-256 over the plugin and its libraries, with their places
  FolderLock in_use;           // while it is held nobody removes the copy
};

/// Copies that no process uses are kept for the next start up to this many bytes, those in use counted.
constexpr uint64_t kPrivateCopiesBytes = uint64_t{2} << 30;

/// Copies the plugin, and what it and its libraries need and find by $ORIGIN, to a folder of `cache`
/// that is named after their content; a copy that is there already and unchanged is taken. One that is
/// made removes what killed processes left behind, and those copies beyond `most_bytes` that no process
/// uses, those used longest ago first.
///
/// threads  any; one process at a time works on `cache`, the others wait
/// errors   kUnsupported: more libraries than a plugin has. kIo: cannot be written, or the files
///          changed meanwhile.
Result<PrivateCopy> private_copy(const std::filesystem::path& plugin, const ElfFile& elf,
                                 const std::filesystem::path& cache,
                                 uint64_t most_bytes = kPrivateCopiesBytes);

}  // namespace dovetail::core
