// Decoder: token ids back to text, at once or one id at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "added_tokens.hpp"
#include "decoder_steps.hpp"
#include "json_view.hpp"
#include "vocabulary.hpp"

namespace dovetail::bpe {

class Decoder {
 public:
  /// Reads the decoder section; decoder_steps.hpp says what it may hold.
  static Decoder from_json(const JsonView& section, const std::string& path,
                           const Vocabulary& vocabulary, const AddedTokens& added);

  uint32_t n_ids() const { return static_cast<uint32_t>(tokens_.size()); }  // largest id plus one
  bool has(uint32_t id) const { return id < tokens_.size() && tokens_[id].exists; }
  bool is_special(uint32_t id) const { return has(id) && tokens_[id].special; }
  bool is_added(uint32_t id) const { return has(id) && tokens_[id].added; }
  /// What the token contributes to a text, as in its middle; maybe half a character. Empty for an
  /// unknown id.
  std::string piece(uint32_t id) const;
  /// Most that one step or the flush of a stream gives.
  uint64_t max_step_bytes() const { return max_step_bytes_; }

  /// The text of `ids`. Unknown ids give nothing; each maximal broken part of UTF-8 one U+FFFD.
  std::string decode(std::span<const uint32_t> ids, bool skip_special) const;

 private:
  friend class DecodeStream;
  struct Entry {
    uint64_t begin = 0;
    uint32_t len = 0;
    bool exists = false, special = false, added = false;
  };

  bool takes(uint32_t id, bool skip_special) const {
    return has(id) && !(skip_special && tokens_[id].special);
  }

  std::string_view stored(uint32_t id) const;  // the id exists

  DecoderSteps steps_;
  bool byte_level_ = false;  // ByteLevel alone: tokens are stored as bytes and need no steps
  bool spaced_ = false;      // no decoder: a space between tokens
  std::string text_;
  std::vector<Entry> tokens_;  // by id
  uint64_t max_step_bytes_ = 0;
};

/// Text as it becomes complete. The steps and the flush joined equal decode() of all ids; no part
/// ever ends inside a character. The decoder must outlive the stream.
/// threads  one call at a time per stream.
class DecodeStream {
 public:
  DecodeStream(const Decoder& decoder, bool skip_special);

  std::string step(uint32_t id);
  /// What is left: U+FFFD for a character that was cut short, else nothing.
  std::string flush();

 private:
  const Decoder& decoder_;
  const bool skip_special_;
  std::optional<DecoderSteps::Stream> steps_;
  std::string tail_;  // of ByteLevel: at most three bytes, the start of a character
};

}  // namespace dovetail::bpe
