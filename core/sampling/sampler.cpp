#include "core/sampling/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "core/plugin/host.hpp"
#include "core/sampling/philox.hpp"

namespace dovetail::core {
namespace {

bool likelier(const dvt_cand& a, const dvt_cand& b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; }

}  // namespace

SamplerChain::~SamplerChain() { close(); }
SamplerChain::SamplerChain(SamplerChain&& other) noexcept
    : stages_(std::exchange(other.stages_, {})), n_ids_(other.n_ids_) {}
SamplerChain& SamplerChain::operator=(SamplerChain&& other) noexcept {
  if (this != &other) {
    close();
    stages_ = std::exchange(other.stages_, {});
    n_ids_ = other.n_ids_;
  }
  return *this;
}
void SamplerChain::close() {
  for (Stage& s : stages_)
    if (s.object) s.table->close(s.object);
  stages_.clear();
}

Status SamplerChain::add(std::string name, const dvt_sampler_v1* table, void* plugin, Node defaults, uint32_t vocab_size) {
  Stage stage{std::move(name), table, nullptr, std::make_unique<Node>(std::move(defaults))};
  CallFrame call;
  DVT_TRY(call.check(table->open(plugin, call, doc_handle(*stage.defaults), vocab_size, &stage.object)).in("sampler " + stage.name));
  stages_.push_back(std::move(stage));
  return Status::ok();
}

Result<std::unique_ptr<SamplerState>> SamplerState::begin(const SamplerChain& chain, const Node& overrides, std::span<const uint32_t> prompt,
                                                          std::optional<uint64_t> seed, uint32_t choice) {
  auto state = std::unique_ptr<SamplerState>(new SamplerState(chain));
  state->choice_ = choice;
  state->seed_ = seed ? *seed : uint64_t{std::random_device{}()} << 32 | std::random_device{}();
  state->overrides_ = std::make_unique<Node>(overrides);
  if (overrides.is_map())
    for (const auto& [key, value] : overrides.entries()) {
      const bool known = std::any_of(chain.stages_.begin(), chain.stages_.end(), [&k = key](const auto& s) { return s.defaults->find(k) != nullptr; });
      if (!known) return invalid("no sampler stage of this model has a parameter \"" + key + "\"; add the stage to `sampler`");
    }
  const dvt_doc doc = overrides.is_null() ? 0 : doc_handle(*state->overrides_);
  for (const SamplerChain::Stage& s : chain.stages_) {
    CallFrame call;
    void* request = nullptr;
    DVT_TRY(call.check(s.table->begin(s.object, call, doc, prompt.data(), prompt.size(), &request)).in("sampler " + s.name));
    state->requests_.push_back(request);
  }
  return state;
}

SamplerState::~SamplerState() {
  for (size_t i = 0; i < requests_.size(); ++i) chain_.stages_[i].table->end(requests_[i]);
}

Result<uint32_t> SamplerState::sample(std::span<const float> logits, uint64_t position, std::span<const uint32_t> allowed) {
  const size_t n = std::min<size_t>(logits.size(), chain_.n_ids_);
  candidates_.clear();
  candidates_.reserve(n);
  for (size_t id = 0; id < n; ++id) {
    const bool masked = !allowed.empty() && (allowed[id / 32] >> (id % 32) & 1u) == 0;
    if (!masked && !std::isnan(logits[id])) candidates_.push_back({static_cast<uint32_t>(id), logits[id]});
  }
  if (candidates_.empty())
    return internal_error("every logit at position " + std::to_string(position) + " is NaN or masked; the model or its weights are damaged");
  dvt_cands list{sizeof list, 2, candidates_.data(), candidates_.size()};
  CallFrame call;
  for (size_t i = 0; i < requests_.size(); ++i) {
    const SamplerChain::Stage& s = chain_.stages_[i];
    DVT_TRY(call.check(s.table->apply(requests_[i], call, &list)).in("sampler " + s.name));
    if (list.n == 0 || list.n > candidates_.size()) return internal_error("sampler " + s.name + " left " + std::to_string(list.n) + " candidates");
  }
  candidates_.resize(list.n);
  if (candidates_.size() == 1) return candidates_[0].id;
  return draw(uniform_at(seed_, choice_, position));
}

// Inverse of the cumulative distribution, in the order the stages left: by id, or by likelihood.
uint32_t SamplerState::draw(double uniform) {
  float top = candidates_[0].logit;
  for (const dvt_cand& c : candidates_) top = std::max(top, c.logit);
  if (std::isinf(top)) {  // +inf beats everything; all -inf: nothing is likelier than the lowest id
    return std::min_element(candidates_.begin(), candidates_.end(), likelier)->id;
  }
  weights_.resize(candidates_.size());
  double sum = 0;
  for (size_t i = 0; i < candidates_.size(); ++i) sum += weights_[i] = std::exp(static_cast<double>(candidates_[i].logit) - top);
  double left = uniform * sum;
  size_t last = 0;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (weights_[i] == 0) continue;
    last = i;
    if ((left -= weights_[i]) < 0) break;
  }
  return candidates_[last].id;
}

Status SamplerState::accept(uint32_t id) {
  for (size_t i = 0; i < requests_.size(); ++i) {
    const SamplerChain::Stage& s = chain_.stages_[i];
    if (!DVT_HAS(s.table, accept)) continue;
    CallFrame call;
    DVT_TRY(call.check(s.table->accept(requests_[i], call, id)).in("sampler " + s.name));
  }
  return Status::ok();
}

Status SamplerState::rewind(uint64_t n) {
  for (size_t i = 0; i < requests_.size(); ++i) {
    const SamplerChain::Stage& s = chain_.stages_[i];
    if (!DVT_HAS(s.table, rewind)) continue;
    CallFrame call;
    DVT_TRY(call.check(s.table->rewind(requests_[i], call, n)).in("sampler " + s.name));
  }
  return Status::ok();
}

std::vector<TokenProbability> likeliest(std::span<const float> logits, size_t n, uint32_t n_ids) {
  std::vector<dvt_cand> all;
  double top = -INFINITY;
  for (size_t id = 0; id < std::min<size_t>(logits.size(), n_ids); ++id)
    if (!std::isnan(logits[id])) {
      all.push_back({static_cast<uint32_t>(id), logits[id]});
      top = std::max(top, static_cast<double>(logits[id]));
    }
  n = std::min(n, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n), all.end(), likelier);
  double sum = 0;
  for (const dvt_cand& c : all) sum += std::exp(c.logit - top);
  std::vector<TokenProbability> out;
  for (size_t i = 0; i < n; ++i) out.push_back({all[i].id, std::exp(all[i].logit - top) / sum});
  return out;
}

}  // namespace dovetail::core
