// Alignment: where bytes of a rewritten text came from in the text before it.
//
// Repairing UTF-8, NFC and an added prefix space each rewrite a few places and copy the rest.
// Layers are chained, so a token's span can be told in bytes of the caller's text.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace dovetail::bpe {

class Alignment {
 public:
  /// `below` maps this layer's input further down; null when the input is the caller's text.
  /// `origin` is where this layer's input starts in that lower text.
  explicit Alignment(const Alignment* below = nullptr, uint64_t origin = 0)
      : below_(below), origin_(origin) {}

  /// The next rewritten place: output [new_begin, new_end) stands for input [old_begin, old_end).
  /// Places come in order and do not overlap.
  void add(uint64_t new_begin, uint64_t new_end, uint64_t old_begin, uint64_t old_end) {
    edits_.push_back({new_begin, new_end, old_begin, old_end});
  }
  bool is_identity() const { return edits_.empty() && below_ == nullptr && origin_ == 0; }

  /// The caller's byte for output position `pos`. Never falls as pos grows; a position inside a
  /// rewritten place maps to the place's start, so neighbouring tokens tile the text.
  uint64_t to_original(uint64_t pos) const {
    const uint64_t here = origin_ + to_input(pos);
    return below_ == nullptr ? here : below_->to_original(here);
  }

 private:
  struct Edit {
    uint64_t new_begin, new_end, old_begin, old_end;
  };

  uint64_t to_input(uint64_t pos) const {
    // The last edit that starts before pos; text from its end on is copied.
    auto it = std::lower_bound(edits_.begin(), edits_.end(), pos,
                               [](const Edit& e, uint64_t p) { return e.new_begin < p; });
    if (it == edits_.begin()) return pos;
    --it;
    return pos < it->new_end ? it->old_begin : it->old_end + (pos - it->new_end);
  }

  const Alignment* below_;
  uint64_t origin_;
  std::vector<Edit> edits_;
};

}  // namespace dovetail::bpe
