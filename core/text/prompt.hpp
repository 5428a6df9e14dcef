// Prompt: what a user said, as the tokens that the model reads.
//
// With a chat template the messages are rendered first; what users wrote is encoded literally, so
// that "<|im_end|>" in a message is ten characters and not the end of a turn.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/node.hpp"
#include "core/base/status.hpp"
#include "core/text/template/chat_template.hpp"
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

/// Messages through a chat template. `context` is a map with "messages" and whatever else the
/// template reads ("tools", "enable_thinking"); add_generation_prompt is set unless it is there.
Result<std::vector<uint32_t>> encode_chat(const Tokenizer& tokenizer,
                                          const ChatTemplate& chat_template, Node context);

/// {"role": role, "content": content}
Node chat_message(std::string_view role, std::string_view content);

/// The variables that a template may read about special tokens (bos_token, eos_token, ...), from
/// tokenizer_config.json.
void add_special_tokens(Node& context, const Node& tokenizer_config);

}  // namespace dovetail::core
