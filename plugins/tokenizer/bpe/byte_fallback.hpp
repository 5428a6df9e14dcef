// Byte fallback: the tokens <0x00> to <0xFF> that spell out what the vocabulary has no token for.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "vocabulary.hpp"

namespace dovetail::bpe {

/// The id of each byte's token, kNoId where the vocabulary lacks it. 256 entries.
std::vector<uint32_t> find_byte_tokens(const Vocabulary& vocabulary);

/// True if there is a token for each byte of `text`; never with an empty table.
bool has_all_bytes(const std::vector<uint32_t>& id_of_byte, std::string_view text);

/// The byte that a token of the exact form <0xHH> stands for, or -1.
int byte_of_token(std::string_view token);

}  // namespace dovetail::bpe
