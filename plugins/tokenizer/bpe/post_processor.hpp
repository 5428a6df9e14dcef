// PostProcessor: the ids that a tokenizer puts around a text, or around a pair of texts, when asked
// to (BOS and the like).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "json_view.hpp"

namespace dovetail::bpe {

/// A place in the result: one of the texts, or a token of the post-processor.
struct TemplateItem {
  enum class Kind : uint8_t { kText, kPair, kToken } kind;
  uint32_t type_id;
  uint32_t id = 0;  // of a token
};

/// Supported: null, ByteLevel (which only trims reported offsets: nothing to do), TemplateProcessing,
/// BertProcessing, RobertaProcessing and Sequence.
struct PostProcessor {
  std::vector<TemplateItem> single, pair;

  // Of `single`: the ids before and after the text.
  std::vector<uint32_t> before, after;

  /// errors  kFormat, kUnsupported, with the path.
  static PostProcessor from_json(const JsonView& section, const std::string& path);
};

}  // namespace dovetail::bpe
