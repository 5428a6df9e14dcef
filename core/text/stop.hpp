// StopMatcher: finds stop strings in streamed text and holds back only what could still become one.
//
// Text after a match never appears. What is held is the longest end of the text that is a beginning
// of some stop string; it is released as soon as it cannot be one any more. The first byte that
// completes a stop string ends the text, whatever pieces the text comes in; of several that it
// completes the longest counts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace dovetail::core {

class StopMatcher {
 public:
  /// Empty strings are ignored. With include_stop the match itself is given out too.
  explicit StopMatcher(const std::vector<std::string>& stops, bool include_stop = false);

  /// More text; returns what can be shown now. After a match: nothing.
  /// Linear in the text, however many stop strings there are.
  std::string feed(std::string_view text);
  /// The end of the text: what was held.
  std::string flush();
  bool stopped() const { return stopped_; }
  /// The stop string that matched.
  const std::string& matched() const { return matched_; }

 private:
  // One node per beginning of a stop string, node 0 for the empty one (Aho and Corasick 1975).
  struct Prefix {
    uint32_t fail = 0;     // the longest shorter end of it that is a beginning too
    uint32_t n_bytes = 0;  // its length
    uint32_t n_match = 0;  // the length of the longest stop string that it ends with, or 0
  };
  void link(const std::vector<uint64_t>& edge_of);
  uint32_t step(uint32_t prefix, char byte) const;

  std::vector<Prefix> prefixes_;
  std::unordered_map<uint64_t, uint32_t> longer_;  // prefix * 256 + next byte -> prefix
  uint32_t at_ = 0;                                // the beginning that the text ends with
  bool include_stop_;
  bool stopped_ = false;
  std::string held_, matched_;
};

}  // namespace dovetail::core
