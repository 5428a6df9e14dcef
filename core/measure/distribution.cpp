#include "core/measure/distribution.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dovetail::core {

double log_sum_exp(std::span<const float> logits) {
  float top = -std::numeric_limits<float>::infinity();
  for (const float x : logits) top = std::max(top, x);  // passes over NaN, which the sum finds
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - static_cast<double>(top));
  return std::log(sum) + static_cast<double>(top);
}

double kl_divergence(std::span<const float> p, double p_sum, std::span<const float> q,
                     double q_sum) {
  if (std::isnan(p_sum) || std::isnan(q_sum)) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    const double log_p = static_cast<double>(p[i]) - p_sum;
    const double probability = std::exp(log_p);
    if (probability > 0) sum += probability * (log_p - (static_cast<double>(q[i]) - q_sum));
  }
  return std::max(0.0, sum);  // equal ones may round to less than 0
}

TopTwo top_two(std::span<const float> logits) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  TopTwo top{{0, 0}, {kNone, kNone}};
  for (size_t i = 0; i < logits.size(); ++i) {
    const float x = logits[i];
    const auto id = static_cast<uint32_t>(i);
    if (x > top.logit[0])
      top = {{id, top.id[0]}, {x, top.logit[0]}};
    else if (x > top.logit[1])
      top.id[1] = id, top.logit[1] = x;
  }
  return top;
}

void RunningMean::add(double x) {
  ++n_;
  const double from_old = x - mean_;
  mean_ += from_old / static_cast<double>(n_);
  squares_ += from_old * (x - mean_);
}

double RunningMean::standard_error() const {
  if (n_ < 2) return 0;
  const auto n = static_cast<double>(n_);
  return std::sqrt(squares_ / (n - 1) / n);
}

}  // namespace dovetail::core
