#include "core/engine/batch_buffers.hpp"

#include "core/scheduler/request.hpp"

namespace dovetail::core {

BatchBuffers::BatchBuffers(uint32_t max_tokens, uint32_t max_seqs, size_t n_groups)
    : page_off_(n_groups), pages_(n_groups) {
  tok_off_.reserve(max_seqs + 1);
  slots_.reserve(max_seqs);
  out_rows_.reserve(max_seqs);
  tokens_.reserve(max_tokens);
  token_from_.reserve(max_tokens);
  positions_.reserve(max_tokens);
  groups_.reserve(n_groups);
}

dvt_batch BatchBuffers::fill(const Batch& batch, const KvCache& cache) {
  tok_off_.assign(1, 0);
  slots_.clear();
  out_rows_.clear();
  tokens_.clear();
  token_from_.clear();
  positions_.clear();
  bool names_tokens = false;
  for (size_t g = 0; g < pages_.size(); ++g) {
    page_off_[g].assign(1, 0);
    pages_[g].clear();
  }
  for (const BatchEntry& e : batch.entries) {
    const SequenceCache& sequence = e.request->cache;
    for (uint32_t i = 0; i < e.n_tokens; ++i) {
      const bool is_known = sequence.n_cached + i < e.request->tokens.size();
      tokens_.push_back(is_known ? static_cast<int32_t>(e.request->tokens[sequence.n_cached + i])
                                 : 0);
      token_from_.push_back(is_known ? dvt_token_from{} : e.last_from);
      names_tokens |= !is_known;
      positions_.push_back(static_cast<int32_t>(sequence.n_cached + i));
    }
    tok_off_.push_back(static_cast<uint32_t>(tokens_.size()));
    slots_.push_back(sequence.slot);
    if (e.wants_logits) out_rows_.push_back(e.first + e.n_tokens - 1);
    for (size_t g = 0; g < pages_.size(); ++g) {
      pages_[g].insert(pages_[g].end(), sequence.tables[g].begin(), sequence.tables[g].end());
      page_off_[g].push_back(static_cast<uint32_t>(pages_[g].size()));
    }
  }
  groups_.clear();
  for (size_t g = 0; g < pages_.size(); ++g)
    groups_.push_back({sizeof(dvt_page_group), cache.groups()[g].number, cache.block_len(),
                       cache.groups()[g].rate, page_off_[g].data(), pages_[g].data()});

  dvt_batch out{};
  out.struct_size = sizeof out;
  out.n_tokens = static_cast<uint32_t>(tokens_.size());
  out.n_seqs = static_cast<uint32_t>(slots_.size());
  out.n_rows = static_cast<uint32_t>(out_rows_.size());
  out.n_axes = 1;
  out.tok_off = tok_off_.data();
  out.slots = slots_.data();
  out.tokens = tokens_.data();
  out.token_from = names_tokens ? token_from_.data() : nullptr;
  out.positions = positions_.data();
  out.out_rows = out_rows_.data();
  out.groups = groups_.data();
  out.n_groups = groups_.size();
  return out;
}

}  // namespace dovetail::core
