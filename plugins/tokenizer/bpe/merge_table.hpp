// MergeTable: which pairs of ids merge, in what order, and into what.
#pragma once

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
    results_.reserve(n);
  }

  /// The next merge; its rank is how many came before. A pair given twice takes the later rank.
  /// reserve() must have made room.
  void add(uint32_t left, uint32_t right, uint32_t result) {
    Slot* slot = find_slot(left, right);
    *slot = {left, right, static_cast<uint32_t>(results_.size())};
    results_.push_back(result);
  }

  /// Rank of the pair, or kNoRank.
  uint32_t rank(uint32_t left, uint32_t right) const {
    if (results_.empty()) return kNoRank;
    return const_cast<MergeTable*>(this)->find_slot(left, right)->rank;
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
  struct Slot {
    uint32_t left = 0, right = 0;
    uint32_t rank = kNoRank;  // kNoRank: free
  };

  Slot* find_slot(uint32_t left, uint32_t right) {
    const size_t mask = slots_.size() - 1;
    for (size_t i = hash_pair(left, right) & mask;; i = (i + 1) & mask) {
      Slot& s = slots_[i];
      if (s.rank == kNoRank || (s.left == left && s.right == right)) return &s;
    }
  }

  std::vector<Slot> slots_;
  std::vector<uint32_t> results_;
};

}  // namespace dovetail::bpe
