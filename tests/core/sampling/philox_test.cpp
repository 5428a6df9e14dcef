// Known answers of Philox4x32-10, and what a uniform number depends on.
#include "core/sampling/philox.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace dovetail::core {
namespace {

using Words = std::array<uint32_t, 4>;

// Source: kat_vectors of Random123 1.14, the lines "philox4x32 10".
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, DependsOnSeedChoiceAndPositionInAllTheirBits) {
  std::set<double> seen;
  const auto add = [&](uint64_t seed, uint32_t choice, uint64_t position) {
    const double u = uniform_at(seed, choice, position);
    EXPECT_EQ(u, uniform_at(seed, choice, position));
    EXPECT_TRUE(seen.insert(u).second) << seed << " " << choice << " " << position;
  };
  add(0, 0, 0);
  for (int bit = 0; bit < 64; ++bit) add(uint64_t{1} << bit, 0, 0);
  for (int bit = 0; bit < 32; ++bit) add(0, uint32_t{1} << bit, 0);
  for (int bit = 0; bit < 64; ++bit) add(0, 0, uint64_t{1} << bit);
}

TEST(Philox, IsUniformOverTheUnitInterval) {
  constexpr int kBins = 64, kDraws = 64000;
  std::array<int, kBins> count{};
  double sum = 0;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const double u = uniform_at(12345, 0, i);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    ++count[static_cast<size_t>(u * kBins)];
    sum += u;
  }
  double chi_square = 0;
  for (int n : count) chi_square += std::pow(n - kDraws / kBins, 2) / (double{kDraws} / kBins);
  EXPECT_LT(chi_square, 103.4) << "over the 99.9 % quantile of 63 degrees of freedom";
  EXPECT_NEAR(sum / kDraws, 0.5, 0.004);
}

}  // namespace
}  // namespace dovetail::core
