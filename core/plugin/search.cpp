// The search order in code.
#include "core/plugin/search.hpp"

#include <sys/auxv.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? std::optional<std::string>(value) : std::nullopt;
}

/// XDG's rule: a variable that is no absolute path does not count.
std::optional<fs::path> user_folder(const std::optional<std::string>& xdg,
                                    const std::optional<std::string>& home,
                                    const char* below_home) {
  if (xdg && fs::path(*xdg).is_absolute()) return fs::path(*xdg) / "dovetail";
  if (home && fs::path(*home).is_absolute()) return fs::path(*home) / below_home / "dovetail";
  return std::nullopt;
}

fs::path prefix_of(const std::string& program) {
  std::error_code error;
  const fs::path real = fs::canonical(program, error);
  return error ? fs::path() : real.parent_path().parent_path();
}

std::string problem_of(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return "does not exist";
  if (!fs::is_directory(status) && !fs::is_regular_file(status))
    return "is neither a folder nor a file";
  if (fs::is_directory(status)) {
    const fs::directory_iterator opened(path, error);
    if (error) return "cannot be read";
  }
  return {};
}

}  // namespace

PluginEnvironment PluginEnvironment::read() {
  if (getauxval(AT_SECURE) != 0) return {};
  return {variable("DOVETAIL_PLUGIN_PATH"), variable("XDG_DATA_HOME"), variable("XDG_CACHE_HOME"),
          variable("HOME")};
}

std::vector<SearchPlace> search_places(const SearchOptions& options) {
  std::vector<SearchPlace> out;
  using Wanted = SearchPlace::Wanted;
  const auto add = [&](const fs::path& path, const char* origin, Wanted wanted) {
    out.push_back({path, origin, problem_of(path), wanted});
  };
  for (const std::string& path : options.paths)
    add(fs::absolute(path).lexically_normal(), "plugins.path", Wanted::kByConfig);
  if (options.environment.plugin_path) {
    const std::string& list = *options.environment.plugin_path;
    for (size_t begin = 0; begin <= list.size();) {
      const size_t end = std::min(list.find(':', begin), list.size());
      const fs::path path = list.substr(begin, end - begin);
      if (path.is_absolute()) {
        add(path, "DOVETAIL_PLUGIN_PATH", Wanted::kByEnvironment);
      } else if (!path.empty()) {
        out.push_back(
            {path, "DOVETAIL_PLUGIN_PATH", "is not an absolute path", Wanted::kByEnvironment});
      }
      begin = end + 1;
    }
  }
  const auto data =
      user_folder(options.environment.data_home, options.environment.home, ".local/share");
  if (data) add(*data / "plugins", "your plugins", Wanted::kByDefault);
  if (const fs::path prefix = prefix_of(options.program); !prefix.empty())
    add(prefix / "lib/dovetail/plugins", "installed plugins", Wanted::kByDefault);
  return out;
}

std::vector<fs::path> plugin_files(const SearchPlace& place) {
  std::vector<fs::path> out;
  if (!place.problem.empty()) return out;
  std::error_code error;
  if (!fs::is_directory(place.path, error)) return {place.path};
  const auto take = [&](const fs::path& path) {
    if (path.extension() == ".so" && fs::is_regular_file(path, error)) out.push_back(path);
  };
  for (fs::directory_iterator it(place.path, error), end; !error && it != end;
       it.increment(error)) {
    take(it->path());
    std::error_code inner;
    if (!fs::is_directory(it->path(), inner)) continue;
    for (fs::directory_iterator file(it->path(), inner), last; !inner && file != last;
         file.increment(inner))
      take(file->path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<fs::path> trusted_folders(const std::string& program) {
  const fs::path prefix = prefix_of(program);
  if (prefix.empty()) return {};
  std::error_code error;
  if (fs::exists(prefix / "CMakeCache.txt", error)) return {prefix};  // a build tree
  return {prefix / "lib/dovetail"};
}

std::optional<fs::path> user_cache_folder(const PluginEnvironment& environment) {
  return user_folder(environment.cache_home, environment.home, ".cache");
}

bool is_below(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first ==
         folder.end();
}

}  // namespace dovetail::core
