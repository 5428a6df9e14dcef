// Rewrite: writes a changed text beside the text it came from, and what became of what.
#pragma once

#include <string>
#include <string_view>

#include "error.hpp"
#include "mapped_text.hpp"

namespace dovetail::bpe {

class Rewrite {
 public:
  /// The layer is touched only once something is replaced.
  Rewrite(std::string_view text, Layer* layer) : text_(text), layer_(layer), out_(&layer->text) {}

  /// The next change: text[begin, end) gives way to `by`. begin == end inserts.
  /// errors  kInvalid: the layer would have more than its max_bytes.
  void replace(size_t begin, size_t end, std::string_view by) {
    if (by == text_.substr(begin, end - begin)) return;
    copy_to(begin);
    if (layer_->n_bytes() + by.size() > layer_->max_bytes) {
      fail_invalid("the normalizer or pre_tokenizer makes far more of the text than it had; a " +
                   std::to_string(text_.size()) + " byte text becomes more than " +
                   std::to_string(layer_->n_bytes()));
    }
    layer_->alignment.add(out_->size(), out_->size() + by.size(), begin, end);
    out_->append(by);
    copied_ = end;
  }
  /// The same for a single character; one of the same length needs no entry in the alignment.
  void replace_char(size_t begin, size_t end, std::string_view by) {
    if (by.size() != end - begin) return replace(begin, end, by);
    copy_to(begin);
    out_->append(by);
    copied_ = end;
  }
  /// Where text[pos] comes to lie; pos is not before the end of the last change.
  size_t position_of(size_t pos) const { return changed_ ? out_->size() + (pos - copied_) : pos; }
  /// Copies the rest; true if anything was replaced.
  bool finish() {
    if (changed_) out_->append(text_, copied_);
    return changed_;
  }

 private:
  void copy_to(size_t end) {
    if (!changed_) out_->clear();
    changed_ = true;
    out_->append(text_, copied_, end - copied_);
  }

  std::string_view text_;
  Layer* layer_;
  std::string* out_;   // its text
  size_t copied_ = 0;  // text up to here is in the output, once something has changed
  bool changed_ = false;
};

}  // namespace dovetail::bpe
