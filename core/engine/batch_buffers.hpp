// BatchBuffers: a Batch as the flat arrays of dvt_batch, in memory that is allocated once.
#pragma once

#include <dovetail/abi/backend.h>

#include <vector>

#include "core/kv_cache/kv_cache.hpp"
#include "core/scheduler/batch.hpp"

namespace dovetail::core {

class BatchBuffers {
 public:
  BatchBuffers(uint32_t max_tokens, uint32_t max_seqs, size_t n_groups);
  /// Valid until the next fill.
  dvt_batch fill(const Batch& batch, const KvCache& cache);

 private:
  std::vector<uint32_t> tok_off_, slots_, out_rows_;
  std::vector<int32_t> tokens_, positions_;
  std::vector<dvt_token_from> token_from_;
  std::vector<std::vector<uint32_t>> page_off_, pages_;  // [n_groups]
  std::vector<dvt_page_group> groups_;
};

}  // namespace dovetail::core
