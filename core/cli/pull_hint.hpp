// Where `dovetail pull` puts a model, and the advice to use it.
#pragma once

#include <filesystem>
#include <string>

#include "core/config/variables.hpp"

namespace dovetail::core {

/// NAME of "ORG/NAME" in the folder that DOVETAIL_MODELS names, else in models/.
std::filesystem::path pull_folder(const std::string& id, const Environment& environment);

/// For a path that is not there: "; ..." with the folder that a pull of this name has made, or with the pull
/// that would make it. Empty if the path looks like neither ORG/NAME nor a folder of models.
std::string pull_hint(const std::string& path, const Environment& environment);

}  // namespace dovetail::core
