// Prompt: a plain text as the tokens that the model reads; chat_format.hpp has conversations.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/status.hpp"
#include "core/text/tokenizer.hpp"

namespace dovetail::core {

/// A plain text, special tokens spelled out in it included.
Result<std::vector<uint32_t>> encode_text(const Tokenizer& tokenizer, std::string_view text);

/// The tokens that a tokenizer puts before every text (BOS), and a text without them and without what it would put
/// behind; special tokens spelled out in the text are plain text.
struct BareText {
  std::vector<uint32_t> prefix;
  std::vector<dvt_tok> tokens;
};
Result<BareText> encode_bare(const Tokenizer& tokenizer, std::string_view text);

}  // namespace dovetail::core
