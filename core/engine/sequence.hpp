// Sequence: one text alone in a model's cache, without scheduler, sampler or other requests: what
// measurements and demonstrations run, and from which they read more than the next token.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.hpp"
#include "core/engine/batch_buffers.hpp"
#include "core/model/model.hpp"
#include "core/scheduler/request.hpp"

namespace dovetail::core {

/// What a run gives besides the cache's new rows.
struct SequenceWants {
  struct Value {
    std::string name;    // observed when the model was loaded: "layer_out.0"
    size_t row_len = 0;  // numbers of a token
  };
  size_t first_row = 0;       // logits of the token at this position and of all after it
  uint32_t step_len = 0;      // tokens of a step; 0: as many as the model takes
  std::vector<Value> values;  // of every token
};

/// What one step of a run gave; valid until the sink returns.
struct SequenceStep {
  size_t first = 0;  // position of its first token
  size_t n_tokens = 0;
  size_t first_row = 0, n_rows = 0;            // positions whose logits are there
  std::span<const float> logits;               // [n_rows, V]
  std::vector<std::span<const float>> values;  // [n_values] of [n_tokens, row_len]
};
using SequenceSink = std::function<Status(const SequenceStep&)>;

/// Says whether a model can read these ids: there is one, its vocabulary has them all, its context holds them.
Status check_ids(const Model& model, std::span<const TokenId> ids);

class Sequence {
 public:
  /// A step has at most max_step_len tokens: what the model was compiled for (scheduler.max_batch_tokens).
  /// More than one row of logits a step needs a model loaded with all_rows.
  Sequence(Model& model, uint32_t max_step_len, std::vector<TokenId> tokens);

  void append(TokenId token) { request_.tokens.push_back(token); }
  /// Tokens that are not in the cache yet.
  size_t n_pending() const { return request_.n_pending(); }

  /// Runs all pending tokens.
  /// errors  kNoMemory: the cache is too small. What the model and the sink report.
  Status run(const SequenceWants& wants, const SequenceSink& sink);

  // For who submits steps himself: reserve() once for all tokens, then fill(), submit, advance().
  Status reserve(size_t n_tokens);
  /// The next `count` tokens, with logits of the last n_rows of them. Valid until the call after the next: one
  /// batch may run while another is filled.
  dvt_batch fill(uint32_t count, uint32_t n_rows);
  void advance(uint32_t count) { request_.cache.n_cached += count; }

 private:
  /// A batch and what it points to.
  struct Step {
    BatchBuffers buffers;
    std::vector<uint32_t> rows;
  };
  Model& model_;
  uint32_t max_step_len_;
  KvCache cache_;
  std::array<Step, 2> steps_;
  size_t n_fills_ = 0;
  Request request_;
};

}  // namespace dovetail::core
