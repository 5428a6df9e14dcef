// ${VAR} and ${VAR:-default} in strings.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/node.hpp"
#include "core/base/status.hpp"

namespace dovetail::core {

/// Looks up an environment variable; tests give their own.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// The process's environment.
Environment process_environment();

/// Replaces ${VAR} and ${VAR:-default} (used when VAR is unset or empty); "$${" stands for "${", any
/// other dollar for itself. A default ends at the first "}" and is taken as it is.
/// errors   kInvalid, without a place: an unset variable with no default, a bad or unclosed name.
Result<std::string> expand_variables(std::string_view text, const Environment& environment);

/// `text` so that expand_variables() gives it back.
std::string escape_variables(std::string_view text);

/// Expands every string value below `node`; keys stay as they are.
/// errors   kInvalid, with the value's origin and path.
Status expand_all(Node& node, const Environment& environment);

}  // namespace dovetail::core
