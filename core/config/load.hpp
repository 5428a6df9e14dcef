// From a config's path to the effective config: every layer merged, every string expanded.
//
// Lowest to highest: configs/defaults.yaml, what the file extends, the file, the variable
// DOVETAIL_SET, --set. The result holds plain values, each with the place that wrote it.
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

/// Reads `path`. The fixed keys are checked (see validate.hpp), plugins' own are not yet.
/// Paths in it are absolute afterwards: a relative one is taken from the folder of the config that
/// wrote it, or from the working directory if it came from the command line or a variable.
/// errors   kInvalid: syntax, unknown keys, types, cycles, unset variables. kIo: a file.
Result<Node> load_config(const std::string& path, const LoadOptions& options = {});

/// The same for a text that is already there; `source` names it, and its folder, like a path.
Result<Node> load_config_text(std::string_view text, const std::string& source,
                              const LoadOptions& options = {});

/// The config that `dovetail run FOLDER` means: nothing but defaults and this model.path.
Result<Node> config_for_checkpoint(const std::string& model_path, const LoadOptions& options = {});

}  // namespace dovetail::core
