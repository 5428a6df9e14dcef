// File names in a config: which values are, and what a relative one is relative to.
#pragma once

#include <string>
#include <vector>

#include "core/base/node.hpp"
#include "core/config/variables.hpp"

namespace dovetail::core {

/// Path values of a config that is not expanded yet which start with a variable that is set: the
/// dotted names of their keys. A relative one means the working directory, as in the shell.
std::vector<std::string> paths_from_variables(const Node& config, const Environment& environment);

/// Makes every path value absolute; "~/" at its start is the home folder. A relative one is taken
/// from the folder of the file that wrote it, or from the working directory if it came from no
/// file or its key is among `from_variables`.
void make_paths_absolute(Node& config, const std::vector<std::string>& from_variables,
                         const Environment& environment);

}  // namespace dovetail::core
