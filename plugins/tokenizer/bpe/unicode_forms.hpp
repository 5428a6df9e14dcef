// Unicode's normalization forms as the reference computes them: with the code points of Unicode 9.0
// and no others.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "alignment.hpp"

namespace dovetail::bpe {

enum class UnicodeForm : uint8_t { kNfc, kNfd, kNfkc, kNfkd };

/// Brings valid UTF-8 into a form. A code point that is not in Unicode 9.0 is a starter that neither
/// composes nor decomposes.
///
/// Returns false when the text is in that form already: then `out` is untouched and the caller goes
/// on with `text`. Else `out` is the new text and `alignment` maps it back to `text`; a changed
/// segment (a base and its marks) maps as a whole.
/// threads  reentrant.
bool to_form(UnicodeForm form, std::string_view text, std::string* out, Alignment* alignment);

inline bool nfc(std::string_view text, std::string* out, Alignment* alignment) {
  return to_form(UnicodeForm::kNfc, text, out, alignment);
}

}  // namespace dovetail::bpe
