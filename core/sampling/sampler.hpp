// SamplerChain: the sampler stages of a config, opened. SamplerState: them at work for one request.
//
// A draw: candidates are all ids that may be drawn, the stages change them in order, one is drawn
// from the softmax of what they leave. An empty chain draws at temperature 1. The random number
// depends on (seed, choice, position) alone. What each stage does: docs/sampling.md.
#pragma once

#include <dovetail/abi/sampler.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/node.hpp"
#include "core/base/status.hpp"

namespace dovetail::core {

class SamplerChain {
 public:
  SamplerChain() = default;
  ~SamplerChain();
  SamplerChain(SamplerChain&& other) noexcept;
  SamplerChain& operator=(SamplerChain&& other) noexcept;

  /// Adds a stage; `defaults` are its checked parameters.
  Status add(std::string name, const dvt_sampler_v1* table, void* plugin, Node defaults, uint32_t vocab_size);
  /// Ids from n_ids on are never drawn: the tokenizer does not have them.
  void set_n_ids(uint32_t n_ids) { n_ids_ = n_ids; }
  size_t size() const { return stages_.size(); }

 private:
  friend class SamplerState;
  struct Stage {
    std::string name;
    const dvt_sampler_v1* table = nullptr;
    void* object = nullptr;
    std::unique_ptr<Node> defaults;  // the plugin may keep its handle
  };
  void close();
  std::vector<Stage> stages_;
  uint32_t n_ids_ = UINT32_MAX;
};

/// An id with its probability.
struct TokenProbability {
  uint32_t id = 0;
  double probability = 0;
};

class SamplerState {
 public:
  /// `overrides` is a map of parameters that the request sets, by name, or null; a name that no stage
  /// has is refused. Without a seed one is drawn; seed() reports it.
  static Result<std::unique_ptr<SamplerState>> begin(const SamplerChain& chain, const Node& overrides, std::span<const uint32_t> prompt,
                                                     std::optional<uint64_t> seed, uint32_t choice);
  ~SamplerState();
  SamplerState(const SamplerState&) = delete;
  SamplerState& operator=(const SamplerState&) = delete;

  /// Draws the id at `position` of the text. `allowed` is a mask of bits [V/32], or empty.
  /// errors   kInternal: every logit is NaN or masked. What a stage reports.
  Result<uint32_t> sample(std::span<const float> logits, uint64_t position, std::span<const uint32_t> allowed = {});
  /// The id became part of the text.
  Status accept(uint32_t id);
  /// The last n accepted ids did not.
  Status rewind(uint64_t n);
  uint64_t seed() const { return seed_; }

 private:
  explicit SamplerState(const SamplerChain& chain) : chain_(chain) {}
  uint32_t draw(double uniform);

  const SamplerChain& chain_;
  std::vector<void*> requests_;  // by stage
  std::unique_ptr<Node> overrides_;
  uint64_t seed_ = 0;
  uint32_t choice_ = 0;
  std::vector<dvt_cand> candidates_;
  std::vector<double> weights_;
};

/// The n likeliest ids of raw logits, likeliest first, with their probabilities among all.
std::vector<TokenProbability> likeliest(std::span<const float> logits, size_t n, uint32_t n_ids = UINT32_MAX);

}  // namespace dovetail::core
