// Lower case as the reference computes it: each code point for itself, Unicode 17.0.
#pragma once

#include <cstdint>
#include <string>

namespace dovetail::bpe {

/// False if `code_point` is its own lower case; else appends that. U+0130 gives two code points, and
/// a sigma at the end of a word is like any other.
bool append_lowercase(uint32_t code_point, std::string* out);

}  // namespace dovetail::bpe
