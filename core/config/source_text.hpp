// Checks on the bytes of a source file before any parser sees them.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/base/node.hpp"
#include "core/base/status.hpp"

namespace dovetail::core {

/// Whether `text` may be read as YAML at all: size, encoding, control characters.
/// errors   kInvalid, with the place of the first bad byte.
Status check_source_text(std::string_view text, const std::string& source);

/// `text` in quotes for a message, control characters escaped and no longer than a line.
std::string quote_for_message(std::string_view text);

}  // namespace dovetail::core
