// "did you mean": the known name that is closest to a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dovetail::core {

/// The nearest of `names` by edits (insert, delete, replace, swap of neighbours), the first on ties;
/// empty if none is near enough to be meant: a third of the letters, at least one edit.
std::string nearest_name(std::string_view name, const std::vector<std::string>& names);

/// `, did you mean "x"?`, or nothing.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& names);

}  // namespace dovetail::core
