// RankQueue: places in a text whose pair of symbols can merge, lowest rank first and leftmost among equals.
//
// A list for each rank, which grows at its end alone and so stays in order, and a tree of bits over the ranks that
// finds the lowest one with a list. Both take a time that does not grow with the number of places, where a heap's
// would. A place that belongs before the end of its list waits in a heap instead. Where an id stands for one text
// there is none: merges inside a token are those of its text alone, so that it is always made by the same last one,
// and all pairs of a rank come about while one merge goes through the text from left to right. A token that is both
// a byte and the spelling of that byte's token can be made in two ways.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "merge_table.hpp"

namespace dovetail::bpe {

/// A symbol of a long piece: what it is, its neighbours in the text, and those in its rank's list. Together, so
/// that a merge far from the last one waits for memory once a symbol.
struct LinkedSymbol {
  uint32_t id;
  uint32_t rank;            // of the pair with the next symbol; kNoRank: not in the queue
  uint32_t begin, end;      // bytes of the piece
  uint32_t previous, next;  // in the text
  uint32_t before, after;   // in the list
};

/// Places are indices of the symbols that a run is over. Owned by one thread.
class RankQueue {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  /// Starts a run over these symbols, none of which is in the queue. `steps` counts what is done.
  void start(uint32_t n_ranks, LinkedSymbol* symbols, uint64_t* steps) {
    if (levels_.empty() || n_ranks != n_ranks_) make_lists(n_ranks);
    if (is_running_)  // an exception ended the last run
      for (auto& level : levels_) std::fill(level.begin(), level.end(), 0);
    is_running_ = true;
    late_.clear();
    n_late_ = 0;
    symbols_ = symbols;
    steps_ = steps;
  }

  /// Adds a place that is not in the queue, under its symbol's rank.
  void push(uint32_t place) {
    LinkedSymbol& s = symbols_[place];
    ++*steps_;
    List& list = lists_[s.rank];
    s.after = kNone;
    if (mark(s.rank)) {
      s.before = kNone;
      list = {place, place};
    } else if (list.last < place) {
      s.before = list.last;
      symbols_[list.last].after = place;
      list.last = place;
    } else {
      s.before = kLate;
      ++n_late_;
      late_.push_back(uint64_t{s.rank} << 32 | place);
      std::push_heap(late_.begin(), late_.end(), std::greater<>());
      *steps_ += static_cast<uint64_t>(std::bit_width(late_.size()));
    }
  }

  /// How many of this run waited in the heap.
  uint64_t n_late() const { return n_late_; }

  /// Takes a place out, if it is in the queue.
  void remove(uint32_t place) {
    LinkedSymbol& s = symbols_[place];
    if (s.rank == kNoRank) return;
    if (s.before != kLate) unlink(s);
    s.rank = kNoRank;
  }

  /// Takes out the place that is next, and says what its rank was. kNone: the run is over.
  uint32_t pop(uint32_t* rank) {
    uint32_t place = first_listed();
    while (!late_.empty()) {
      const uint64_t top = late_.front();
      const auto late_place = static_cast<uint32_t>(top);
      const bool is_stale = symbols_[late_place].rank != static_cast<uint32_t>(top >> 32) ||
                            symbols_[late_place].before != kLate;
      if (!is_stale && place != kNone && (uint64_t{symbols_[place].rank} << 32 | place) < top)
        break;
      std::pop_heap(late_.begin(), late_.end(), std::greater<>());
      late_.pop_back();
      *steps_ += static_cast<uint64_t>(std::bit_width(late_.size()));
      if (is_stale) continue;
      place = late_place;
      break;
    }
    if (place == kNone) {
      is_running_ = false;
      return kNone;
    }
    *rank = symbols_[place].rank;
    remove(place);
    return place;
  }

 private:
  static constexpr uint32_t kLate = UINT32_MAX - 1;  // as `before`: in late_, not in a list
  static constexpr uint32_t kBits = 64;

  struct List {
    uint32_t first, last;
  };

  void make_lists(uint32_t n_ranks) {
    n_ranks_ = 0;
    lists_.reset(new List[n_ranks]);  // each is written before it is read
    levels_.clear();
    uint64_t n = std::max<uint32_t>(n_ranks, 1);
    do {
      n = (n + kBits - 1) / kBits;
      levels_.emplace_back(n);
    } while (n > 1);
    n_ranks_ = n_ranks;
  }

  // Notes that the rank has a list; true if it had none.
  bool mark(uint32_t rank) {
    for (size_t k = 0; k < levels_.size(); ++k, rank /= kBits) {
      uint64_t& word = levels_[k][rank / kBits];
      const uint64_t bit = uint64_t{1} << rank % kBits, before = word;
      word |= bit;
      ++*steps_;
      if (before != 0) return k > 0 || (before & bit) == 0;
    }
    return true;
  }
  void unmark(uint32_t rank) {
    for (size_t k = 0; k < levels_.size(); ++k, rank /= kBits) {
      uint64_t& word = levels_[k][rank / kBits];
      word &= ~(uint64_t{1} << rank % kBits);
      ++*steps_;
      if (word != 0) return;
    }
  }
  // The leftmost place of the lowest rank that has a list.
  uint32_t first_listed() {
    if (levels_.back()[0] == 0) return kNone;
    uint64_t at = 0;
    for (size_t k = levels_.size(); k-- > 0;)
      at = at * kBits + static_cast<uint64_t>(std::countr_zero(levels_[k][at]));
    *steps_ += levels_.size();
    return lists_[at].first;
  }

  void unlink(const LinkedSymbol& s) {
    List& list = lists_[s.rank];
    ++*steps_;
    if (s.before != kNone)
      symbols_[s.before].after = s.after;
    else
      list.first = s.after;
    if (s.after != kNone)
      symbols_[s.after].before = s.before;
    else
      list.last = s.before;
    if (list.first == kNone) unmark(s.rank);
  }

  uint32_t n_ranks_ = 0;
  std::unique_ptr<List[]> lists_;  // by rank; of those that levels_ marks
  std::vector<std::vector<uint64_t>>
      levels_;                  // [0] has a bit for a rank, [k + 1] one for a word of [k]
  std::vector<uint64_t> late_;  // a heap of rank and place; some are there no more
  uint64_t n_late_ = 0;
  bool is_running_ = false;
  LinkedSymbol* symbols_ = nullptr;
  uint64_t* steps_ = nullptr;
};

}  // namespace dovetail::bpe
