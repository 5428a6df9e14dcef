// MappedText: a text on its way through the pipeline, and where its bytes came from.
//
// Every step that rewrites a text (repair, normalizers, prefix spaces, Metaspace) puts a layer on top:
// the new text and its alignment to the text below. Layers live in a stack of the thread's scratch.
#pragma once

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

  MappedText mapped() const { return {text, &alignment, 0}; }
};

class LayerStack {
 public:
  /// An empty layer over `below`, which must stay where it is until this one is dropped.
  Layer& push(const MappedText& below) {
    if (n_used_ == layers_.size()) layers_.emplace_back();
    Layer& layer = layers_[n_used_++];
    layer.text.clear();
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
};

}  // namespace dovetail::bpe
