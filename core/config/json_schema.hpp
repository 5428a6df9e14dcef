// `dovetail config schema`: the declared keys as a JSON Schema, for editors.
#pragma once

#include "core/base/node.hpp"
#include "core/config/schema.hpp"

namespace dovetail::core {

/// A JSON Schema (2020-12) of configs, with the parameters of every plugin that `params` names.
/// It is as strict as validate() about keys, types and ranges; it knows nothing of `extends`.
Node json_schema(const PluginParams& params);

}  // namespace dovetail::core
