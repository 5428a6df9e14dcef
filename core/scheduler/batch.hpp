// Batch: the tokens of one step, of many requests, ragged and never padded.
#pragma once

#include <cstdint>
#include <vector>

namespace dovetail::core {

struct Request;

/// The part of one request in a step: the next n_tokens that are not in its cache.
struct BatchEntry {
  Request* request = nullptr;
  uint32_t first = 0;  // index of its first token in the batch
  uint32_t n_tokens = 0;
  bool wants_logits = false;  // its last token is the last one known: draw the next
  uint32_t row = 0;           // of the logits, if it wants them
};

struct Batch {
  std::vector<BatchEntry> entries;
  uint32_t n_tokens = 0, n_rows = 0;
  bool empty() const { return entries.empty(); }
};

}  // namespace dovetail::core
