#include "core/kv_cache/kv_cache.hpp"

#include <algorithm>

#include "core/base/assert.hpp"

namespace dovetail::core {

KvCache::KvCache(std::vector<CacheGroup> groups, uint32_t block_len, uint32_t n_blocks,
                 uint32_t n_slots)
    : groups_(std::move(groups)), block_len_(block_len) {
  for (size_t i = 0; i < groups_.size(); ++i) pools_.emplace_back(n_blocks);
  for (uint32_t s = n_slots; s-- > 0;) free_slots_.push_back(s);
}

uint64_t KvCache::max_tokens() const {
  uint64_t least = UINT64_MAX;
  for (size_t i = 0; i < groups_.size(); ++i)
    least = std::min(least, uint64_t{pools_[i].n_blocks()} * block_len_ * groups_[i].rate);
  return least;
}

bool KvCache::open(SequenceCache& sequence) {
  DVT_ASSERT(!sequence.is_open());
  if (free_slots_.empty()) return false;
  sequence.slot = free_slots_.back();
  free_slots_.pop_back();
  sequence.tables.resize(groups_.size());
  sequence.n_cached = 0;
  return true;
}

bool KvCache::reserve(SequenceCache& sequence, uint32_t n_tokens) {
  for (size_t i = 0; i < groups_.size(); ++i) {
    const uint32_t want = blocks_of(groups_[i], n_tokens);
    const auto have = static_cast<uint32_t>(sequence.tables[i].size());
    if (want > have && want - have > pools_[i].n_free()) return false;
  }
  for (size_t i = 0; i < groups_.size(); ++i) {
    const uint32_t want = blocks_of(groups_[i], n_tokens);
    const auto have = static_cast<uint32_t>(sequence.tables[i].size());
    // NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): read where assertions are on
    const bool taken = want <= have || pools_[i].take(want - have, sequence.tables[i]);
    DVT_ASSERT(taken);
  }
  return true;
}

void KvCache::rewind(SequenceCache& sequence, uint32_t n_tokens) {
  for (size_t i = 0; i < groups_.size(); ++i) {
    const uint32_t keep = blocks_of(groups_[i], n_tokens);
    if (keep < sequence.tables[i].size()) pools_[i].give_back(sequence.tables[i], keep);
  }
  sequence.n_cached = std::min(sequence.n_cached, n_tokens);
}

void KvCache::close(SequenceCache& sequence) {
  if (!sequence.is_open()) return;
  for (size_t i = 0; i < groups_.size(); ++i) pools_[i].give_back(sequence.tables[i]);
  free_slots_.push_back(sequence.slot);
  sequence = {};
}

}  // namespace dovetail::core
