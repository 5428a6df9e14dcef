// How a plugin's declared parameters (dvt_param) read as the config's ParamSpec.
#pragma once

#include <dovetail/abi/plugin.h>

#include <vector>

#include "core/base/status.hpp"
#include "core/config/schema.hpp"

namespace dovetail::core {

/// errors  kInvalid: a default that is not a YAML scalar of its type. `plugin` is for messages.
Result<std::vector<ParamSpec>> param_specs(const dvt_plugin_v1& plugin);

}  // namespace dovetail::core
