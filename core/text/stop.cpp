#include "core/text/stop.hpp"

#include <algorithm>
#include <utility>

namespace dovetail::core {

StopMatcher::StopMatcher(const std::vector<std::string>& stops, bool include_stop) : include_stop_(include_stop) {
  for (const std::string& s : stops) {
    if (s.empty()) continue;
    Pattern p{s, std::vector<size_t>(s.size(), 0)};
    for (size_t i = 1, k = 0; i < s.size(); ++i) {
      while (k > 0 && s[i] != s[k]) k = p.fail[k - 1];
      if (s[i] == s[k]) ++k;
      p.fail[i] = k;
    }
    patterns_.push_back(std::move(p));
  }
}

std::string StopMatcher::feed(std::string_view text) {
  if (stopped_) return {};
  if (patterns_.empty()) return std::string(text);
  held_ += text;
  const size_t before = held_.size() - text.size();
  for (size_t i = before; i < held_.size(); ++i) {
    const Pattern* match = nullptr;  // of those that end here the one that began first
    for (Pattern& p : patterns_) {
      while (p.state > 0 && held_[i] != p.text[p.state]) p.state = p.fail[p.state - 1];
      if (held_[i] == p.text[p.state]) ++p.state;
      if (p.state == p.text.size()) {
        if (!match || p.text.size() > match->text.size()) match = &p;
        p.state = p.fail[p.state - 1];
      }
    }
    if (match) {
      stopped_ = true;
      matched_ = match->text;
      std::string out = held_.substr(0, i + 1 - (include_stop_ ? 0 : match->text.size()));
      held_.clear();
      return out;
    }
  }
  size_t keep = 0;
  for (const Pattern& p : patterns_) keep = std::max(keep, p.state);
  std::string out = held_.substr(0, held_.size() - keep);
  held_.erase(0, out.size());
  return out;
}

std::string StopMatcher::flush() { return std::exchange(held_, {}); }

}  // namespace dovetail::core
