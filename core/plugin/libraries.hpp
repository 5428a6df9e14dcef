// LibraryFinder: where the dynamic linker would find a library, worked out on paper, so that a
// missing one is named before anything is loaded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/elf.hpp"

namespace dovetail::core {

class LibraryFinder {
 public:
  /// Takes in which libraries this process has loaded, LD_LIBRARY_PATH (unless the process runs with
  /// elevated rights) and the system's cache of libraries.
  LibraryFinder();

  /// One line per library, or version of its symbols, that `file` needs and that is not here, and per
  /// library that those need in turn. `folder` is where the file lies: $ORIGIN in its runpath.
  std::vector<std::string> missing(const ElfFile& file, const std::filesystem::path& folder);

 private:
  struct Library {
    std::filesystem::path path;
    bool readable = false;  // its versions are known
    std::vector<std::string> versions, needed;
    std::vector<std::filesystem::path> own_folders;
  };
  std::filesystem::path path_of(const std::string& name,
                                const std::vector<std::filesystem::path>& own_folders) const;
  const Library* find(const std::string& name,
                      const std::vector<std::filesystem::path>& own_folders);
  static void add_missing_versions(const ElfFile& file, const std::string& name,
                                   const Library& library, std::vector<std::string>& out);

  std::map<std::string, std::filesystem::path> known_;  // loaded, or in the system's cache
  std::vector<std::filesystem::path> first_, last_;     // folders before and after known_
  std::map<std::filesystem::path, Library> seen_;
};

/// The libraries in the text of /etc/ld.so.cache for this machine, by name, first ones first; empty if
/// the text is not understood.
std::vector<std::pair<std::string, std::string>> read_library_cache(std::string_view text);

/// The runpath's folders with $ORIGIN put in; relative ones are left out.
std::vector<std::filesystem::path> runpath_folders(std::string_view runpath,
                                                   const std::filesystem::path& folder);

}  // namespace dovetail::core
