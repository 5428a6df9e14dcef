#include "core/text/template/sourced_text.hpp"

#include <algorithm>
#include <utility>

namespace dovetail::core::jinja {
namespace {

// The first range that ends after `offset`.
std::vector<TextRange>::const_iterator first_after(const std::vector<TextRange>& ranges,
                                                   size_t offset) {
  return std::upper_bound(ranges.begin(), ranges.end(), offset,
                          [](size_t at, const TextRange& r) { return at < r.end; });
}

}  // namespace

SourcedText::SourcedText(std::string bytes, Source source) : bytes_(std::move(bytes)) {
  if (source == Source::kData) mark_data(0, bytes_.size());
}

Source SourcedText::source_at(size_t offset) const {
  const auto range = first_after(data_, offset);
  return range != data_.end() && range->begin <= offset ? Source::kData : Source::kTemplate;
}

void SourcedText::append(std::string_view bytes, Source source) {
  const uint64_t begin = bytes_.size();
  bytes_ += bytes;
  if (source == Source::kData) mark_data(begin, bytes_.size());
}

void SourcedText::append_slice(const SourcedText& other, size_t begin, size_t end) {
  const uint64_t at = bytes_.size();
  bytes_.append(other.bytes_, begin, end - begin);
  for (auto r = first_after(other.data_, begin); r != other.data_.end() && r->begin < end; ++r) {
    mark_data(at + (std::max<uint64_t>(r->begin, begin) - begin),
              at + (std::min<uint64_t>(r->end, end) - begin));
  }
}

SourcedText SourcedText::slice(size_t begin, size_t end) const {
  SourcedText out;
  out.append_slice(*this, begin, end);
  return out;
}

void SourcedText::mark_data(uint64_t begin, uint64_t end) {
  if (begin == end) return;
  if (!data_.empty() && data_.back().end == begin) {
    data_.back().end = end;
  } else {
    data_.push_back({begin, end});
  }
}

}  // namespace dovetail::core::jinja
