// CodePointSet: a set of code points as sorted ranges, with the algebra that regex classes need.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unicode.hpp"

namespace dovetail::bpe {

class CodePointSet {
 public:
  CodePointSet() = default;
  explicit CodePointSet(std::span<const CodePointRange> sorted)
      : ranges_(sorted.begin(), sorted.end()) {}
  static CodePointSet of(uint32_t code_point) { return range(code_point, code_point); }
  static CodePointSet range(uint32_t first, uint32_t last);

  void add(const CodePointSet& other);
  CodePointSet complement() const;
  CodePointSet intersect(const CodePointSet& other) const;

  bool empty() const { return ranges_.empty(); }
  bool contains(uint32_t code_point) const;
  const std::vector<CodePointRange>& ranges() const { return ranges_; }
  bool operator==(const CodePointSet& other) const;

 private:
  std::vector<CodePointRange> ranges_;  // sorted, disjoint and not adjacent
};

}  // namespace dovetail::bpe
