#include "core/text/stop.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace dovetail::core {
namespace {

uint64_t edge(uint32_t prefix, char byte) {
  return uint64_t{prefix} << 8 | static_cast<unsigned char>(byte);
}

}  // namespace

StopMatcher::StopMatcher(const std::vector<std::string>& stops, bool include_stop)
    : prefixes_(1), include_stop_(include_stop) {
  std::vector<uint64_t> edge_of(1);  // the edge that leads to each prefix
  for (const std::string& s : stops) {
    uint32_t at = 0;
    for (char byte : s) {
      const auto [it, is_new] =
          longer_.emplace(edge(at, byte), static_cast<uint32_t>(prefixes_.size()));
      if (is_new) {
        prefixes_.push_back({0, prefixes_[at].n_bytes + 1, 0});
        edge_of.push_back(it->first);
      }
      at = it->second;
    }
    prefixes_[at].n_match = prefixes_[at].n_bytes;
  }
  link(edge_of);
}

// Shorter prefixes first: those that a prefix falls back to are finished before it.
void StopMatcher::link(const std::vector<uint64_t>& edge_of) {
  std::vector<uint32_t> by_length(prefixes_.size());
  std::iota(by_length.begin(), by_length.end(), uint32_t{0});
  std::stable_sort(by_length.begin(), by_length.end(), [this](uint32_t a, uint32_t b) {
    return prefixes_[a].n_bytes < prefixes_[b].n_bytes;
  });
  for (uint32_t i : by_length) {
    Prefix& p = prefixes_[i];
    if (p.n_bytes < 2) continue;
    const auto parent = static_cast<uint32_t>(edge_of[i] >> 8);
    p.fail = step(prefixes_[parent].fail, static_cast<char>(edge_of[i] & 0xff));
    if (p.n_match == 0) p.n_match = prefixes_[p.fail].n_match;
  }
}

uint32_t StopMatcher::step(uint32_t prefix, char byte) const {
  for (;; prefix = prefixes_[prefix].fail) {
    if (const auto it = longer_.find(edge(prefix, byte)); it != longer_.end()) return it->second;
    if (prefix == 0) return 0;
  }
}

std::string StopMatcher::feed(std::string_view text) {
  if (stopped_) return {};
  if (longer_.empty()) return std::string(text);
  const size_t n_seen = held_.size();
  held_ += text;
  for (size_t i = n_seen; i < held_.size(); ++i) {
    at_ = step(at_, held_[i]);
    const size_t n_match = prefixes_[at_].n_match;
    if (n_match == 0) continue;
    stopped_ = true;
    const size_t begin = i + 1 - n_match;
    matched_ = held_.substr(begin, n_match);
    held_.resize(include_stop_ ? i + 1 : begin);
    return std::exchange(held_, {});
  }
  std::string out = held_.substr(0, held_.size() - prefixes_[at_].n_bytes);
  held_.erase(0, out.size());
  return out;
}

std::string StopMatcher::flush() {
  at_ = 0;
  return std::exchange(held_, {});
}

}  // namespace dovetail::core
