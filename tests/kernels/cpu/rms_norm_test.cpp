#include <kernels/rms_norm.hpp>

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/variants.hpp"

namespace dovetail::kernels {
namespace {

TEST(RmsNorm, MatchesReferenceOnOddTails) {
  for (const int64_t row_len : {1, 7, 8, 15, 16, 17, 63, 128, 1024, 16384}) {
    for (const float offset : {0.0F, 1.0F}) {
      const std::vector<float> x = noise(3 * row_len, 1);
      const std::vector<float> weight = noise(row_len, 2);
      std::vector<float> expected(x.size());
      ref::rms_norm(expected.data(), x.data(), weight.data(), 3, row_len, 1e-6F, offset);
      for (const CpuKernels* row : variants()) {
        std::vector<float> out(x.size());
        row->rms_norm(out.data(), x.data(), weight.data(), 3, row_len, 1e-6F, offset);
        for (size_t i = 0; i < out.size(); ++i) {
          ASSERT_NEAR(out[i], expected[i], 2e-6F * std::abs(expected[i]))
              << row->name << " row_len " << row_len << " at " << i;
        }
      }
    }
  }
}

TEST(RmsNorm, GivesEachRowTheSameBitsInPlaceAndAlone) {
  constexpr int64_t kLen = 37;
  const std::vector<float> x = noise(5 * kLen, 1);
  const std::vector<float> weight = noise(kLen, 2);
  for (const CpuKernels* row : variants()) {
    std::vector<float> batch = x;
    row->rms_norm(batch.data(), batch.data(), weight.data(), 5, kLen, 1e-5F, 0.0F);
    for (int64_t r = 0; r < 5; ++r) {
      std::vector<float> alone(kLen);
      row->rms_norm(alone.data(), x.data() + r * kLen, weight.data(), 1, kLen, 1e-5F, 0.0F);
      EXPECT_TRUE(same_bits(batch.data() + r * kLen, alone.data(), kLen)) << row->name;
    }
  }
}

TEST(RmsNorm, LeavesMemoryAloneWhenThereAreNoRows) {
  for (const CpuKernels* row : variants()) {
    row->rms_norm(nullptr, nullptr, nullptr, 0, 8, 1e-6F, 0.0F);
  }
}

TEST(RmsNorm, TurnsARowOfZerosIntoZeros) {
  const std::vector<float> weight = noise(20, 1);
  for (const CpuKernels* row : variants()) {
    std::vector<float> x(20, 0.0F);
    row->rms_norm(x.data(), x.data(), weight.data(), 1, 20, 1e-6F, 0.0F);
    for (const float value : x) EXPECT_EQ(value, 0.0F) << row->name;
  }
}

}  // namespace
}  // namespace dovetail::kernels
