// UTF-8 (RFC 3629): what is well formed, and text of bytes that are not.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dovetail::core {

/// Bytes of the character that `text` begins with; 0 if it is not well formed. `text` is not empty.
size_t utf8_sequence_len(std::string_view text);

/// The offset of the first byte that is not part of valid UTF-8, or npos.
size_t find_invalid_utf8(std::string_view text);

/// `text` with U+FFFD for each byte that is not part of valid UTF-8; one for the bytes of a character
/// that stops too early, as Unicode advises (chapter 3.9, maximal subparts).
std::string replace_invalid_utf8(std::string_view text);

}  // namespace dovetail::core
