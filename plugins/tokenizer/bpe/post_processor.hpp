// PostProcessor: the ids that a tokenizer puts around a text when asked to (BOS and the like).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "json_view.hpp"

namespace dovetail::bpe {

/// Supported: null, ByteLevel (which only trims reported offsets: nothing to do), TemplateProcessing,
/// BertProcessing, RobertaProcessing and Sequence; for single texts.
struct PostProcessor {
  std::vector<uint32_t> before, after;

  static PostProcessor from_json(const JsonView& section, const std::string& path);
};

}  // namespace dovetail::bpe
