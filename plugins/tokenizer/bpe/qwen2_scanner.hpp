// The Qwen2 / Qwen2.5 / Qwen3 split pattern as a hand-written scanner.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace dovetail::bpe {

/// A piece of a text, in bytes.
struct Piece {
  uint32_t begin, end;
};

/// The pattern exactly as tokenizer.json files spell it. A file is recognised by this text.
inline constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// Appends the pieces of text[begin, end), which they tile: what Split(kQwen2Pattern, Isolated)
/// makes of that stretch alone.
///
/// numerics  Unicode 16.0 classes. Looks at each byte at most four times.
/// threads   reentrant.
void scan_qwen2(std::string_view text, uint32_t begin, uint32_t end, std::vector<Piece>* out);

}  // namespace dovetail::bpe
