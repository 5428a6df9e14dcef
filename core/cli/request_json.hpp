// JSON that a user hands to a command: what is wrong with it is a wrong request, no damaged model.
#pragma once

#include <string>
#include <string_view>

#include "core/base/node.hpp"
#include "core/base/status.hpp"

namespace dovetail::core {

/// parse_json(); a syntax error is kInvalid.
Result<Node> parse_request(std::string_view text, const std::string& where);
/// The same of a file; "-" is standard input.
Result<Node> read_request(const std::string& path);

}  // namespace dovetail::core
