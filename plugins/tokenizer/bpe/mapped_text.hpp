// MappedText: a text on its way through the pipeline, and where its bytes came from.
//
// Every step that rewrites a text (repair, normalizers, prefix spaces, Metaspace) puts a layer on top:
// the new text and its alignment to the text below. Layers live in a stack of the thread's scratch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "alignment.hpp"

namespace dovetail::bpe {

/// A stretch of a layer's text, or of the caller's (then alignment is null).
struct MappedText {
  std::string_view text;
  const Alignment* alignment = nullptr;
  uint64_t origin = 0;  // where `text` starts in the text that `alignment` maps

  /// The caller's byte for position `pos` of `text`.
  uint64_t to_original(uint64_t pos) const {
    return alignment == nullptr ? origin + pos : alignment->to_original(origin + pos);
  }
  bool is_original() const { return alignment == nullptr; }
  MappedText part(uint64_t begin, uint64_t end) const {
    return {text.substr(begin, end - begin), alignment, origin + begin};
  }
};

/// One rewritten text.
struct Layer {
  std::string text;
  Alignment alignment;
  uint64_t max_bytes = UINT64_MAX;  // of the two together

  uint64_t n_bytes() const { return text.size() + alignment.n_bytes(); }

  MappedText mapped() const { return {text, &alignment, 0}; }
};

class LayerStack {
 public:
  /// Starts over, for a text of so many bytes. All layers may together have kGrowth bytes for each of them, and
  /// kFree more: steps that each double a text are soon all of memory. What is real stays far below: U+FDFA in NFKD
  /// grows the most of any character, elevenfold, and a change of one byte takes 32 to say where it came from.
  void start(uint64_t n_bytes) {
    constexpr uint64_t kGrowth = 512, kFree = uint64_t{1} << 20;
    n_used_ = 0;
    max_bytes_ = n_bytes * kGrowth + kFree;
  }
  /// An empty layer over `below`, which must stay where it is until this one is dropped.
  Layer& push(const MappedText& below) {
    if (n_used_ == layers_.size()) layers_.emplace_back();
    uint64_t n_bytes = 0;
    for (size_t i = 0; i < n_used_; ++i) n_bytes += layers_[i].n_bytes();
    Layer& layer = layers_[n_used_++];
    layer.text.clear();
    layer.max_bytes = max_bytes_ - std::min(n_bytes, max_bytes_);
    layer.alignment = Alignment(below.alignment, below.origin);
    return layer;
  }
  /// Drops the newest layer, as a step does that found nothing to rewrite.
  void pop() { --n_used_; }

  size_t height() const { return n_used_; }
  void drop_to(size_t height) { n_used_ = height; }

 private:
  std::deque<Layer> layers_;  // never moves what is in it
  size_t n_used_ = 0;
  uint64_t max_bytes_ = UINT64_MAX;
};

}  // namespace dovetail::bpe
