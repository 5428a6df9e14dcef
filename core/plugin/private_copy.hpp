// private_copy(): a plugin that cannot run from memory, kept in the user's cache with the libraries it
// brings, so that what was checked is what runs.
#pragma once

#include <filesystem>
#include <string>

#include "core/base/elf.hpp"
#include "core/base/status.hpp"

namespace dovetail::core {

struct PrivateCopy {
  std::filesystem::path path;  // of the plugin in it
  std::string key;             // SHA-256 over the plugin and its libraries, with their places
};

/// Copies the plugin, and what it and its libraries need and find by $ORIGIN, to a folder of `cache`
/// that is named after their content; a copy that is there already and unchanged is taken.
/// errors  kUnsupported: more libraries than a plugin has. kIo: cannot be written, or the files
///         changed meanwhile.
Result<PrivateCopy> private_copy(const std::filesystem::path& plugin, const ElfFile& elf,
                                 const std::filesystem::path& cache);

}  // namespace dovetail::core
