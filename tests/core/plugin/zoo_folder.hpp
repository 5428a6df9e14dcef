// A temporary folder with a fake installation: bin/dovetail, lib/dovetail/plugins, a home and caches.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "core/plugin/search.hpp"

namespace dovetail::core {

inline const std::filesystem::path kZoo = std::filesystem::path(DVT_BUILD_DIR) / "tests/zoo/zoo";

class ZooFolder {
 public:
  ZooFolder()
      : root_(std::filesystem::canonical(testing::TempDir()) /
              ("dvt_zoo_" + std::to_string(getpid()) + "_" + std::to_string(++n_made_))) {
    std::filesystem::create_directories(root_ / "prefix/bin");
    std::ofstream(root_ / "prefix/bin/dovetail") << "a program";
    std::filesystem::create_directories(installed());
    std::filesystem::create_directories(root_ / "home");
  }
  ~ZooFolder() { std::filesystem::remove_all(root_); }
  ZooFolder(const ZooFolder&) = delete;
  ZooFolder& operator=(const ZooFolder&) = delete;

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path installed() const { return root_ / "prefix/lib/dovetail/plugins"; }
  std::filesystem::path users() const { return root_ / "home/.local/share/dovetail/plugins"; }
  std::filesystem::path cache() const { return root_ / "home/.cache/dovetail/plugin-verdicts"; }

  SearchOptions options() const {
    SearchOptions out;
    out.program = (root_ / "prefix/bin/dovetail").string();
    out.environment = {};
    out.environment.home = (root_ / "home").string();
    return out;
  }

  static std::string bytes_of(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void put(const std::filesystem::path& file, const std::string& bytes) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << bytes;
  }
  /// Copies a plugin of the zoo to FOLDER/zoo/NAME.so.
  static std::filesystem::path add(const std::filesystem::path& folder, const std::string& name) {
    const std::filesystem::path file = folder / "zoo" / (name + ".so");
    put(file, bytes_of(kZoo / (name + ".so")));
    return file;
  }
  /// `bytes` with one text of the manifest replaced; what it grows by comes out of the compiler's name.
  static std::string with_manifest(std::string bytes, const std::string& from,
                                   const std::string& to) {
    const size_t begin = bytes.find("{\"id\":");
    const size_t end = bytes.find("]}", bytes.find("\"keys\":[", begin)) + 2;
    std::string json = bytes.substr(begin, end - begin);
    json.replace(json.find(from), from.size(), to);
    const size_t compiler = json.find("\"compiler\":\"") + 12;
    if (json.size() > end - begin) json.erase(compiler, json.size() - (end - begin));
    json.resize(end - begin, ' ');
    return bytes.replace(begin, end - begin, json);
  }

 private:
  static inline int n_made_ = 0;
  std::filesystem::path root_;
};

}  // namespace dovetail::core
