// Trainer: learns a byte-level BPE vocabulary from text, merge for merge as the reference does.
//
// The most frequent adjacent pair is merged first; of equally frequent pairs the one with the
// smallest ids. The result depends on the text and the options only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pre_tokenizer.hpp"

namespace dovetail::bpe {

struct TrainOptions {
  uint32_t vocab_size = 30000;
  uint64_t min_frequency = 0;               // of a pair; 0 and 1 mean the same
  std::vector<std::string> special_tokens;  // get the first ids
  std::string pattern = "qwen2";            // "qwen2", "gpt2" or a regex
  bool nfc = true;
  bool all_bytes = true;                   // all 256 bytes are tokens, seen or not
  std::optional<uint32_t> limit_alphabet;  // most bytes to keep; the rarest seen go
  std::optional<uint32_t> max_token_len;   // no pair is counted that would reach this many bytes
};

/// What was learnt; strings are in byte symbols.
struct TrainedBpe {
  std::vector<std::string> vocab;                     // by id
  std::vector<std::pair<uint32_t, uint32_t>> merges;  // ids, by rank
};

class Trainer {
 public:
  /// errors  kFormat, kUnsupported: the pattern; kInvalid: a special token that is empty or twice.
  explicit Trainer(TrainOptions options);

  /// Takes one sequence: no piece crosses its ends. Broken UTF-8 is replaced first.
  void feed(std::string_view sequence);
  /// Takes each line of `text`, with its line feed, as one sequence.
  void feed_lines(std::string_view text);

  /// Learns from what was fed. `progress(done, total)` counts vocabulary entries and may return
  /// false to stop; then the result is empty.
  std::optional<TrainedBpe> train(const std::function<bool(uint64_t, uint64_t)>& progress) const;

  const TrainOptions& options() const { return options_; }

 private:
  TrainOptions options_;
  PreTokenizer pre_tokenizer_;
  LayerStack layers_;
  CutScratch scratch_;
  std::unordered_map<std::string, uint64_t> words_;  // pieces and how often they came
};

/// The tokenizer.json of a trained vocabulary, loadable by Hugging Face tokenizers. Same input, same
/// bytes.
std::string to_tokenizer_json(const TrainedBpe& trained, const TrainOptions& options);

}  // namespace dovetail::bpe
