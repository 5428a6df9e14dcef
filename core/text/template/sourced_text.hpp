// SourcedText: a string that knows which of its bytes came from data.
//
// A chat template joins its own text, where "<|im_end|>" is a control token, with what users wrote,
// where the same characters are only characters. Every string of the template engine is a
// SourcedText, so the difference survives slicing, stripping, joining and JSON, and the tokenizer
// can encode the data ranges literally.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dovetail::core {

/// Bytes [begin, end) of a text.
struct TextRange {
  uint64_t begin = 0;
  uint64_t end = 0;

  bool operator==(const TextRange&) const = default;
};

namespace jinja {

enum class Source : uint8_t {
  kTemplate,  // written by the template, or by a value that the caller trusts like it
  kData,      // handed in to be rendered
};

class SourcedText {
 public:
  SourcedText() = default;
  explicit SourcedText(std::string bytes, Source source = Source::kTemplate);

  const std::string& bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  /// Sorted, disjoint, not adjacent, none empty.
  const std::vector<TextRange>& data_ranges() const { return data_; }
  Source source_at(size_t offset) const;
  bool has_data() const { return !data_.empty(); }

  void append(std::string_view bytes, Source source);
  void append(const SourcedText& other) { append_slice(other, 0, other.size()); }
  /// Appends bytes [begin, end) of `other` with their sources.
  void append_slice(const SourcedText& other, size_t begin, size_t end);
  SourcedText slice(size_t begin, size_t end) const;

  std::string take_bytes() { return std::move(bytes_); }
  std::vector<TextRange> take_data_ranges() { return std::move(data_); }

 private:
  void mark_data(uint64_t begin, uint64_t end);

  std::string bytes_;
  std::vector<TextRange> data_;
};

}  // namespace jinja
}  // namespace dovetail::core
