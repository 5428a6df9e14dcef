// What an unquoted YAML scalar means.
#pragma once

#include <string_view>

#include "core/base/node.hpp"
#include "core/base/status.hpp"

namespace dovetail::core {

/// The value of a plain scalar by YAML 1.2's core schema: null, a boolean, an integer (decimal, 0o17,
/// 0x1F), a number, or else a string. The program's locale has no effect.
/// An integer beyond int64 is a number with its spelling in number_text().
/// errors   kInvalid, without a place: leading zeros, .inf, .nan, a number beyond double.
Result<Node> read_plain_scalar(std::string_view text);

}  // namespace dovetail::core
