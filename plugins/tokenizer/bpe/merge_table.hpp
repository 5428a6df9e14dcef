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
  /// The table of merges in rank order: three ids each, left, right, result. A pair given twice takes
  /// the later rank.
  struct Merge {
    uint32_t left, right, result;
  };
  MergeTable() = default;
  explicit MergeTable(const std::vector<Merge>& merges) {
    const uint64_t n = merges.size();
    uint32_t largest = 0;
    for (const Merge& m : merges) largest = std::max({largest, m.left, m.right});
    // A slot is one word: both ids and the rank, with as many bits as they need. Where that is too
    // many, ids are left out of the slot and compared in left_right_.
    id_bits_ = static_cast<uint32_t>(std::bit_width(largest));
    fits_ = 2 * id_bits_ + std::bit_width(n) < 64;
    slots_.assign(std::bit_ceil(n + n / 2 + 16), kFree);
    maybe_.assign(std::max<uint64_t>(1, std::bit_ceil(n * kFilterBits) / 64), 0);
    is_linear_ = n > 0;
    for (const Merge& m : merges) {
      const auto rank = static_cast<uint32_t>(results_.size());
      results_.push_back(m.result);
      left_right_.push_back(uint64_t{m.left} << 32 | m.right);
      is_linear_ &= m.result == results_[0] + rank;
      const uint64_t h = hash_pair(m.left, m.right);
      maybe_[h / 64 & (maybe_.size() - 1)] |= uint64_t{1} << (h & 63);
      slots_[find_slot(h, m.left, m.right)] = slot_of(m.left, m.right, rank);
    }
  }

  /// Rank of the pair, or kNoRank.
  uint32_t rank(uint32_t left, uint32_t right) const {
    if (results_.empty() || (left | right) >> id_bits_ != 0) return kNoRank;
    const uint64_t h = hash_pair(left, right);
    // Most pairs do not merge, and nearly all of those end here, in a table a tenth the size.
    if ((maybe_[h / 64 & (maybe_.size() - 1)] >> (h & 63) & 1) == 0) return kNoRank;
    const uint64_t slot = slots_[find_slot(h, left, right)];
    return slot == kFree ? kNoRank : rank_of(slot);
  }
  /// Most vocabularies are numbered in the order of their merges, which saves a look-up.
  uint32_t result(uint32_t rank) const { return is_linear_ ? results_[0] + rank : results_[rank]; }

  /// Calls fn(left, right, result) in rank order; of a pair given twice, only the later.
  template <class Fn>
  void for_each(Fn&& fn) const {
    for (uint32_t r = 0; r < results_.size(); ++r) {
      const auto left = static_cast<uint32_t>(left_right_[r] >> 32);
      const auto right = static_cast<uint32_t>(left_right_[r]);
      if (rank(left, right) == r) fn(left, right, results_[r]);
    }
  }
  uint32_t n_merges() const { return static_cast<uint32_t>(results_.size()); }

 private:
  static constexpr uint64_t kFilterBits = 8;  // a pair, at least
  static constexpr uint64_t kFree = UINT64_MAX;

  uint64_t key_of(uint32_t left, uint32_t right) const {
    return uint64_t{left} << id_bits_ | right;
  }
  uint64_t slot_of(uint32_t left, uint32_t right, uint32_t rank) const {
    return fits_ ? uint64_t{rank} << 2 * id_bits_ | key_of(left, right) : rank;
  }
  uint32_t rank_of(uint64_t slot) const {
    return static_cast<uint32_t>(fits_ ? slot >> 2 * id_bits_ : slot);
  }
  bool holds(uint64_t slot, uint32_t left, uint32_t right) const {
    if (fits_) return (slot & ((uint64_t{1} << 2 * id_bits_) - 1)) == key_of(left, right);
    return left_right_[slot] == (uint64_t{left} << 32 | right);
  }
  // Where the pair is, or the free slot where it would be; both ids within id_bits_.
  size_t find_slot(uint64_t hash, uint32_t left, uint32_t right) const {
    const size_t mask = slots_.size() - 1;
    for (size_t i = hash >> 32 & mask;; i = (i + 1) & mask) {
      if (slots_[i] == kFree || holds(slots_[i], left, right)) return i;
    }
  }

  std::vector<uint64_t> slots_;
  std::vector<uint64_t> maybe_;    // one bit for each pair that is there, and for some that are not
  std::vector<uint32_t> results_;  // by rank
  std::vector<uint64_t> left_right_;  // by rank
  uint32_t id_bits_ = 0;
  bool fits_ = true;
  bool is_linear_ = false;  // results_[rank] == results_[0] + rank
};

}  // namespace dovetail::bpe
