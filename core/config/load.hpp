// From a config's path to the effective config: every layer merged, every string expanded.
//
// Lowest to highest: configs/defaults.yaml, what the checkpoint says of itself (generation.hpp), what the file
// extends, the file, the variable DOVETAIL_SET, --set. The result holds plain values, each with the place that wrote it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/node.hpp"
#include "core/base/status.hpp"
#include "core/config/variables.hpp"

namespace dovetail::core {

struct LoadOptions {
  std::string defaults_path;      // configs/defaults.yaml of this installation; empty: no defaults
  std::vector<std::string> sets;  // "a.b.c=VALUE", in the order given
  Environment environment = process_environment();
};

/// A config's layers, read and not yet merged: where the checkpoint is must be known before what it says.
class ConfigLayers {
 public:
  /// errors   kInvalid: syntax, cycles. kIo: a file.
  static Result<ConfigLayers> read(const std::string& path, const LoadOptions& options = {});
  /// The same for a text that is already there; `source` names it, and its folder, like a path.
  static Result<ConfigLayers> read_text(std::string_view text, const std::string& source,
                                        const LoadOptions& options = {});
  /// The config that `dovetail run FOLDER` means: nothing but defaults and this model.path.
  static Result<ConfigLayers> for_checkpoint(const std::string& model_path,
                                             const LoadOptions& options = {});

  /// All layers merged. The fixed keys are checked (see validate.hpp), plugins' own are not yet. Paths in it are
  /// absolute: a relative one is taken from the folder of the config that wrote it, or from the working directory
  /// if it came from the command line or a variable. `checkpoint` is the layer of the checkpoint, or null.
  /// errors   kInvalid: unknown keys, types, unset variables, --set that fits nothing.
  Result<Node> effective(const Node& checkpoint = {}) const;
  /// The same without `sampler` and what sets it, which may need the layer of the checkpoint.
  Result<Node> without_sampler() const;

 private:
  static Result<ConfigLayers> over_defaults(Node config, const LoadOptions& options);
  Result<Node> merged(Node config, Node defaults, bool with_sampler) const;

  Node defaults_ = Node::make_map(), config_;
  LoadOptions options_;
};

/// ConfigLayers::read() and effective() in one, without a checkpoint.
Result<Node> load_config(const std::string& path, const LoadOptions& options = {});
Result<Node> load_config_text(std::string_view text, const std::string& source,
                              const LoadOptions& options = {});

}  // namespace dovetail::core
