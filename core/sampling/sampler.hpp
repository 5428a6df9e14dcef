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
#include "core/base/thread_pool.hpp"
#include "core/config/schema.hpp"

namespace dovetail::core {

class SamplerChain {
 public:
  SamplerChain() = default;
  ~SamplerChain();
  SamplerChain(SamplerChain&& other) noexcept;
  SamplerChain& operator=(SamplerChain&& other) noexcept;

  /// Adds a stage: `table` of the plugin object `plugin`, which outlive this. `defaults` are its
  /// checked parameters, `params` what it declares: requests may set these, and their values are
  /// checked against it. Without `params` a request may set what `defaults` has, unchecked.
  Status add(std::string name, const dvt_sampler_v1* table, void* plugin, Node defaults,
             uint32_t vocab_size, std::vector<ParamSpec> params = {});
  /// Ids from n_ids on are never drawn: the tokenizer does not have them.
  void set_n_ids(uint32_t n_ids) { n_ids_ = n_ids; }
  uint32_t n_ids() const { return n_ids_; }
  /// Threads that draws may use; it outlives this. Without, a draw is the caller's work alone.
  void set_pool(ThreadPool* pool) { pool_ = pool; }
  ThreadPool* pool() const { return pool_; }
  size_t size() const { return stages_.size(); }

 private:
  friend class SamplerState;
  struct Stage {
    std::string name;
    const dvt_sampler_v1* table = nullptr;
    void* object = nullptr;
    std::unique_ptr<Node> defaults;  // the plugin may keep its handle
    std::vector<ParamSpec> params;
  };
  Status check(const Node& overrides) const;
  Status check_override(const std::string& key, const Node& value) const;
  void close();

  std::vector<Stage> stages_;
  uint32_t n_ids_ = UINT32_MAX;
  ThreadPool* pool_ = nullptr;
};

class SamplerState {
 public:
  /// `overrides` is a map of parameters that the request sets, by name, or null; a value of null
  /// means the stage's own. Without a seed one of 63 bits is drawn; seed() reports it. The chain outlives this.
  /// errors   kInvalid: a name that no stage has, a value of the wrong type or range. What a stage
  ///          reports.
  static Result<std::unique_ptr<SamplerState>> begin(const SamplerChain& chain,
                                                     const Node& overrides,
                                                     std::span<const uint32_t> prompt,
                                                     std::optional<uint64_t> seed, uint32_t choice);
  ~SamplerState();
  SamplerState(const SamplerState&) = delete;
  SamplerState& operator=(const SamplerState&) = delete;

  /// Draws the id at `position` of the text from its logits [V]. `allowed` is a mask of bits [V/32],
  /// or empty. Allocates nothing after the first call, but what a stage does.
  /// errors   kInternal: every logit is NaN, -inf or masked. What a stage reports.
  Result<uint32_t> sample(std::span<const float> logits, uint64_t position,
                          std::span<const uint32_t> allowed = {});
  /// The id became part of the text.
  Status accept(uint32_t id);
  /// The last n accepted ids did not.
  Status rewind(uint64_t n);
  uint64_t seed() const { return seed_; }
  /// Whether the stages come down to the likeliest id, the lowest on ties: no random number and no
  /// state has a say in it.
  bool is_argmax() const { return is_argmax_; }

 private:
  explicit SamplerState(const SamplerChain& chain) : chain_(chain) {}
  Result<uint32_t> draw(dvt_cands& list, double uniform);

  const SamplerChain& chain_;
  std::vector<void*> requests_;  // by stage
  std::unique_ptr<Node> overrides_;
  uint64_t seed_ = 0;
  uint32_t choice_ = 0;
  bool is_argmax_ = false;
  std::vector<dvt_cand> candidates_;  // [V], reused
  std::vector<double> sums_;          // [V], reused
};

/// The error of a row of logits that has no number in it.
Status nothing_to_draw(uint64_t position);

/// A mask of bits [vocab_size / 32] that allows the first n_ids ids: those that a tokenizer has.
std::vector<uint32_t> first_ids_mask(uint64_t n_ids, size_t vocab_size);

/// An id with its probability.
struct TokenProbability {
  uint32_t id = 0;
  double probability = 0;
};

/// The n likeliest ids of raw logits, likeliest first, with their probabilities among all: softmax
/// at temperature 1, before any stage.
std::vector<TokenProbability> likeliest(std::span<const float> logits, size_t n,
                                        uint32_t n_ids = UINT32_MAX);

}  // namespace dovetail::core
