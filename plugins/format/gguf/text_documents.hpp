// The "tokenizer_config" and "generation" documents.
#pragma once

#include <string>

#include "metadata.hpp"

namespace dovetail::gguf {

/// chat_template, bos_token, eos_token, unk_token, pad_token, add_bos_token, add_eos_token. Empty without any.
std::string tokenizer_config_json(const Metadata& metadata);

/// temperature, top_k, top_p, min_p, repetition_penalty of general.sampling, and eos_token_id: the ids that end a
/// text or a turn, which are those that the metadata names and control tokens that are known to. Empty without any.
std::string generation_json(const Metadata& metadata);

}  // namespace dovetail::gguf
