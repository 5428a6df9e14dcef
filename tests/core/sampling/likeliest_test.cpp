// The likeliest ids of raw logits with their probabilities.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/sampling/sampler.hpp"

namespace dovetail::core {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Likeliest, GivesProbabilitiesAmongAllIds) {
  const std::vector<float> logits = {std::log(0.15f), std::log(0.5f), std::log(0.1f),
                                     std::log(0.25f)};
  const std::vector<TokenProbability> top = likeliest(logits, 3);
  ASSERT_EQ(top.size(), 3u);
  EXPECT_EQ(top[0].id, 1u);
  EXPECT_EQ(top[1].id, 3u);
  EXPECT_EQ(top[2].id, 0u);
  EXPECT_NEAR(top[0].probability, 0.5, 1e-7);
  EXPECT_NEAR(top[1].probability, 0.25, 1e-7);
  EXPECT_NEAR(top[2].probability, 0.15, 1e-7);
}

TEST(Likeliest, PutsTheLowerIdFirstOnTiesAndStopsAtTheIdsThereAre) {
  const std::vector<float> logits = {1, 2, 2, 2};
  const std::vector<TokenProbability> top = likeliest(logits, 99);
  ASSERT_EQ(top.size(), 4u);
  EXPECT_EQ(top[0].id, 1u);
  EXPECT_EQ(top[2].id, 3u);
  double sum = 0;
  for (const TokenProbability& t : top) sum += t.probability;
  EXPECT_NEAR(sum, 1.0, 1e-12);
  EXPECT_EQ(likeliest(logits, 99, 2).size(), 2u);
  EXPECT_EQ(likeliest(logits, 0).size(), 0u);
}

TEST(Likeliest, NeverGivesNaN) {
  const std::vector<float> logits = {
      std::numeric_limits<float>::quiet_NaN(), kInf, -kInf, 7, kInf, 3e38f};
  const std::vector<TokenProbability> top = likeliest(logits, 9);
  ASSERT_EQ(top.size(), 4u);
  EXPECT_EQ(top[0].probability, 0.5);
  EXPECT_EQ(top[1].id, 4u);
  EXPECT_EQ(top[2].probability, 0.0);
  EXPECT_TRUE(likeliest(std::vector<float>(3, -kInf), 2).empty());
}

}  // namespace
}  // namespace dovetail::core
