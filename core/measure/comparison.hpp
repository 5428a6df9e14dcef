// Comparison: one list of ids through two models, the second held against what the first gave: the outputs of
// layers, then logits. The models need not be loaded at the same time: of the first only the outputs are kept.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.hpp"
#include "core/base/thread_pool.hpp"
#include "core/measure/distribution.hpp"
#include "core/measure/row_error.hpp"
#include "core/model/model.hpp"
#include "core/scheduler/request.hpp"

namespace dovetail::core {

/// What a model gave for every token of a text.
struct RecordedRun {
  std::vector<TokenId> ids;
  size_t vocab_size = 0, d_model = 0;
  std::vector<float> logits;               // [T, V]
  std::vector<std::vector<float>> layers;  // [n_layer_outputs] of [T, D]
};

/// Bytes of what record_run keeps of n_tokens.
uint64_t recorded_bytes(const Model& model, size_t n_tokens);

/// Runs the ids and keeps every row of logits, and of the outputs of layers that the model was loaded to observe.
/// The model was loaded with all_rows.
/// errors  as check_ids, and what the model reports.
Result<RecordedRun> record_run(Model& model, uint32_t max_step_len, std::vector<TokenId> ids);

struct Comparison {
  struct Top {
    size_t pos = 0;
    TopTwo a, b;
  };
  size_t n_tokens = 0;
  size_t n_ids = 0;               // of each row of logits that were compared
  std::vector<RowErrors> layers;  // none where the models' layers do not stand for each other
  RowErrors logits;
  double kl_mean = 0, kl_max = 0;  // KL(A || B), nats
  size_t kl_max_pos = 0;
  size_t n_same_top = 0;
  std::optional<Top> first_other_top;  // the first position at which the likeliest ids differ
  RunningMean nll_a, nll_b;            // of the text's own tokens, from the second on
};

/// Runs the same ids through `b` and compares. Of each row of logits the first n_ids count, of both.
/// Layers are compared where both have as many, as wide.
///
/// threads one at a time; rows are spread over the pool. The same numbers whatever its size.
/// errors  as record_run.
Result<Comparison> compare_with(const RecordedRun& a, Model& b, ThreadPool& pool,
                                uint32_t max_step_len, size_t n_ids);

}  // namespace dovetail::core
