// Bound by memory and by exp(): a vocabulary is some 150,000 ids, a row of logits 600 KB.
#include "core/sampling/draw.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

namespace dovetail::core {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr size_t kGrain = 8192;  // ids that a lane takes at once: some 5 to 30 us
constexpr size_t kBlock = 32;    // ids of a mask's word

bool is_allowed(std::span<const uint32_t> allowed, size_t id) {
  return allowed.empty() || (allowed[id / 32] >> (id % 32) & 1u) != 0;
}

template <class Fn>
void share(ThreadPool* pool, size_t n, Fn fn) {
  if (pool == nullptr || n <= kGrain) return fn(size_t{0}, n);
  pool->parallel_for(n, kGrain, [&](uint64_t begin, uint64_t end, uint32_t) { fn(begin, end); });
}

// The highest of logit_at(0 .. n-1), without NaN: several at a time, so that it becomes vector code.
template <class Fn>
float highest(size_t n, Fn logit_at) {
  constexpr size_t kChains = 8;
  float most[kChains];
  std::fill(most, most + kChains, -kInfinity);
  size_t i = 0;
  for (; i + kChains <= n; i += kChains) {
    for (size_t k = 0; k < kChains; ++k) {
      const float x = logit_at(i + k);
      most[k] = x > most[k] ? x : most[k];
    }
  }
  for (; i < n; ++i) most[0] = logit_at(i) > most[0] ? logit_at(i) : most[0];
  return *std::max_element(most, most + kChains);
}

}  // namespace

size_t fill_candidates(std::span<const float> logits, std::span<const uint32_t> allowed,
                       ThreadPool* pool, dvt_cand* out) {
  const auto may_be_drawn = [&](const dvt_cand& c) {
    return c.logit > -kInfinity && is_allowed(allowed, c.id);  // no NaN is over -inf
  };
  std::atomic<bool> is_any_left_out{false};
  share(pool, logits.size(), [&](size_t begin, size_t end) {
    bool all = true;
    for (size_t id = begin; id < end; ++id) {
      out[id] = {static_cast<uint32_t>(id), logits[id]};
      all &= may_be_drawn(out[id]);
    }
    if (!all) is_any_left_out.store(true, std::memory_order_relaxed);
  });
  if (!is_any_left_out) return logits.size();
  return static_cast<size_t>(std::remove_if(out, out + logits.size(),
                                            [&](const dvt_cand& c) { return !may_be_drawn(c); }) -
                             out);
}

std::optional<uint32_t> likeliest_id(std::span<const float> logits,
                                     std::span<const uint32_t> allowed) {
  std::optional<uint32_t> best;
  float top = -kInfinity;
  for (size_t begin = 0; begin < logits.size(); begin += kBlock) {
    const std::span<const float> block =
        logits.subspan(begin, std::min(kBlock, logits.size() - begin));
    if (!(highest(block.size(), [&](size_t i) { return block[i]; }) > top)) continue;
    for (size_t i = 0; i < block.size(); ++i) {
      if (!(block[i] > top) || !is_allowed(allowed, begin + i)) continue;
      top = block[i];
      best = static_cast<uint32_t>(begin + i);
    }
  }
  return best;
}

float highest_logit(std::span<const dvt_cand> candidates) {
  return highest(candidates.size(), [&](size_t i) { return candidates[i].logit; });
}

double softmax_weight(float logit, float top) {
  if (std::isinf(top)) return logit == top ? 1.0 : 0.0;
  return std::exp(static_cast<double>(logit) - static_cast<double>(top));
}

std::optional<uint32_t> draw_id(std::span<const dvt_cand> candidates, double uniform,
                                ThreadPool* pool, double* sums) {
  const size_t n = candidates.size();
  const float top = highest_logit(candidates);
  if (top == -kInfinity) return std::nullopt;
  share(pool, n, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) sums[i] = softmax_weight(candidates[i].logit, top);
  });
  double total = 0;
  for (size_t i = 0; i < n; ++i) sums[i] = total += sums[i];
  if (!(total > 0)) return std::nullopt;
  // Under the last sum, however uniform * total is rounded: so that one is over it.
  const double wanted = std::min(uniform * total, std::nextafter(total, 0.0));
  return candidates[static_cast<size_t>(std::upper_bound(sums, sums + n, wanted) - sums)].id;
}

}  // namespace dovetail::core
