#include "trainer.hpp"

#include <algorithm>
#include <array>
#include <queue>
#include <unordered_set>

#include "byte_symbols.hpp"
#include "error.hpp"
#include "hash.hpp"
#include "repair_utf8.hpp"
#include "unicode_forms.hpp"
#include "utf8.hpp"

namespace dovetail::bpe {
namespace {

using Pair = std::pair<uint32_t, uint32_t>;

struct PairHash {
  size_t operator()(const Pair& p) const { return hash_pair(p.first, p.second); }
};

struct Symbol {
  uint32_t id;
  uint32_t len;  // in bytes of the text
};

struct Word {
  std::vector<Symbol> symbols;
  int64_t count;
};

// A pair that may be the next to merge, with the words known to contain it.
struct Candidate {
  int64_t count;
  Pair pair;
  std::vector<uint32_t> words;  // rising

  bool operator<(const Candidate& other) const {  // the queue's top is the greatest
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

class Learner {
 public:
  Learner(const TrainOptions& options, const std::unordered_map<std::string, uint64_t>& words)
      : options_(options) {
    std::vector<std::pair<std::string_view, uint64_t>> sorted(words.begin(), words.end());
    std::sort(sorted.begin(), sorted.end());
    start_vocabulary(sorted);
    make_words(sorted);
    count_pairs();
  }

  std::optional<TrainedBpe> run(const std::function<bool(uint64_t, uint64_t)>& progress) {
    constexpr uint64_t kProgressEvery = 64;
    while (result_.vocab.size() < options_.vocab_size && !queue_.empty()) {
      Candidate best = queue_.top();
      queue_.pop();
      if (const int64_t now = counts_[best.pair]; now != best.count) {
        best.count = now;
        queue_.push(std::move(best));
        continue;
      }
      if (best.count < 1 || static_cast<uint64_t>(best.count) < options_.min_frequency) break;
      merge_everywhere(best);
      if (result_.merges.size() % kProgressEvery == 0 && progress &&
          !progress(result_.vocab.size(), options_.vocab_size)) {
        return std::nullopt;
      }
    }
    if (progress) progress(result_.vocab.size(), result_.vocab.size());
    return std::move(result_);
  }

 private:
  uint32_t add_token(const std::string& content) {
    const auto [it, is_new] = ids_.emplace(content, static_cast<uint32_t>(result_.vocab.size()));
    if (is_new) result_.vocab.push_back(content);
    return it->second;
  }

  // Special tokens in the given order, then the bytes in the order of their symbols.
  void start_vocabulary(const std::vector<std::pair<std::string_view, uint64_t>>& words) {
    for (const std::string& token : options_.special_tokens) add_token(token);
    std::array<uint64_t, 256> seen{};
    for (const auto& [word, count] : words) {
      for (const char c : word) seen[static_cast<uint8_t>(c)] += count;
    }
    std::vector<uint8_t> kept;
    for (uint32_t b = 0; b < 256; ++b) {
      if (seen[b] > 0 || options_.all_bytes) kept.push_back(static_cast<uint8_t>(b));
    }
    const auto by_symbol = [](uint8_t a, uint8_t b) { return kSymbolOfByte[a] < kSymbolOfByte[b]; };
    if (!options_.all_bytes && options_.limit_alphabet && kept.size() > *options_.limit_alphabet) {
      std::sort(kept.begin(), kept.end(), [&](uint8_t a, uint8_t b) {
        return seen[a] != seen[b] ? seen[a] > seen[b] : by_symbol(a, b);
      });
      kept.resize(*options_.limit_alphabet);
    }
    std::sort(kept.begin(), kept.end(), by_symbol);
    id_of_byte_.fill(UINT32_MAX);
    for (const uint8_t b : kept) {
      std::string symbol;
      append_utf8(kSymbolOfByte[b], &symbol);
      id_of_byte_[b] = add_token(symbol);
    }
  }

  void make_words(const std::vector<std::pair<std::string_view, uint64_t>>& sorted) {
    for (const auto& [word, count] : sorted) {
      Word w{{}, static_cast<int64_t>(count)};
      for (const char c : word) {
        const uint32_t id = id_of_byte_[static_cast<uint8_t>(c)];
        if (id != UINT32_MAX) w.symbols.push_back({id, 1});
      }
      words_.push_back(std::move(w));
    }
  }

  void count_pairs() {
    std::unordered_map<Pair, std::vector<uint32_t>, PairHash> places;
    for (uint32_t w = 0; w < words_.size(); ++w) {
      const auto& s = words_[w].symbols;
      for (size_t i = 0; i + 1 < s.size(); ++i) {
        const Pair pair{s[i].id, s[i + 1].id};
        counts_[pair] += words_[w].count;
        auto& list = places[pair];
        if (list.empty() || list.back() != w) list.push_back(w);
      }
    }
    push_candidates(&places);
  }

  void push_candidates(std::unordered_map<Pair, std::vector<uint32_t>, PairHash>* places) {
    for (auto& [pair, words] : *places) {
      if (const int64_t count = counts_[pair]; count > 0)
        queue_.push({count, pair, std::move(words)});
    }
  }

  void merge_everywhere(const Candidate& best) {
    const auto [left, right] = best.pair;
    const uint32_t merged = add_token(result_.vocab[left] + result_.vocab[right]);
    result_.merges.push_back(best.pair);
    std::unordered_map<Pair, std::vector<uint32_t>, PairHash> gained;
    for (const uint32_t w : best.words) merge_in_word(w, left, right, merged, &gained);
    push_candidates(&gained);
  }

  // Merges left to right; "previous" may be a token that this very pass has made.
  void merge_in_word(uint32_t w, uint32_t left, uint32_t right, uint32_t merged,
                     std::unordered_map<Pair, std::vector<uint32_t>, PairHash>* gained) {
    auto& s = words_[w].symbols;
    const int64_t count = words_[w].count;
    const auto gain = [&](const Symbol& a, const Symbol& b) {
      if (options_.max_token_len && a.len + b.len >= *options_.max_token_len) return;
      const Pair pair{a.id, b.id};
      counts_[pair] += count;
      auto& list = (*gained)[pair];
      if (list.empty() || list.back() != w) list.push_back(w);
    };
    size_t out = 0;
    for (size_t i = 0; i < s.size(); ++i, ++out) {
      if (i + 1 == s.size() || s[i].id != left || s[i + 1].id != right) {
        s[out] = s[i];
        continue;
      }
      const Symbol made{merged, s[i].len + s[i + 1].len};
      if (out > 0) {
        counts_[{s[out - 1].id, left}] -= count;
        gain(s[out - 1], made);
      }
      if (i + 2 < s.size()) {
        counts_[{right, s[i + 2].id}] -= count;
        gain(made, s[i + 2]);
      }
      s[out] = made;
      ++i;
    }
    s.resize(out);
  }

  const TrainOptions& options_;
  TrainedBpe result_;
  std::unordered_map<std::string, uint32_t> ids_;
  std::array<uint32_t, 256> id_of_byte_{};
  std::vector<Word> words_;
  std::unordered_map<Pair, int64_t, PairHash> counts_;
  std::priority_queue<Candidate> queue_;
};

}  // namespace

Trainer::Trainer(TrainOptions options) : options_(std::move(options)) {
  std::unordered_set<std::string_view> seen;
  for (const std::string& token : options_.special_tokens) {
    if (token.empty()) fail_invalid("a special token is empty");
    if (!seen.insert(token).second) fail_invalid("special token \"" + token + "\" is given twice");
    if (valid_utf8_prefix(token) != token.size())
      fail_invalid("a special token is not valid UTF-8");
  }
  if (options_.pattern == "gpt2") {
    pre_tokenizer_.add_byte_level(false, true);
  } else {
    const std::string_view pattern = options_.pattern == "qwen2" ? kQwen2Pattern : options_.pattern;
    pre_tokenizer_.add_split_regex(pattern, SplitBehavior::kIsolated, false);
    pre_tokenizer_.add_byte_level(false, false);
  }
}

void Trainer::feed(std::string_view sequence) {
  layers_.start(sequence.size());
  MappedText text{sequence};
  if (valid_utf8_prefix(sequence) != sequence.size()) {
    Layer& layer = layers_.push(text);
    repair_utf8(sequence, &layer.text, &layer.alignment);
    text = layer.mapped();
  }
  if (options_.nfc) {
    Layer& layer = layers_.push(text);
    if (nfc(text.text, &layer)) text = layer.mapped();
  }
  text = pre_tokenizer_.cut(text, &layers_, &scratch_);
  for (const Piece& p : scratch_.pieces)
    ++words_[std::string(text.text.substr(p.begin, p.end - p.begin))];
}

void Trainer::feed_lines(std::string_view text) {
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    const size_t len = newline == std::string_view::npos ? text.size() : newline + 1;
    feed(text.substr(0, len));
    text.remove_prefix(len);
  }
}

std::optional<TrainedBpe> Trainer::train(
    const std::function<bool(uint64_t, uint64_t)>& progress) const {
  return Learner(options_, words_).run(progress);
}

}  // namespace dovetail::bpe
