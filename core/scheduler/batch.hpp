// Batch: the tokens of one step, of many requests, ragged and never padded.
#pragma once

#include <dovetail/abi/backend.h>

#include <cstdint>
#include <vector>

namespace dovetail::core {

struct Request;

/// The part of one request in a step: the next n_tokens that are not in its cache.
struct BatchEntry {
  Request* request = nullptr;
  uint32_t first = 0;  // index of its first token in the batch
  uint32_t n_tokens = 0;
  bool wants_logits = false;   // its last token is the last one known: draw the next
  uint32_t row = 0;            // of the logits, if it wants them
  dvt_token_from last_from{};  // where its last token comes from, if that is not read yet
};

struct Batch {
  std::vector<BatchEntry> entries;
  uint32_t n_tokens = 0, n_rows = 0;
  bool empty() const { return entries.empty(); }
  void clear() {
    entries.clear();
    n_tokens = n_rows = 0;
  }
};

}  // namespace dovetail::core
