// The "tokenizer" document: the vocabulary of the metadata as a tokenizer.json.
#pragma once

#include <string>
#include <vector>

#include "metadata.hpp"

namespace dovetail::gguf {

/// What tokenizer.ggml.token_type says of a token.
enum class TokenType : int32_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

struct Vocabulary {
  std::vector<std::string_view> tokens;
  std::vector<TokenType> types;

  /// Empty for an id that is none.
  std::string_view token(std::optional<int64_t> id) const;
};
/// Empty without tokenizer.ggml.tokens.
/// errors   DVT_EFORMAT: types or scores that are not as many as tokens.
Vocabulary read_vocabulary(const Metadata& metadata);

/// Whether bos comes before a text, and eos after it, where nobody says otherwise.
bool adds_bos(const Metadata& metadata);
bool adds_eos(const Metadata& metadata);

/// For tokenizer.ggml.model "gpt2" (byte-level BPE) and "llama" (SentencePiece BPE, whose merges are made of the
/// scores as transformers makes them); tokenizer.huggingface.json as it is, if it is there. Ids without a token are
/// left out. Empty without a vocabulary.
/// errors   DVT_EUNSUPPORTED: another model, an unknown tokenizer.ggml.pre. DVT_EFORMAT.
/// source   huggingface/transformers, convert_slow_tokenizer.py, for the form of SentencePiece models.
std::string tokenizer_json(const Metadata& metadata, const Host& host);

}  // namespace dovetail::gguf
