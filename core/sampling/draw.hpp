// The passes over a whole vocabulary that a draw makes: logits to candidates, candidates to one id.
// Lanes of a pool share them; the result is the same for any number of lanes.
#pragma once

#include <dovetail/abi/sampler.h>

#include <cstdint>
#include <optional>
#include <span>

#include "core/base/thread_pool.hpp"

namespace dovetail::core {

/// The ids that may be drawn, by id: neither NaN nor -inf, and allowed.
///
/// shapes    logits [V]; allowed [V/32] of bits, or empty for all; out [V], of which the first n are
///           filled. Returns n.
/// threads   `pool` may be null; allocates nothing.
size_t fill_candidates(std::span<const float> logits, std::span<const uint32_t> allowed,
                       ThreadPool* pool, dvt_cand* out);

/// The likeliest of the same ids, the lowest on ties; nothing if there are none.
std::optional<uint32_t> likeliest_id(std::span<const float> logits,
                                     std::span<const uint32_t> allowed);

/// The highest logit that is not NaN; -inf if there is none.
float highest_logit(std::span<const dvt_cand> candidates);

/// exp(logit - top): what softmax divides by the sum of all. Infinite logits share all the
/// probability.
double softmax_weight(float logit, float top);

/// Draws from the softmax of the candidates: the first whose cumulative probability is over
/// `uniform`, in [0, 1). Nothing if the logits give no probabilities: all -inf, or one NaN.
///
/// shapes    candidates [n], by id; sums [n] is overwritten.
/// numerics  double, summed in the order of the candidates.
/// threads   `pool` may be null; allocates nothing.
std::optional<uint32_t> draw_id(std::span<const dvt_cand> candidates, double uniform,
                                ThreadPool* pool, double* sums);

}  // namespace dovetail::core
