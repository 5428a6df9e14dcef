// Alignment: where bytes of a rewritten text came from in the text before it.
//
// Repairing UTF-8, NFC and an added prefix space each rewrite a few places and copy the rest.
// Layers are chained, so a token's span can be told in bytes of the caller's text. An alignment is for
// one thread, also to ask.
#pragma once

#include <algorithm>
#include <cstddef>
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
  uint64_t n_bytes() const { return edits_.size() * sizeof(Edit); }
  bool is_identity() const { return edits_.empty() && below_ == nullptr && origin_ == 0; }

  /// The caller's byte for output position `pos`. Never falls as pos grows; a position inside a
  /// rewritten place maps to the place's start, so neighbouring tokens tile the text. Quick when
  /// positions rise from call to call.
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
    if (n_before_ > 0 && edits_[n_before_ - 1].new_begin >= pos) n_before_ = 0;
    for (int steps = 0; n_before_ < edits_.size() && edits_[n_before_].new_begin < pos; ++steps) {
      ++n_before_;
      if (steps < kFewSteps) continue;
      const auto it =
          std::lower_bound(edits_.begin() + static_cast<std::ptrdiff_t>(n_before_), edits_.end(),
                           pos, [](const Edit& e, uint64_t p) { return e.new_begin < p; });
      n_before_ = static_cast<size_t>(it - edits_.begin());
    }
    if (n_before_ == 0) return pos;
    const Edit& e = edits_[n_before_ - 1];
    return pos < e.new_end ? e.old_begin : e.old_end + (pos - e.new_end);
  }

  static constexpr int kFewSteps = 8;
  const Alignment* below_;
  uint64_t origin_;
  std::vector<Edit> edits_;
  mutable size_t n_before_ = 0;  // edits that start before the position asked for last
};

}  // namespace dovetail::bpe
