// Unicode's normalization forms as the reference computes them: with the code points of Unicode 9.0
// and no others.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "mapped_text.hpp"

namespace dovetail::bpe {

enum class UnicodeForm : uint8_t { kNfc, kNfd, kNfkc, kNfkd };

/// Brings valid UTF-8 into a form. A code point that is not in Unicode 9.0 is a starter that neither
/// composes nor decomposes.
///
/// Returns false when the text is in that form already: then `layer` is untouched and the caller goes
/// on with `text`. Else it has the new text and maps it back to `text`; a changed segment (a base and
/// its marks) maps as a whole.
/// threads  reentrant.
bool to_form(UnicodeForm form, std::string_view text, Layer* layer);

inline bool nfc(std::string_view text, Layer* layer) {
  return to_form(UnicodeForm::kNfc, text, layer);
}

}  // namespace dovetail::bpe
