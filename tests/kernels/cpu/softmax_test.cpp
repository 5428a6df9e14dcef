#include <kernels/softmax.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/variants.hpp"

namespace dovetail::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Softmax, StaysWithinItsContractOnOddTails) {
  for (const int64_t row_len : {1, 2, 7, 8, 9, 40, 1001}) {
    std::vector<float> x = noise(2 * row_len, 1);
    for (float& value : x) value *= 20.0F;
    for (const CpuKernels* row : variants()) {
      std::vector<float> out = x;
      row->softmax(out.data(), out.data(), 2, row_len);
      for (int64_t r = 0; r < 2; ++r) {
        double sum = 0.0;
        const double top = *std::max_element(&x[r * row_len], &x[r * row_len] + row_len);
        for (int64_t i = 0; i < row_len; ++i) sum += std::exp(double{x[r * row_len + i]});
        for (int64_t i = 0; i < row_len; ++i) {
          const double exact = std::exp(double{x[r * row_len + i]}) / sum;
          const double below = top - x[r * row_len + i];
          const double bound = (below + static_cast<double>(row_len) + 8) * 0x1p-23 * exact;
          ASSERT_NEAR(out[r * row_len + i], exact, bound) << row->name << " row_len " << row_len;
        }
      }
    }
  }
}

TEST(Softmax, GivesNothingToMinusInfinity) {
  for (const CpuKernels* row : variants()) {
    std::vector<float> x = {-kInf, 3.0F, -kInf, 3.0F, -kInf, -kInf, -kInf, -kInf, -kInf, -kInf};
    row->softmax(x.data(), x.data(), 1, 10);
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(x[i], i == 1 || i == 3 ? 0.5F : 0.0F) << row->name << " " << i;
    }
  }
}

TEST(Softmax, TurnsBrokenRowsIntoNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const CpuKernels* row : variants()) {
    for (size_t place = 0; place < 11; ++place) {
      for (const float broken : {nan, kInf}) {
        std::vector<float> x(11, 1.0F);
        x[place] = broken;
        row->softmax(x.data(), x.data(), 1, 11);
        for (const float p : x) EXPECT_TRUE(std::isnan(p)) << row->name << " " << place;
      }
    }
    std::vector<float> masked(11, -kInf);
    row->softmax(masked.data(), masked.data(), 1, 11);
    for (const float p : masked) EXPECT_TRUE(std::isnan(p)) << row->name;
  }
}

}  // namespace
}  // namespace dovetail::kernels
