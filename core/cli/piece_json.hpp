// Token pieces as every command's --json writes them.
#pragma once

#include <string_view>

#include "core/base/node.hpp"

namespace dovetail::core {

/// Sets "piece" of a map to the token's text and, where its bytes are not UTF-8 by themselves (half of
/// a character), "bytes" to the list of them; "piece" then has U+FFFD in their place. docs/cli.md.
void set_piece(Node& entry, std::string_view piece);

}  // namespace dovetail::core
