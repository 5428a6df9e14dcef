#include "sentencepiece_merges.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace dovetail::gguf {
namespace {

constexpr size_t kMaxMerges = 4'000'000;  // many times what known vocabularies have

// Tokens by a hash that a part of a text has without its bytes being read again.
class TokenIndex {
 public:
  explicit TokenIndex(const std::vector<std::string>& tokens) : tokens_(tokens) {
    size_t longest = 0;
    for (uint32_t id = 0; id < tokens.size(); ++id) {
      longest = std::max(longest, tokens[id].size());
      if (tokens[id].empty() || find(tokens[id], hash_of(tokens[id])) != kNone) continue;
      by_hash_.emplace(hash_of(tokens[id]), id);
    }
    powers_.push_back(1);
    while (powers_.size() <= longest) powers_.push_back(times(powers_.back(), kBase));
  }

  /// Calls fn(cut, left id, right id) for each cut of the token into two tokens, none inside a character.
  template <class Fn>
  void for_each_cut(std::string_view token, Fn&& fn) {
    hashes_.assign(1, 0);  // of the token's beginnings
    for (const char c : token) hashes_.push_back(next(hashes_.back(), c));
    const size_t n = token.size();
    for (size_t cut = 1; cut < n; ++cut) {
      if ((static_cast<uint8_t>(token[cut]) & 0xc0) == 0x80) continue;
      const uint32_t left = find(token.substr(0, cut), hashes_[cut]);
      if (left == kNone) continue;
      const uint64_t before = times(hashes_[cut], powers_[n - cut]);
      const uint64_t right_hash = hashes_[n] + (hashes_[n] < before ? kPrime : 0) - before;
      const uint32_t right = find(token.substr(cut), right_hash);
      if (right != kNone) fn(cut, left, right);
    }
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1, kBase = 0x1b873593d1b54a33 % kPrime;

  static uint64_t times(uint64_t a, uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>(Wide{a} * b % kPrime);
  }
  static uint64_t next(uint64_t hash, char c) {
    return (times(hash, kBase) + static_cast<uint8_t>(c) + 1) % kPrime;
  }
  static uint64_t hash_of(std::string_view text) {
    uint64_t hash = 0;
    for (const char c : text) hash = next(hash, c);
    return hash;
  }
  uint32_t find(std::string_view text, uint64_t hash) const {
    const auto [begin, end] = by_hash_.equal_range(hash);
    for (auto it = begin; it != end; ++it)
      if (tokens_[it->second] == text) return it->second;
    return kNone;
  }

  const std::vector<std::string>& tokens_;
  std::unordered_multimap<uint64_t, uint32_t> by_hash_;  // the first of those spelled alike
  std::vector<uint64_t> powers_;                         // of kBase
  std::vector<uint64_t> hashes_;
};

int64_t n_chars(std::string_view s) {
  return std::count_if(s.begin(), s.end(),
                       [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; });
}

}  // namespace

std::vector<Merge> merges_by_score(const Metadata& metadata, const std::vector<std::string>& tokens,
                                   const Value& scores) {
  TokenIndex index(tokens);
  std::vector<Merge> merges;
  for (size_t id = 0; id < tokens.size(); ++id) {
    const std::string_view token = tokens[id];
    const double score = number_at(scores, id).value_or(0);
    if (!std::isfinite(score))
      refuse(metadata.file(), "tokenizer.ggml.scores[" + std::to_string(id) + "] is " +
                                  std::to_string(score) + ", expected a finite number");
    const size_t first = merges.size();
    index.for_each_cut(token, [&](size_t cut, uint32_t left, uint32_t right) {
      if (merges.size() == kMaxMerges)
        refuse(metadata.file(), "its tokens are made of each other in more than " +
                                    std::to_string(kMaxMerges) + " ways; is it damaged?");
      merges.push_back({token.substr(0, cut), token.substr(cut), score, left, right});
    });
    std::sort(merges.begin() + static_cast<std::ptrdiff_t>(first), merges.end(),
              [](const Merge& a, const Merge& b) {
                return std::pair(a.left_id, a.right_id) < std::pair(b.left_id, b.right_id);
              });
  }
  std::stable_sort(merges.begin(), merges.end(), [](const Merge& a, const Merge& b) {
    if (a.score != b.score) return a.score > b.score;
    const auto left_a = n_chars(a.left), left_b = n_chars(b.left);
    return left_a != left_b ? left_a > left_b : n_chars(a.right) > n_chars(b.right);
  });
  return merges;
}

}  // namespace dovetail::gguf
