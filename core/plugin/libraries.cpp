// The dynamic linker's rules. Where they differ by how a library was linked (the rpath of whoever
// needs it), more places are looked in than it would: only what cannot be there is missing.
#include "core/plugin/libraries.hpp"

#include <link.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>

#include "core/base/files.hpp"
#include "core/base/log.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCacheMagic = "glibc-ld.so.cache1.1";

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(separators), text.size());
    if (end > 0) out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

bool is_here(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> read_library_cache(std::string_view text) {
  // An older format may come first; offsets of strings count from the magic.
  const size_t begin = text.find(kCacheMagic);
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin);
  struct Head {
    char magic[20];
    uint32_t n_libraries, n_string_bytes, unused[5];
  } head;
  struct Entry {
    int32_t flags;
    uint32_t name, path, os_version;
    uint64_t hardware;
  } entry;
  if (text.size() < sizeof head) return {};
  std::memcpy(&head, text.data(), sizeof head);
  const auto string_at = [&](uint32_t at) -> std::string {
    if (at >= text.size()) return {};
    return std::string(text.substr(at, std::min(text.find('\0', at), text.size()) - at));
  };
#if defined(__x86_64__)
  constexpr int32_t kOurs = 0x0303;
#elif defined(__aarch64__)
  constexpr int32_t kOurs = 0x0a03;
#else
  constexpr int32_t kOurs = 0x0003;
#endif
  std::vector<std::pair<std::string, std::string>> out;
  for (uint32_t i = 0; i < head.n_libraries; ++i) {
    const size_t at = sizeof head + size_t{i} * sizeof entry;
    if (at > text.size() || text.size() - at < sizeof entry) return {};
    std::memcpy(&entry, text.data() + at, sizeof entry);
    if (entry.flags == kOurs) out.emplace_back(string_at(entry.name), string_at(entry.path));
  }
  return out;
}

std::vector<fs::path> runpath_folders(std::string_view runpath, const fs::path& folder) {
  std::vector<fs::path> out;
  for (const std::string_view part : split(runpath, ":")) {
    std::string text;
    for (size_t at = 0; at < part.size();) {
      const std::string_view rest = part.substr(at);
      const size_t n = rest.starts_with("$ORIGIN") ? 7 : rest.starts_with("${ORIGIN}") ? 9 : 0;
      text += n > 0 ? folder.string() : std::string(1, part[at]);
      at += std::max<size_t>(n, 1);
    }
    if (!text.empty() && text.front() == '/') out.emplace_back(text);
  }
  return out;
}

LibraryFinder::LibraryFinder() {
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* known) {
        const fs::path path = info->dlpi_name != nullptr ? info->dlpi_name : "";
        if (path.is_absolute())
          static_cast<std::map<std::string, fs::path>*>(known)->try_emplace(
              path.filename().string(), path);
        return 0;
      },
      &known_);
  if (const char* set = std::getenv("LD_LIBRARY_PATH");
      set != nullptr && getauxval(AT_SECURE) == 0) {
    for (const std::string_view part : split(set, ":;")) {
      if (part.front() == '/') first_.emplace_back(part);
    }
  }
  if (const auto cache = File::open("/etc/ld.so.cache"); cache.is_ok()) {
    if (const auto text = (*cache)->read_all(uint64_t{64} << 20); text.is_ok()) {
      for (auto& [name, path] : read_library_cache(*text))
        known_.try_emplace(std::move(name), std::move(path));
    }
  }
  const std::string triplet = machine_name(own_machine()) + "-linux-gnu";
  for (const std::string& dir :
       {"/lib/" + triplet, "/usr/lib/" + triplet, std::string("/lib64"), std::string("/usr/lib64"),
        std::string("/lib"), std::string("/usr/lib")}) {
    last_.emplace_back(dir);
  }
}

fs::path LibraryFinder::path_of(const std::string& name,
                                const std::vector<fs::path>& own_folders) const {
  if (name.find('/') != std::string::npos) return is_here(name) ? fs::path(name) : fs::path();
  fs::path path;
  const auto look_in = [&](const std::vector<fs::path>& folders) {
    for (const fs::path& folder : folders) {
      if (path.empty() && is_here(folder / name)) path = folder / name;
    }
  };
  look_in(own_folders);
  look_in(first_);
  if (const auto it = known_.find(name); path.empty() && it != known_.end() && is_here(it->second))
    path = it->second;
  look_in(last_);
  return path;
}

const LibraryFinder::Library* LibraryFinder::find(const std::string& name,
                                                  const std::vector<fs::path>& own_folders) {
  const fs::path path = path_of(name, own_folders);
  if (path.empty()) return nullptr;
  const auto [it, is_new] = seen_.try_emplace(path);
  if (is_new) {
    it->second.path = path;
    const auto file = File::open(path);
    if (!file) return &it->second;
    const auto bytes = (*file)->map();
    if (!bytes) return &it->second;
    Result<ElfFile> elf = read_elf(*bytes);
    if (!elf || elf->machine != own_machine()) return &it->second;
    it->second.readable = true;
    it->second.versions = std::move(elf->defined_versions);
    it->second.needed = std::move(elf->needed);
    it->second.own_folders = runpath_folders(elf->runpath, path.parent_path());
  }
  return &it->second;
}

void LibraryFinder::add_missing_versions(const ElfFile& file, const std::string& name,
                                         const Library& library, std::vector<std::string>& out) {
  if (!library.readable) return;  // dlopen will say
  for (const ElfVersionNeed& need : file.needed_versions) {
    if (need.library != name || need.weak) continue;
    if (std::find(library.versions.begin(), library.versions.end(), need.version) !=
        library.versions.end())
      continue;
    out.push_back("needs " + printable(need.version) + " of " + printable(name) + ", but " +
                  library.path.string() +
                  " is older; build the plugin on this system or update the library");
  }
}

std::vector<std::string> LibraryFinder::missing(const ElfFile& file, const fs::path& folder) {
  const std::vector<fs::path> own = runpath_folders(file.runpath, folder);
  std::vector<std::string> out;
  std::set<const Library*> walked;
  std::vector<const Library*> to_walk;
  for (const std::string& name : file.needed) {
    const Library* library = find(name, own);
    if (library != nullptr && walked.insert(library).second) to_walk.push_back(library);
    if (library == nullptr) {
      out.push_back("needs the library \"" + printable(name) +
                    "\", which is not on this system; install the package that has it");
      continue;
    }
    add_missing_versions(file, name, *library, out);
  }
  while (!to_walk.empty()) {
    const Library& user = *to_walk.back();
    to_walk.pop_back();
    std::vector<fs::path> folders = user.own_folders;
    folders.insert(folders.end(), own.begin(), own.end());
    for (const std::string& name : user.needed) {
      const Library* library = find(name, folders);
      if (library == nullptr) {
        out.push_back("needs " + user.path.string() + ", which needs the library \"" +
                      printable(name) +
                      "\", which is not on this system; install the package that has it");
      } else if (walked.insert(library).second) {
        to_walk.push_back(library);
      }
    }
  }
  return out;
}

}  // namespace dovetail::core
