// Encoding: the whole result that the reference gives for a text or a pair of texts, with token types,
// masks, truncation and padding.
//
// The engine does not ask for it: it encodes prompts, and the truncation and padding that some files
// carry from their training would cut those.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "json_view.hpp"
#include "model.hpp"
#include "post_processor.hpp"

namespace dovetail::bpe {

struct Encoding {
  std::vector<Token> tokens;          // spans count from the start of the text they are of
  std::vector<uint32_t> type_ids;     // by token, as are the masks
  std::vector<uint8_t> is_added;      // by the post-processor or as padding
  std::vector<uint8_t> is_attended;   // no padding
  std::vector<Encoding> overflowing;  // what truncation cut off, each part in full dress
};

class EncodingRules {
 public:
  EncodingRules() = default;  // neither truncation nor padding
  /// Reads the truncation and padding sections of a definition.
  static EncodingRules from_json(const JsonView& definition);

  /// Puts tokens of one or two texts together.
  /// errors  kInvalid: a truncation strategy that these texts do not allow.
  Encoding apply(std::span<const Token> text, std::optional<std::span<const Token>> pair,
                 bool add_special, const PostProcessor& processor) const;

 private:
  enum class Strategy { kLongestFirst, kOnlyFirst, kOnlySecond };
  struct Truncation {
    Strategy strategy;
    bool from_left;
    uint64_t max_len, stride;
  };
  struct Padding {
    uint64_t fixed_len = 0;  // 0: as long as the encoding is
    uint64_t multiple_of = 1;
    bool on_left = false;
    uint32_t id, type_id;
  };

  void truncate(uint64_t n_added, std::vector<std::span<const Token>>* texts,
                std::vector<std::span<const Token>>* pairs) const;
  void pad(Encoding* encoding) const;

  std::optional<Truncation> truncation_;
  std::optional<Padding> padding_;
};

}  // namespace dovetail::bpe
