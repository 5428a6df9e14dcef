// TextBuilder: how the engine makes every string, so that none outgrows the budget.
#pragma once

#include <string_view>
#include <utility>

#include "core/text/template/budget.hpp"
#include "core/text/template/sourced_text.hpp"

namespace dovetail::core::jinja {

class TextBuilder {
 public:
  explicit TextBuilder(Budget& budget) : budget_(budget) {}

  void append(std::string_view bytes, Source source = Source::kTemplate) {
    grow(bytes.size());
    text_.append(bytes, source);
  }
  void append(const SourcedText& other) { append_slice(other, 0, other.size()); }
  void append_slice(const SourcedText& other, size_t begin, size_t end) {
    grow(end - begin);
    text_.append_slice(other, begin, end);
  }
  void repeat(const SourcedText& other, size_t n_times) {
    for (size_t i = 0; i < n_times && !other.empty(); ++i) append(other);
  }

  const SourcedText& text() const { return text_; }
  size_t size() const { return text_.size(); }
  Budget& budget() { return budget_; }
  SourcedText take() { return std::move(text_); }

 private:
  void grow(size_t n) {
    budget_.check_string(text_.size() + n);
    budget_.charge(n);
  }

  Budget& budget_;
  SourcedText text_;
};

}  // namespace dovetail::core::jinja
