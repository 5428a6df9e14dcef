// Tokenizer: text to ids and back, as a Hugging Face tokenizer.json describes it.
//
//   text -> added tokens cut out -> normalizer -> pre-tokenizer -> model on each piece -> ids
//
// Everything here is immutable after loading; what a call needs for itself is borrowed from a pool,
// so encode and decode may run on any number of threads at once.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "added_tokens.hpp"
#include "decoder.hpp"
#include "encoding.hpp"
#include "json_view.hpp"
#include "mapped_text.hpp"
#include "model.hpp"
#include "normalizer.hpp"
#include "post_processor.hpp"
#include "pre_tokenizer.hpp"

namespace dovetail::bpe {

struct EncodeOptions {
  AddedMatching matching = AddedMatching::kAll;
  std::span<const ByteRange> literal{};  // sorted: no added token is matched in or across these
  bool add_special = false;              // run the post-processor
  bool strict_utf8 = false;              // refuse broken UTF-8 instead of replacing it by U+FFFD
};

class Tokenizer {
 public:
  /// Reads a whole tokenizer.json.
  /// errors  kFormat: damaged or inconsistent; kUnsupported: a type or setting that is not
  ///         supported, by its path in the file.
  explicit Tokenizer(const JsonView& definition);
  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  /// Appends the tokens of `text`, each with the bytes of `text` that it stands for: spans rise and
  /// never overlap. Where normalization or the repair of broken UTF-8 rewrote the text, a rewritten
  /// place maps as a whole: tokens that share it lie at its start with no length, the last one takes it all.
  /// Tokens of the post-processor have no length and lie at the text's ends.
  /// errors   kInvalid: literal ranges out of order or beyond the text, text of 4 GiB or more,
  ///          broken UTF-8 with strict_utf8, text that the model has no token for.
  /// threads  any.
  void encode(std::string_view text, const EncodeOptions& options, std::vector<Token>* out) const;

  /// What the reference's encode gives for a text or a pair, with the file's truncation and padding.
  /// errors   those of encode, and of EncodingRules.
  Encoding encode_fully(std::string_view text, std::optional<std::string_view> pair,
                        const EncodeOptions& options) const;

  const Decoder& decoder() const { return decoder_; }
  const AddedTokens& added_tokens() const { return added_; }
  const Model& model() const { return *model_; }
  const Normalizer& normalizer() const { return normalizer_; }
  const PreTokenizer& pre_tokenizer() const { return pre_tokenizer_; }

  /// The id that stands for exactly this text: an added token, else a token of the vocabulary; or
  /// kNoId.
  uint32_t find(std::string_view text) const;

  /// SHA-256 over everything that encode depends on, however the file spells it.
  std::array<uint8_t, 32> identity() const;

 private:
  struct Scratch;
  class ScratchLoan;

  void encode_stretch(MappedText text, const MatchRules& rules, Scratch* scratch,
                      std::vector<Token>* out) const;
  void encode_plain(const MappedText& text, Scratch* scratch, std::vector<Token>* out) const;
  Token added_token(const Stretch& stretch, const MappedText& text) const;

  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  std::unique_ptr<Model> model_;
  AddedTokens added_;
  PostProcessor post_processor_;
  EncodingRules encoding_rules_;
  Decoder decoder_;
  std::string settings_;  // all sections but vocabulary and merges, in one canonical spelling
  mutable std::array<std::atomic<Scratch*>, 16> pool_{};
};

}  // namespace dovetail::bpe
