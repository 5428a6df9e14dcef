// Replacing broken UTF-8, so that everything after it sees valid text.
#pragma once

#include <string>
#include <string_view>

#include "alignment.hpp"

namespace dovetail::bpe {

/// Appends `text` to `out` with every maximal broken part (the "maximal subpart" of Unicode and
/// WHATWG) replaced by one U+FFFD; `alignment` maps that back to `text`.
void repair_utf8(std::string_view text, std::string* out, Alignment* alignment);

/// The same for text that may go on: a character cut short at the end is left out, and its length
/// in bytes returned (else 0).
size_t append_repaired(std::string_view bytes, std::string* out);

}  // namespace dovetail::bpe
