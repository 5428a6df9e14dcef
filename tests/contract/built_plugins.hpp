// The plugins that the build made, found by listing their folders and loaded as the program loads them:
// what a contract suite of a kind runs over.
//
// A suite whose plugins need files of their own finds them in tests/plugins/KIND/NAME/contract/, so that
// a new plugin brings its fixture with its test and no suite is edited.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/thread_pool.hpp"
#include "core/plugin/call_frame.hpp"
#include "core/plugin/host.hpp"
#include "core/plugin/registry.hpp"

namespace dovetail::core::test {

/// A plugin that the build made. `name` is its file's, which its manifest must repeat.
struct BuiltPlugin {
  std::string kind, name;
  std::filesystem::path file;

  std::filesystem::path fixture() const {
    return std::filesystem::path("tests/plugins") / kind / name / "contract";
  }
};
inline void PrintTo(const BuiltPlugin& p, std::ostream* out) {
  *out << p.file.string();
}

/// Where the build leaves plugins: those of the program, then those that only tests use.
inline std::vector<std::filesystem::path> plugin_folders() {
  const std::filesystem::path build = DVT_BUILD_DIR;
  return {build / "lib/dovetail/plugins", build / "tests/plugins"};
}

/// All plugins of a kind, or of every kind.
inline std::vector<BuiltPlugin> built_plugins(const std::string& wanted_kind = {}) {
  namespace fs = std::filesystem;
  std::vector<BuiltPlugin> out;
  std::error_code error;
  for (const fs::path& folder : plugin_folders())
    for (const auto& kind : fs::directory_iterator(folder, error)) {
      if (!kind.is_directory()) continue;
      const std::string name = kind.path().filename().string();
      if (!wanted_kind.empty() && name != wanted_kind) continue;
      for (const auto& file : fs::directory_iterator(kind.path()))
        if (file.path().extension() == ".so")
          out.push_back({name, file.path().stem().string(), file.path()});
    }
  std::sort(out.begin(), out.end(), [](const BuiltPlugin& a, const BuiltPlugin& b) {
    return std::tie(a.kind, a.name) < std::tie(b.kind, b.name);
  });
  return out;
}

/// For INSTANTIATE_TEST_SUITE_P: letters, digits and _.
inline std::string test_name(const testing::TestParamInfo<BuiltPlugin>& info) {
  std::string out = info.param.kind + "_" + info.param.name;
  for (char& c : out)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return out;
}

/// The host of a test program: every built plugin through the registry. get() has two lanes.
class ContractHost {
 public:
  explicit ContractHost(uint32_t n_lanes) : pool_(n_lanes) { open_registry(); }
  static ContractHost& get() {
    static ContractHost host(2);
    return host;
  }
  HostServices& services() { return services_; }
  /// The plugin, loaded and started; fails the test and gives null otherwise.
  LoadedPlugin* load(const BuiltPlugin& plugin) {
    if (!registry_) {
      ADD_FAILURE() << why_;
      return nullptr;
    }
    Result<LoadedPlugin*> loaded = registry_->load(plugin.kind, plugin.name);
    EXPECT_TRUE(loaded) << loaded.status().message();
    return loaded ? *loaded : nullptr;
  }
  /// Memory that plugins have asked this host for and not given back.
  uint64_t live_bytes() const {
    uint64_t sum = 0;
    for (const HostMemoryRow& row : services_.memory()) sum += row.live_bytes;
    return sum;
  }

 private:
  void open_registry() {
    SearchOptions options;
    options.environment = {};
    options.program = std::string(DVT_BUILD_DIR) + "/bin/dovetail";
    options.paths = {plugin_folders().back().string()};
    Result<std::unique_ptr<PluginRegistry>> registry = PluginRegistry::create(options, services_);
    if (registry) {
      registry_ = std::move(*registry);
    } else {
      why_ = registry.status().message();
    }
  }

  ThreadPool pool_;
  HostServices services_{pool_};
  std::unique_ptr<PluginRegistry> registry_;
  std::string why_;
};

/// The plugin's parameters at their defaults, as the core hands them over when a config sets none.
inline Node default_params(const LoadedPlugin& plugin) {
  Node out = Node::make_map();
  for (const dvt_param& p : plugin.params()) {
    const std::string text(text_of(p.default_text)), name(text_of(p.name));
    if (text.empty()) continue;  // no default
    if (p.type == DVT_PARAM_STR) {
      out.set(name, Node::make_string(text));
      continue;
    }
    Result<Node> value =
        parse_json(text, name);  // numbers, true and false read alike in YAML and JSON
    EXPECT_TRUE(value) << name << ": " << value.status().message();
    if (value) out.set(name, std::move(*value));
  }
  return out;
}

/// A frame that knows whether the plugin gave a reason.
class Frame {
 public:
  explicit Frame(const uint32_t* cancel = nullptr) {
    frame_ = {sizeof frame_, 0, cancel, this, &Frame::fail, &Frame::scratch, nullptr};
  }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  operator dvt_call*() { return &frame_; }  // NOLINT(google-explicit-constructor)

  /// What the last failure said; empty if it said nothing. Taking it forgets it.
  std::string reason() { return std::exchange(reason_, {}); }

 private:
  static void fail(dvt_call* call, dvt_code, dvt_str msg, dvt_str where) noexcept {
    auto& self = *static_cast<Frame*>(call->host);
    const std::lock_guard lock(self.mutex_);
    self.reason_ = std::string(text_of(where));
    if (!self.reason_.empty()) self.reason_ += ": ";
    self.reason_ += text_of(msg);
  }
  static void* scratch(dvt_call* call, uint64_t n, uint64_t align) noexcept {
    auto& self = *static_cast<Frame*>(call->host);
    return self.inner_.get()->scratch(self.inner_.get(), n, align);
  }

  dvt_call frame_{};
  CallFrame inner_;  // for its scratch memory
  std::mutex mutex_;
  std::string reason_;
};

inline void expect_refused(dvt_code code, Frame& call, dvt_code expected, const std::string& what) {
  EXPECT_EQ(code, expected) << what;
  EXPECT_FALSE(call.reason().empty()) << what << ": refused without a reason";
}
inline void expect_ok(dvt_code code, Frame& call, const std::string& what) {
  EXPECT_EQ(code, DVT_OK) << what << ": " << call.reason();
}

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path << " cannot be read";
  return std::string((std::istreambuf_iterator<char>(in)), {});
}

}  // namespace dovetail::core::test
