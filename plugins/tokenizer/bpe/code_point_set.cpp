#include "code_point_set.hpp"

#include <algorithm>

namespace dovetail::bpe {

CodePointSet CodePointSet::range(uint32_t first, uint32_t last) {
  CodePointSet set;
  set.ranges_.push_back({first, last});
  return set;
}

void CodePointSet::add(const CodePointSet& other) {
  std::vector<CodePointRange> all;
  all.reserve(ranges_.size() + other.ranges_.size());
  std::merge(ranges_.begin(), ranges_.end(), other.ranges_.begin(), other.ranges_.end(),
             std::back_inserter(all), [](auto a, auto b) { return a.first < b.first; });
  ranges_.clear();
  for (const CodePointRange& r : all) {
    if (!ranges_.empty() && r.first <= ranges_.back().last + 1) {
      ranges_.back().last = std::max(ranges_.back().last, r.last);
    } else {
      ranges_.push_back(r);
    }
  }
}

CodePointSet CodePointSet::complement() const {
  CodePointSet out;
  uint32_t next = 0;
  for (const CodePointRange& r : ranges_) {
    if (r.first > next) out.ranges_.push_back({next, r.first - 1});
    next = r.last + 1;
  }
  if (next < kCodePointEnd) out.ranges_.push_back({next, kCodePointEnd - 1});
  return out;
}

CodePointSet CodePointSet::intersect(const CodePointSet& other) const {
  CodePointSet out = complement();
  out.add(other.complement());
  return out.complement();
}

bool CodePointSet::contains(uint32_t c) const {
  const auto it = std::upper_bound(ranges_.begin(), ranges_.end(), c,
                                   [](uint32_t v, const CodePointRange& r) { return v < r.first; });
  return it != ranges_.begin() && c <= std::prev(it)->last;
}

bool CodePointSet::operator==(const CodePointSet& other) const {
  return std::equal(ranges_.begin(), ranges_.end(), other.ranges_.begin(), other.ranges_.end(),
                    [](auto a, auto b) { return a.first == b.first && a.last == b.last; });
}

}  // namespace dovetail::bpe
