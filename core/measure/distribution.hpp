// Measures of rows of logits: how likely a token is, how far one distribution is from another.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace dovetail::core {

/// ln of the sum of exp over a row of logits; a logit less this is the log probability of its id.
/// numerics  double throughout; NaN where a logit is NaN or +infinity, or all are -infinity.
double log_sum_exp(std::span<const float> logits);

/// Kullback-Leibler divergence of the distribution of `q` from that of `p`, KL(p || q), in nats: at least 0, what
/// it costs to take q for p. Infinite where q rules out an id that p does not; NaN as log_sum_exp.
///
/// shapes  p, q [V], logits; p_sum, q_sum their log_sum_exp.
double kl_divergence(std::span<const float> p, double p_sum, std::span<const float> q,
                     double q_sum);

/// The two ids with the highest logits, the lower id first where they are equal.
struct TopTwo {
  std::array<uint32_t, 2> id{};
  std::array<float, 2> logit{};
  float gap() const { return logit[0] - logit[1]; }
};
/// logits [V], V >= 2.
TopTwo top_two(std::span<const float> logits);

/// Mean of a growing series with its standard error, sqrt(variance / n) with n - 1 degrees of freedom.
/// source  Welford 1962, Technometrics 4(3).
class RunningMean {
 public:
  void add(double x);
  size_t n() const { return n_; }
  double mean() const { return mean_; }
  /// 0 for fewer than two values.
  double standard_error() const;

 private:
  size_t n_ = 0;
  double mean_ = 0, squares_ = 0;
};

}  // namespace dovetail::core
