// What the names of tokenizer.ggml.pre stand for.
#pragma once

#include <array>
#include <string_view>

namespace dovetail::gguf {

/// How text is cut before BPE: by each pattern in turn (what it matches is a piece of its own, and so is what lies
/// between), then into bytes.
struct PreTokenizer {
  std::array<std::string_view, 3> patterns{};  // as many as are not empty
  bool splits_digits = false;                  // each digit is a piece, before all else
  bool is_gpt2 = false;         // cut by GPT-2's pattern, which is part of the step into bytes
  bool nfc = false;             // text is brought to NFC first
  bool ignores_merges = false;  // a piece that is a token is that token
  bool adds_bos = false;        // where tokenizer.ggml.add_bos_token does not say
};

/// Null for a name that is not known. Source: ggml-org/llama.cpp at 00ad355e, src/llama-vocab.cpp, for which model
/// each name is; the patterns are those of the models' own tokenizer.json.
const PreTokenizer* find_pre_tokenizer(std::string_view name);
/// "gpt-2, llama-bpe, qwen2, ...", for messages.
std::string_view known_pre_tokenizers();

}  // namespace dovetail::gguf
