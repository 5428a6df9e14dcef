// A YAML config: read and shown again, and loaded over the defaults with every check that `dovetail run` makes.
#include "core/config/yaml.hpp"

#include <map>

#include "core/config/check_value.hpp"
#include "core/config/load.hpp"
#include "core/config/settings.hpp"
#include "core/config/show.hpp"
#include "core/config/validate.hpp"
#include "core/model/plugin_params.hpp"
#include "tests/fuzz/rig.hpp"

namespace dovetail::core::fuzz {
namespace {

using Specs = std::vector<ParamSpec>;

/// What the built samplers, the tokenizer and the architecture declare.
const PluginParams& declared() {
  static const std::map<std::pair<std::string, std::string>, Specs> all = [] {
    std::map<std::pair<std::string, std::string>, Specs> out;
    for (const char* kind : {"sampler", "tokenizer", "arch"})
      for (const std::string& name : plugins().names(kind)) {
        Result<Specs> specs = param_specs(*plugin(kind, name).table);
        must(specs.is_ok(), specs.status().message());
        out[{kind, name}] = std::move(*specs);
      }
    return out;
  }();
  static const PluginParams params = [] {
    PluginParams out;
    out.find = [](std::string_view kind, std::string_view name) {
      const auto at = all.find({std::string(kind), std::string(name)});
      return at == all.end() ? nullptr : &at->second;
    };
    out.names = [](std::string_view kind) { return plugins().names(kind); };
    return out;
  }();
  return params;
}

void show_again(std::string_view text) {
  const Result<Node> node = parse_yaml(text, "x.yaml");
  if (!node) return must_explain(node.status());
  const std::string shown = show_config(*node, true);
  const Result<Node> again = parse_yaml(shown, "shown");
  must(again.is_ok(), again.status().message() + "\nin what was shown:\n" + shown);
}

void load(std::string_view text) {
  LoadOptions options;
  options.defaults_path = std::string(DVT_SOURCE_DIR) + "/configs/defaults.yaml";
  options.environment = [](const std::string& name) {
    return name == "X" ? std::optional<std::string>("value") : std::nullopt;
  };
  const Result<Node> config =
      load_config_text(text, std::string(DVT_SOURCE_DIR) + "/configs/x.yaml", options);
  if (!config) return must_explain(config.status());
  (void)show_config(*config, false);
  if (const Status valid = validate(*config, declared()); !valid.is_ok()) must_explain(valid);
  const Result<Settings> settings = read_settings(*config);
  if (!settings) return must_explain(settings.status());
  for (const PluginUse& stage : settings->sampler)
    if (const Specs* specs = declared().find("sampler", stage.name))
      (void)complete_params(stage.params, *specs, stage.path);
}

}  // namespace
}  // namespace dovetail::core::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  dovetail::core::fuzz::show_again(text);
  dovetail::core::fuzz::load(text);
  return 0;
}
