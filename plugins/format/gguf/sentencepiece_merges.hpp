// The merges of a SentencePiece vocabulary, which a GGUF file has as scores.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "metadata.hpp"

namespace dovetail::gguf {

struct Merge {
  std::string_view left, right;  // of the tokens given
  double score;
  uint32_t left_id, right_id;
};

/// All ways to make each token of two others, as transformers sorts them: those of the greatest score first, and of
/// one token the ways by the places of their parts; a longer left part goes before a shorter one. An empty token is
/// no part. Takes time with the tokens' bytes and the ways found.
/// errors   DVT_EFORMAT: a score that is not finite, more ways than a tokenizer takes.
/// source   huggingface/transformers, convert_slow_tokenizer.py.
std::vector<Merge> merges_by_score(const Metadata& metadata, const std::vector<std::string>& tokens,
                                   const Value& scores);

}  // namespace dovetail::gguf
