// MergeTable: which pairs of ids merge, in what order, and into what.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "hash.hpp"

namespace dovetail::bpe {

inline constexpr uint32_t kNoRank = UINT32_MAX;

class MergeTable {
 public:
  void reserve(uint64_t n) {
    slots_.assign(std::bit_ceil(n + n / 2 + 16), Slot{});
    maybe_.assign(std::max<uint64_t>(1, std::bit_ceil(n * kFilterBits) / 64), 0);
    results_.reserve(n);
  }

  /// The next merge; its rank is how many came before. A pair given twice takes the later rank.
  /// reserve() must have made room.
  void add(uint32_t left, uint32_t right, uint32_t result) {
    const uint64_t h = hash_pair(left, right);
    *find_slot(h, left, right) = {left, right, static_cast<uint32_t>(results_.size())};
    maybe_[h / 64 & (maybe_.size() - 1)] |= uint64_t{1} << (h & 63);
    results_.push_back(result);
  }

  /// Rank of the pair, or kNoRank.
  uint32_t rank(uint32_t left, uint32_t right) const {
    if (results_.empty()) return kNoRank;
    const uint64_t h = hash_pair(left, right);
    // Most pairs do not merge, and nearly all of those end here, in a table a tenth the size.
    if ((maybe_[h / 64 & (maybe_.size() - 1)] >> (h & 63) & 1) == 0) return kNoRank;
    return const_cast<MergeTable*>(this)->find_slot(h, left, right)->rank;
  }
  uint32_t result(uint32_t rank) const { return results_[rank]; }
  /// Calls fn(left, right, result) in rank order; of a pair given twice, only the later.
  template <class Fn>
  void for_each(Fn&& fn) const {
    std::vector<const Slot*> by_rank(results_.size());
    for (const Slot& s : slots_) {
      if (s.rank != kNoRank) by_rank[s.rank] = &s;
    }
    for (const Slot* s : by_rank) {
      if (s != nullptr) fn(s->left, s->right, results_[s->rank]);
    }
  }
  uint32_t n_merges() const { return static_cast<uint32_t>(results_.size()); }

 private:
  static constexpr uint64_t kFilterBits = 8;  // a pair, at least
  struct Slot {
    uint32_t left = 0, right = 0;
    uint32_t rank = kNoRank;  // kNoRank: free
  };

  Slot* find_slot(uint64_t hash, uint32_t left, uint32_t right) {
    const size_t mask = slots_.size() - 1;
    for (size_t i = hash >> 32 & mask;; i = (i + 1) & mask) {
      Slot& s = slots_[i];
      if (s.rank == kNoRank || (s.left == left && s.right == right)) return &s;
    }
  }

  std::vector<Slot> slots_;
  std::vector<uint64_t> maybe_;  // one bit for each pair that is there, and for some that are not
  std::vector<uint32_t> results_;
};

}  // namespace dovetail::bpe
