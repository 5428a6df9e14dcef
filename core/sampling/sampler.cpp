#include "core/sampling/sampler.hpp"

#include <algorithm>
#include <random>
#include <utility>

#include "core/base/assert.hpp"
#include "core/base/nearest.hpp"
#include "core/config/check_value.hpp"
#include "core/plugin/host.hpp"
#include "core/sampling/draw.hpp"
#include "core/sampling/philox.hpp"

namespace dovetail::core {
namespace {

bool likelier(const dvt_cand& a, const dvt_cand& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}
bool lower_id(const dvt_cand& a, const dvt_cand& b) {
  return a.id < b.id;
}

// 63 bits: a config's integers have a sign, and what is drawn can be asked for again.
uint64_t draw_seed() {
  std::random_device device;
  return (uint64_t{device()} << 32 | device()) >> 1;
}

}  // namespace

Status nothing_to_draw(uint64_t position) {
  return internal_error(
      "every logit at position " + std::to_string(position) +
      " is NaN, -inf or masked, expected at least one that is not; the model, its "
      "weights or the token mask are damaged");
}

std::vector<uint32_t> first_ids_mask(uint64_t n_ids, size_t vocab_size) {
  std::vector<uint32_t> mask((vocab_size + 31) / 32);
  for (size_t id = 0; id < std::min<uint64_t>(n_ids, vocab_size); ++id)
    mask[id / 32] |= 1u << id % 32;
  return mask;
}

// ---------------------------------------------------------------- the chain

SamplerChain::~SamplerChain() {
  close();
}
SamplerChain::SamplerChain(SamplerChain&& other) noexcept
    : stages_(std::exchange(other.stages_, {})), n_ids_(other.n_ids_), pool_(other.pool_) {}
SamplerChain& SamplerChain::operator=(SamplerChain&& other) noexcept {
  if (this != &other) {
    close();
    stages_ = std::exchange(other.stages_, {});
    n_ids_ = other.n_ids_;
    pool_ = other.pool_;
  }
  return *this;
}
void SamplerChain::close() {
  for (Stage& s : stages_) s.table->close(s.object);
  stages_.clear();
}

Status SamplerChain::add(std::string name, const dvt_sampler_v1* table, void* plugin, Node defaults,
                         uint32_t vocab_size, std::vector<ParamSpec> params) {
  Stage stage{std::move(name), table, nullptr, std::make_unique<Node>(std::move(defaults)),
              std::move(params)};
  stage.defaults->build_index();
  CallFrame call;
  DVT_TRY(
      call.check(table->open(plugin, call, doc_handle(*stage.defaults), vocab_size, &stage.object))
          .in("sampler " + stage.name));
  stages_.push_back(std::move(stage));
  return Status::ok();
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): stages_ has the node now

Status SamplerChain::check(const Node& overrides) const {
  if (overrides.is_null()) return Status::ok();
  if (!overrides.is_map())
    return invalid(std::string("the sampler parameters of a request are ") + overrides.kind_name() +
                   ", expected a map");
  for (const auto& [key, value] : overrides.entries()) DVT_TRY(check_override(key, value));
  return Status::ok();
}

Status SamplerChain::check_override(const std::string& key, const Node& value) const {
  Node placed = value;
  if (!value.origin().source) placed.set_origin({std::make_shared<std::string>("request")});
  bool is_known = false;
  std::vector<std::string> names;
  for (const Stage& s : stages_) {
    for (const ParamSpec& spec : s.params) names.push_back(spec.name);
    is_known |= s.params.empty() && s.defaults->find(key) != nullptr;
    const ParamSpec* spec = find_spec(s.params, key);
    if (!spec) continue;
    is_known = true;
    Faults faults;
    check_value(placed, *spec, key, faults);
    DVT_TRY(faults.status());
  }
  if (!is_known)
    return invalid("no sampler stage of this model has a parameter \"" + key + "\"" +
                   did_you_mean(key, names) + "; add its stage to `sampler` in the config");
  return Status::ok();
}

// ---------------------------------------------------------------- one request

Result<std::unique_ptr<SamplerState>> SamplerState::begin(const SamplerChain& chain,
                                                          const Node& overrides,
                                                          std::span<const uint32_t> prompt,
                                                          std::optional<uint64_t> seed,
                                                          uint32_t choice) {
  DVT_TRY(chain.check(overrides));
  auto state = std::unique_ptr<SamplerState>(new SamplerState(chain));
  state->choice_ = choice;
  state->seed_ = seed ? *seed : draw_seed();
  state->overrides_ = std::make_unique<Node>(overrides);
  state->overrides_->build_index();
  const dvt_doc doc = overrides.is_null() ? 0 : doc_handle(*state->overrides_);
  bool keeps_argmax = true;
  bool is_argmax = false;
  for (const SamplerChain::Stage& s : chain.stages_) {
    CallFrame call;
    void* request = nullptr;
    DVT_TRY(call.check(s.table->begin(s.object, call, doc, prompt.data(), prompt.size(), &request))
                .in("sampler " + s.name));
    state->requests_.push_back(request);
    const uint32_t effect =
        DVT_HAS(s.table, effect) ? s.table->effect(request) : uint32_t{DVT_EFFECT_ANY};
    is_argmax |= effect == DVT_EFFECT_ARGMAX;
    keeps_argmax &= effect == DVT_EFFECT_ARGMAX || effect == DVT_EFFECT_KEEPS_ARGMAX;
  }
  state->is_argmax_ = is_argmax && keeps_argmax;
  return state;
}

SamplerState::~SamplerState() {
  for (size_t i = 0; i < requests_.size(); ++i) chain_.stages_[i].table->end(requests_[i]);
}

Result<uint32_t> SamplerState::sample(std::span<const float> logits, uint64_t position,
                                      std::span<const uint32_t> allowed) {
  DVT_ASSERT(allowed.empty() || allowed.size() >= (logits.size() + 31) / 32);
  logits = logits.first(std::min<size_t>(logits.size(), chain_.n_ids_));
  if (is_argmax_) {
    const std::optional<uint32_t> best = likeliest_id(logits, allowed);
    if (!best) return nothing_to_draw(position);
    return *best;
  }
  if (candidates_.size() < logits.size()) candidates_.resize(logits.size());
  const size_t n = fill_candidates(logits, allowed, chain_.pool_, candidates_.data());
  if (n == 0) return nothing_to_draw(position);
  dvt_cands list{sizeof list, 2, candidates_.data(), n};
  CallFrame call;
  for (size_t i = 0; i < requests_.size(); ++i) {
    const SamplerChain::Stage& s = chain_.stages_[i];
    const uint64_t n_before = list.n;
    if (const dvt_code code = s.table->apply(requests_[i], call, &list); code != DVT_OK)
      return call.check(code).in("sampler " + s.name);
    if (list.c != candidates_.data() || list.n == 0 || list.n > n_before)
      return internal_error("sampler " + s.name + " left " + std::to_string(list.n) + " of " +
                            std::to_string(n_before) +
                            " candidates, expected at least one of them");
  }
  if (list.n == 1) return list.c[0].id;
  return draw(list, uniform_at(seed_, choice_, position));
}

// Inverse of the cumulative distribution by id, whatever order the stages left: so a stage that
// does nothing, or sorts in another way, does not change what is drawn.
Result<uint32_t> SamplerState::draw(dvt_cands& list, double uniform) {
  if (list.sorted != 2) std::sort(list.c, list.c + list.n, lower_id);
  if (sums_.size() < list.n) sums_.resize(candidates_.size());
  const std::optional<uint32_t> id = draw_id({list.c, list.n}, uniform, chain_.pool_, sums_.data());
  if (id) return *id;
  return internal_error("the sampler stages left " + std::to_string(list.n) +
                        " candidates, but no logit that is a number over -inf");
}

Status SamplerState::accept(uint32_t id) {
  CallFrame call;
  for (size_t i = 0; i < requests_.size(); ++i) {
    const SamplerChain::Stage& s = chain_.stages_[i];
    if (!DVT_HAS(s.table, accept)) continue;
    if (const dvt_code code = s.table->accept(requests_[i], call, id); code != DVT_OK)
      return call.check(code).in("sampler " + s.name);
  }
  return Status::ok();
}

Status SamplerState::rewind(uint64_t n) {
  CallFrame call;
  for (size_t i = 0; i < requests_.size(); ++i) {
    const SamplerChain::Stage& s = chain_.stages_[i];
    if (!DVT_HAS(s.table, rewind)) continue;
    if (const dvt_code code = s.table->rewind(requests_[i], call, n); code != DVT_OK)
      return call.check(code).in("sampler " + s.name);
  }
  return Status::ok();
}

// ---------------------------------------------------------------- raw probabilities

std::vector<TokenProbability> likeliest(std::span<const float> logits, size_t n, uint32_t n_ids) {
  std::vector<dvt_cand> all(std::min<size_t>(logits.size(), n_ids));
  all.resize(fill_candidates(logits.first(all.size()), {}, nullptr, all.data()));
  if (all.empty()) return {};
  n = std::min(n, all.size());
  const float top = highest_logit(all);
  double total = 0;
  for (const dvt_cand& c : all) total += softmax_weight(c.logit, top);
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n), all.end(), likelier);
  std::vector<TokenProbability> out;
  for (size_t i = 0; i < n; ++i)
    out.push_back({all[i].id, softmax_weight(all[i].logit, top) / total});
  return out;
}

}  // namespace dovetail::core
