// NFC as the reference computes it: with the code points of Unicode 9.0 and no others.
#pragma once

#include <string>
#include <string_view>

#include "alignment.hpp"

namespace dovetail::bpe {

/// Normalizes valid UTF-8 to NFC. A code point that is not in Unicode 9.0 is a starter that neither
/// composes nor decomposes.
///
/// Returns false when the text is already normalized: then `out` is untouched and the caller goes
/// on with `text`. Else `out` is the new text and `alignment` maps it back to `text`; a changed
/// segment (a base and its marks) maps as a whole.
/// threads  reentrant.
bool nfc(std::string_view text, std::string* out, Alignment* alignment);

}  // namespace dovetail::bpe
