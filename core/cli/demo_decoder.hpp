// DemoDecoder: greedy decoding of one sequence on the bare model, without Engine or sampler, in three
// ways that must give the same tokens.
#pragma once

#include <vector>

#include "core/base/status.hpp"
#include "core/config/settings.hpp"
#include "core/engine/sequence.hpp"
#include "core/model/model.hpp"

namespace dovetail::core {

struct Decoded {
  std::vector<TokenId> ids;
  std::vector<double> seconds;  // since the start, when each token was known
};

class DemoDecoder {
 public:
  DemoDecoder(Model& model, const Settings& settings);

  Result<std::vector<float>> logits_after(const std::vector<TokenId>& prompt);
  /// Logits to the host, the largest chosen there, one token fed per step.
  Result<Decoded> with_cache(const std::vector<TokenId>& prompt, uint32_t n);
  /// The whole text through a new cache for every token.
  Result<Decoded> without_cache(const std::vector<TokenId>& prompt, uint32_t n);
  /// The backend chooses, and takes its own choice as the next input: each step is handed over without
  /// waiting for the one before, and the ids are read once, at the end. Needs a tokenizer.
  Result<Decoded> on_device(const std::vector<TokenId>& prompt, uint32_t n);

 private:
  Status feed(Sequence& s, size_t n_tokens);  // all pending of them; logits_ are of the last

  Model& model_;
  uint32_t max_tokens_;
  std::vector<float> logits_;
};

}  // namespace dovetail::core
