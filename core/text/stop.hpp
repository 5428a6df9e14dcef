// StopMatcher: finds stop strings in streamed text and holds back only what could still become one.
//
// Text after a match never appears. A held part is the longest end of the text that is a beginning of
// some stop string; it is released as soon as it cannot be one any more.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dovetail::core {

class StopMatcher {
 public:
  /// Empty strings are ignored. With include_stop the match itself is given out too.
  explicit StopMatcher(const std::vector<std::string>& stops, bool include_stop = false);

  /// More text; returns what can be shown now. After a match: nothing.
  std::string feed(std::string_view text);
  /// The end of the text: what was held.
  std::string flush();
  bool stopped() const { return stopped_; }
  /// The stop string that matched.
  const std::string& matched() const { return matched_; }

 private:
  // Knuth-Morris-Pratt per stop string: state is how many of its bytes the text ends with.
  struct Pattern {
    std::string text;
    std::vector<size_t> fail;
    size_t state = 0;
  };
  std::vector<Pattern> patterns_;
  bool include_stop_;
  bool stopped_ = false;
  std::string held_, matched_;
};

}  // namespace dovetail::core
