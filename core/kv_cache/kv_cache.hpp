// KvCache: the page tables and state slots of the sequences that are running.
//
// The core owns who has which block; the backend owns the bytes. Every group of state slots (full
// attention, index keys at a quarter rate, ...) has its own pool and, per sequence, its own table.
#pragma once

#include <cstdint>
#include <vector>

#include "core/kv_cache/block_pool.hpp"

namespace dovetail::core {

/// The cache of one sequence.
struct SequenceCache {
  uint32_t slot = UINT32_MAX;                // of fixed states
  std::vector<std::vector<BlockId>> tables;  // [n_groups]
  uint32_t n_cached = 0;                     // tokens whose rows are in the cache

  bool is_open() const { return slot != UINT32_MAX; }
};

/// How rows of a group come from tokens.
struct CacheGroup {
  uint32_t number = 0;  // dvt_state_spec.group
  uint32_t rate = 1;    // tokens per row
};

class KvCache {
 public:
  KvCache(std::vector<CacheGroup> groups, uint32_t block_len, uint32_t n_blocks, uint32_t n_slots);

  uint32_t block_len() const { return block_len_; }
  const std::vector<CacheGroup>& groups() const { return groups_; }
  uint32_t n_blocks() const { return pools_.empty() ? 0 : pools_[0].n_blocks(); }
  uint32_t n_free_blocks() const { return pools_.empty() ? 0 : pools_[0].n_free(); }
  uint32_t n_free_slots() const { return static_cast<uint32_t>(free_slots_.size()); }
  /// Tokens that one sequence can have when it is alone.
  uint64_t max_tokens() const;

  /// Gives a sequence a slot; false if all are taken.
  bool open(SequenceCache& sequence);
  /// Makes room for n_tokens in total; false, and nothing changed, if blocks run out.
  bool reserve(SequenceCache& sequence, uint32_t n_tokens);
  /// Forgets tokens from n_tokens on.
  void rewind(SequenceCache& sequence, uint32_t n_tokens);
  /// Gives everything back.
  void close(SequenceCache& sequence);

 private:
  uint32_t blocks_of(const CacheGroup& g, uint32_t n_tokens) const {
    return blocks_for((uint64_t{n_tokens} + g.rate - 1) / g.rate, block_len_);
  }
  std::vector<CacheGroup> groups_;
  uint32_t block_len_;
  std::vector<BlockPool> pools_;  // [n_groups]
  std::vector<uint32_t> free_slots_;
};

}  // namespace dovetail::core
