#include "core/engine/sequence.hpp"

#include <algorithm>
#include <numeric>

namespace dovetail::core {

Status check_ids(const Model& model, std::span<const TokenId> ids) {
  if (ids.empty()) return invalid("there are no token ids; give at least one: --ids 1,2,3");
  const auto n = static_cast<int64_t>(ids.size());
  if (n > model.max_seq_len())
    return invalid("there are " + std::to_string(n) + " tokens, the context holds " +
                   std::to_string(model.max_seq_len()) + "; set `context` higher");
  for (const TokenId id : ids)
    if (static_cast<int64_t>(id) >= model.vocab_size())
      return invalid("id " + std::to_string(id) + " is outside the vocabulary of " +
                     std::to_string(model.vocab_size()));
  return Status::ok();
}

Sequence::Sequence(Model& model, uint32_t max_step_len, std::vector<TokenId> tokens)
    : model_(model),
      max_step_len_(max_step_len),
      cache_(model.cache_groups(), model.block_len(), model.n_blocks(), 1),
      steps_{Step{BatchBuffers(max_step_len, 1, model.cache_groups().size()), {}},
             Step{BatchBuffers(max_step_len, 1, model.cache_groups().size()), {}}} {
  request_.n_prompt = tokens.size();
  request_.tokens = std::move(tokens);
  cache_.open(request_.cache);
}

Status Sequence::reserve(size_t n_tokens) {
  if (!request_.cache.is_open()) return internal_error("a fresh cache has no slot");
  if (cache_.reserve(request_.cache, static_cast<uint32_t>(n_tokens))) return Status::ok();
  return {Code::kNoMemory, "the KV cache is too small for " + std::to_string(n_tokens) +
                               " tokens; set kv_cache.max_tokens higher"};
}

dvt_batch Sequence::fill(uint32_t count, uint32_t n_rows) {
  Step& step = steps_[n_fills_++ % steps_.size()];
  Batch batch;
  batch.entries.push_back({&request_, 0, count, false, 0});
  batch.n_tokens = count;
  dvt_batch out = step.buffers.fill(batch, cache_);
  step.rows.resize(n_rows);
  std::iota(step.rows.begin(), step.rows.end(), count - n_rows);
  out.out_rows = step.rows.data();
  out.n_rows = n_rows;
  return out;
}

Status Sequence::run(const SequenceWants& wants, const SequenceSink& sink) {
  DVT_TRY(reserve(request_.tokens.size()));
  const uint32_t step_len =
      wants.step_len == 0 ? max_step_len_ : std::min(wants.step_len, max_step_len_);
  const auto vocab_size = static_cast<size_t>(model_.vocab_size());
  std::vector<float> logits;
  std::vector<std::vector<float>> values(wants.values.size());
  while (n_pending() > 0) {
    SequenceStep step;
    step.first = request_.cache.n_cached;
    step.n_tokens = std::min<size_t>(step_len, n_pending());
    const size_t end = step.first + step.n_tokens;
    step.first_row = std::clamp(wants.first_row, step.first, end);
    step.n_rows = end - step.first_row;
    logits.resize(step.n_rows * vocab_size);
    std::vector<dvt_output> more;
    for (size_t i = 0; i < values.size(); ++i) {
      values[i].resize(step.n_tokens * wants.values[i].row_len);
      more.push_back(
          {abi_text(wants.values[i].name), values[i].data(), values[i].size() * sizeof(float)});
      step.values.emplace_back(values[i]);
    }
    const auto count = static_cast<uint32_t>(step.n_tokens);
    DVT_TRY(model_.forward(fill(count, static_cast<uint32_t>(step.n_rows)), logits, more));
    advance(count);
    step.logits = logits;
    DVT_TRY(sink(step));
  }
  return Status::ok();
}

}  // namespace dovetail::core
