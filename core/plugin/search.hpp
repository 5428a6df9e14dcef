// Where plugins are looked for, in order, and which of those places are trusted.
//
//   1. the folders or files that the config's plugins.path names
//   2. DOVETAIL_PLUGIN_PATH, absolute folders with ":" between
//   3. the user's folder: $XDG_DATA_HOME/dovetail/plugins or ~/.local/share/dovetail/plugins
//   4. lib/dovetail/plugins beside the program's bin/
// Never the current directory. A process with elevated rights ignores its environment.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dovetail::core {

/// What the environment says, read once.
struct PluginEnvironment {
  std::optional<std::string> plugin_path, data_home, cache_home, home;

  /// All empty with elevated rights (setuid and the like).
  static PluginEnvironment read();
};

struct SearchOptions {
  std::vector<std::string>
      paths;  // the config's; relative ones are taken from the current directory
  std::vector<std::string> allow,
      deny;             // globs over ids, names and KIND/NAME; an empty allow allows all
  std::string program;  // path of the program that runs
  PluginEnvironment environment = PluginEnvironment::read();
};

struct SearchPlace {
  /// How a place that cannot be searched is taken: an error, a warning, nothing.
  enum class Wanted : uint8_t { kByConfig, kByEnvironment, kByDefault };

  std::filesystem::path path;  // a folder, or one file
  std::string
      origin;  // "plugins.path", "DOVETAIL_PLUGIN_PATH", "your plugins", "installed plugins"
  std::string problem;  // why it is not searched; empty if it is
  Wanted wanted = Wanted::kByDefault;
};

/// The places in order; those that cannot be searched come with their problem.
std::vector<SearchPlace> search_places(const SearchOptions& options);

/// The .so files of a place: itself, FILE.so and KIND/NAME.so in it, sorted by path.
std::vector<std::filesystem::path> plugin_files(const SearchPlace& place);

/// Plugins below these came with the program, or were built with it, and load in place.
std::vector<std::filesystem::path> trusted_folders(const std::string& program);

/// $XDG_CACHE_HOME/dovetail or ~/.cache/dovetail; nothing if there is no home.
std::optional<std::filesystem::path> user_cache_folder(const PluginEnvironment& environment);

bool is_below(const std::filesystem::path& path, const std::filesystem::path& folder);

}  // namespace dovetail::core
