// What keys a config may have: the fixed sections, and how a plugin declares its own.
//
// Validation, the typed settings, `config schema` and help all read this one table. Plugins' keys
// come in from outside as ParamSpecs, so nothing here knows the plugin interface.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/node.hpp"

namespace dovetail::core {

/// One declared key.
struct ParamSpec {
  enum class Type : uint8_t {
    kBool,
    kInt,
    kFloat,   // takes integers too
    kString,  // with `choices`, one of them
    kPath,    // a file or folder; a relative one is relative to the config that wrote it
    kAny,
  };
  /// In which forms the value may stand: bits.
  enum Form : uint8_t { kOne = 1, kList = 2, kMap = 4 };  // kMap: any keys, values of the type

  std::string name;
  Type type = Type::kString;
  uint8_t forms = kOne;
  std::optional<Node> default_value;
  std::optional<double> min, max;  // of a number, or of each item
  bool min_exclusive = false;
  bool max_exclusive = false;
  std::vector<std::string> choices;
  std::string help;  // one line
  bool required = false;
};

/// A map of a config with fixed keys. Where `plugin_kind` is set, further keys are parameters of the
/// plugin that `plugin_key` names.
struct Section {
  std::string name;  // "" is the top level
  std::string help;
  std::vector<ParamSpec> keys;
  std::string plugin_kind;
  std::string plugin_key;
};

/// Every fixed key, the top level first. `sampler` is not among them: it is a list of stages.
const std::vector<Section>& config_sections();
const Section* find_section(std::string_view name);
inline constexpr std::string_view kSamplerKey = "sampler";
inline constexpr std::string_view kSamplerKind = "sampler";
inline constexpr int64_t kConfigVersion = 1;

/// How the schema asks about plugins. Either may be empty: then plugin keys are not checked.
struct PluginParams {
  /// The parameters of a plugin, by its name or id; null if they are not known (yet). For kind
  /// "arch" the name is empty when the config leaves it to the checkpoint.
  std::function<const std::vector<ParamSpec>*(std::string_view kind, std::string_view name)> find;
  /// The names of the installed plugins of a kind.
  std::function<std::vector<std::string>(std::string_view kind)> names;
  /// Where plugins were searched, for messages: "looked in /a, /b". May be empty.
  std::function<std::string()> places = {};
};

}  // namespace dovetail::core
