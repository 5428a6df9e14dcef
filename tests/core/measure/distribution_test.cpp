// Expected values: Python's decimal with 40 digits, and its statistics module.
#include "core/measure/distribution.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace dovetail::core {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

double divergence(const std::vector<float>& p, const std::vector<float>& q) {
  return kl_divergence(p, log_sum_exp(p), q, log_sum_exp(q));
}

const std::vector<float> kP = {1.5f, -2.0f, 0.25f, 3.0f}, kQ = {1.0f, -1.0f, 0.5f, 2.0f};

TEST(LogSumExp, IsExactForSmallAndLargeLogits) {
  EXPECT_NEAR(log_sum_exp(kP), 3.257580508495379238652963, 1e-15);
  EXPECT_NEAR(log_sum_exp(kQ), 2.495181898085856049275257, 1e-15);
  EXPECT_NEAR(log_sum_exp(std::vector<float>{1000.5f, 998.0f, -1000.0f}),
              1000.578889734292549623344, 1e-12);
  EXPECT_NEAR(log_sum_exp(std::vector<float>(4096, 7.0f)), 7 + std::log(4096.0), 1e-12);
}

TEST(LogSumExp, MaskedIdsHaveNoProbabilityAndNanIsSeen) {
  EXPECT_DOUBLE_EQ(log_sum_exp(std::vector<float>{-kInf, 2.0f, -kInf}), 2.0);
  EXPECT_TRUE(std::isnan(log_sum_exp(std::vector<float>{1.0f, kNan, 2.0f})));
  EXPECT_TRUE(std::isnan(log_sum_exp(std::vector<float>{1.0f, kInf})));
  EXPECT_TRUE(std::isnan(log_sum_exp(std::vector<float>{-kInf, -kInf})));
}

TEST(KlDivergence, IsExactAndDirected) {
  EXPECT_NEAR(divergence(kP, kQ), 0.0791909403436155692302, 1e-14);
  EXPECT_NEAR(divergence(kQ, kP), 0.10517512129433798, 1e-15);
}

TEST(KlDivergence, IsZeroForEqualDistributionsAndForLogitsThatAreMoved) {
  EXPECT_EQ(divergence(kP, kP), 0);
  std::vector<float> moved = kP;
  for (float& x : moved) x += 8;
  EXPECT_NEAR(divergence(kP, moved), 0, 1e-14);
}

TEST(KlDivergence, IsInfiniteWhereAPossibleIdIsRuledOutNotTheOtherWay) {
  const std::vector<float> some = {1.0f, 2.0f, 3.0f}, fewer = {1.0f, -kInf, 3.0f};
  EXPECT_TRUE(std::isinf(divergence(some, fewer)));
  EXPECT_TRUE(std::isfinite(divergence(fewer, some)));
  EXPECT_TRUE(std::isnan(divergence(some, {1.0f, kNan, 2.0f})));
}

TEST(TopTwo, TakesTheLowerIdOfEqualOnes) {
  const TopTwo top = top_two(std::vector<float>{1, 5, 3, 5, 5});
  EXPECT_EQ(top.id[0], 1u);
  EXPECT_EQ(top.id[1], 3u);
  EXPECT_EQ(top.gap(), 0);
}

TEST(TopTwo, FindsThemInAnyOrder) {
  for (const std::vector<float>& row :
       {std::vector<float>{9, 7, 1}, {7, 9, 1}, {1, 7, 9}, {9, 1, 7}}) {
    const TopTwo top = top_two(row);
    EXPECT_EQ(top.logit[0], 9);
    EXPECT_EQ(top.logit[1], 7);
    EXPECT_EQ(row[top.id[0]], 9);
    EXPECT_EQ(row[top.id[1]], 7);
  }
}

TEST(RunningMean, HasTheStandardErrorOfTheMean) {
  RunningMean m;
  EXPECT_EQ(m.standard_error(), 0);
  for (const double x : {0.5, 2.0, 1.25, 4.0, 3.25}) m.add(x);
  EXPECT_EQ(m.n(), 5u);
  EXPECT_DOUBLE_EQ(m.mean(), 2.2);
  EXPECT_NEAR(m.standard_error(), 0.6393355926272211, 1e-15);
}

}  // namespace
}  // namespace dovetail::core
