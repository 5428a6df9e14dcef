// A whole config against its declared keys.
#pragma once

#include "core/base/node.hpp"
#include "core/base/status.hpp"
#include "core/config/schema.hpp"

namespace dovetail::core {

/// Checks an effective config. With empty `params` only the fixed keys are checked; call it again
/// when the plugins that the config names are loaded.
/// errors   kInvalid: one "origin: what" per line, at most 20.
Status validate(const Node& config, const PluginParams& params);

}  // namespace dovetail::core
