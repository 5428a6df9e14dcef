// The configs that people get: each loads, and docs/config.md knows every key.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "core/config/load.hpp"
#include "core/config/settings.hpp"
#include "core/config/show.hpp"
#include "tests/core/config/nodes.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

LoadOptions shipped_options() {
  LoadOptions options;
  options.defaults_path = "configs/defaults.yaml";
  options.environment = [](const std::string&) { return std::nullopt; };
  return options;
}

TEST(ShippedConfigs, EachLoadsAndShowsItselfBack) {
  int n_configs = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator("configs")) {
    if (entry.path().extension() != ".yaml") continue;
    ++n_configs;
    const std::string path = entry.path().string();
    const Result<Node> config = load_config(path, shipped_options());
    ASSERT_TRUE(config.is_ok()) << config.status().message();
    const Result<Node> again =
        load_config_text(show_config(*config, true), "shown", shipped_options());
    ASSERT_TRUE(again.is_ok()) << again.status().message();
    EXPECT_TRUE(same_values(*config, *again)) << path;
    if (path != "configs/defaults.yaml") {
      const Result<Settings> settings = read_settings(*config);
      EXPECT_TRUE(settings.is_ok()) << settings.status().message();
    }
  }
  EXPECT_GE(n_configs, 6);
}

TEST(ShippedConfigs, TheDemoNamesItsFolder) {
  const Result<Node> config = load_config("configs/demo.yaml", shipped_options());
  ASSERT_TRUE(config.is_ok()) << config.status().message();
  EXPECT_EQ(read_settings(*config)->model.path, fs::absolute("configs/demo").string());
}

TEST(ShippedConfigs, Qwen3IsLookedForWhereTheVariableSays) {
  LoadOptions options = shipped_options();
  for (const char* size : {"0.6", "1.7", "4", "8"}) {
    const std::string name = std::string("Qwen3-") + size + "B";
    const std::string path = std::string("configs/qwen3-") + size + "b.yaml";
    options.environment = shipped_options().environment;
    EXPECT_EQ(read_settings(*load_config(path, options))->model.path,
              fs::absolute("models/" + name).string());
    options.environment = [](const std::string& variable) {
      return variable == "DOVETAIL_MODELS" ? std::optional<std::string>("/data") : std::nullopt;
    };
    const Result<Settings> settings = read_settings(*load_config(path, options));
    EXPECT_EQ(settings->model.path, "/data/" + name);
    EXPECT_EQ(settings->model.name, name);
    ASSERT_EQ(settings->sampler.size(), 3u);
    EXPECT_EQ(settings->sampler[0].params.as_float(), 0.6);
    EXPECT_EQ(settings->sampler[1].params.as_int(), 20);
    EXPECT_EQ(settings->sampler[2].params.as_float(), 0.95);
  }
}

TEST(ShippedConfigs, TheManualHasEveryKeyAndNoOther) {
  std::ifstream in("docs/config.md");
  const std::string manual{std::istreambuf_iterator<char>(in), {}};
  std::set<std::string> documented;  // keys stand first in the rows of tables: | `backend.plugin` |
  for (size_t at = manual.find("\n| `"); at != std::string::npos;
       at = manual.find("\n| `", at + 1)) {
    documented.insert(manual.substr(at + 4, manual.find('`', at + 4) - at - 4));
  }
  std::set<std::string> declared = {"sampler"};
  for (const Section& section : config_sections()) {
    for (const ParamSpec& spec : section.keys) {
      declared.insert(section.name.empty() ? spec.name : section.name + "." + spec.name);
    }
  }
  EXPECT_EQ(documented, declared);
}

}  // namespace
}  // namespace dovetail::core
