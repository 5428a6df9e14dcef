// `dovetail config show`: a config as YAML again.
#pragma once

#include <string>

#include "core/base/node.hpp"

namespace dovetail::core {

/// Writes an effective config so that reading it gives the same values: strings in quotes where
/// needed, numbers as they were spelled, "${" as "$${". With `with_origins` every value ends with a
/// comment that says which place wrote it.
std::string show_config(const Node& config, bool with_origins);

}  // namespace dovetail::core
