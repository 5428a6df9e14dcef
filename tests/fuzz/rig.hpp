// Plugins through the registry, as the program loads them, and a folder for the input.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "core/base/thread_pool.hpp"
#include "core/plugin/host.hpp"
#include "core/plugin/registry.hpp"
#include "tests/fuzz/must.hpp"

namespace dovetail::core::fuzz {

/// Every plugin of this build; lives as long as the process.
inline PluginRegistry& plugins() {
  static PluginRegistry* registry = [] {
    auto* pool = new ThreadPool(1);
    auto* services = new HostServices(*pool);
    SearchOptions options;
    options.environment = {};
    // The target itself: plugins lie relative to it as to BUILD/bin/dovetail, which need not be built.
    options.program = std::filesystem::read_symlink("/proc/self/exe").string();
    Result<std::unique_ptr<PluginRegistry>> made = PluginRegistry::create(options, *services);
    must(made.is_ok(), made.status().message());
    return made->release();
  }();
  return *registry;
}
inline LoadedPlugin& plugin(std::string_view kind, std::string_view name) {
  Result<LoadedPlugin*> loaded = plugins().load(kind, name);
  must(loaded.is_ok(), loaded.status().message());
  return **loaded;
}

/// A folder of this process's own, in memory where the system has such files; gone at its end.
class InputFolder {
 public:
  InputFolder() {
    namespace fs = std::filesystem;
    const fs::path root = fs::exists("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
    path_ = root / ("dvt_fuzz_" + std::to_string(getpid()));
    fs::create_directories(path_);
  }
  ~InputFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  InputFolder(const InputFolder&) = delete;
  InputFolder& operator=(const InputFolder&) = delete;

  std::string path() const { return path_.string(); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  void write(const std::string& name, std::string_view bytes) const {
    std::ofstream out(path_ / name, std::ios::binary | std::ios::trunc);
    out << bytes;
    out.close();
    must(out.good(), "cannot write " + file(name));
  }
  void remove(const std::string& name) const { std::filesystem::remove(path_ / name); }

 private:
  std::filesystem::path path_;
};

}  // namespace dovetail::core::fuzz
