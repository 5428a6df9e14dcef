#include "core/measure/row_error.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace dovetail::core {
namespace {

TEST(RowErrors, RowsOfDifferentSizeCountAlike) {
  const std::vector<float> a = {3, 4, 3000, 4000}, b = {3, 4.5, 3000, 4500};
  RowErrors e;
  e.add(a, b, 2);
  EXPECT_EQ(e.n_rows(), 2u);
  EXPECT_DOUBLE_EQ(e.mean_relative(), 0.1);  // 0.5 / 5 and 500 / 5000
  EXPECT_DOUBLE_EQ(e.worst_relative(), 0.1);
  EXPECT_DOUBLE_EQ(e.max_abs(), 500);
  EXPECT_EQ(e.max_abs_row(), 1u);
}

TEST(RowErrors, TheWorstRowIsFoundOverSeveralParts) {
  RowErrors e;
  e.add(std::vector<float>{1, 0, 1, 0}, std::vector<float>{1, 0, 1, 0.25}, 2);
  EXPECT_FALSE(e.is_equal());
  e.add(std::vector<float>{0, 2, 1, 0}, std::vector<float>{2, 2, 1.5, 0}, 2);
  EXPECT_EQ(e.n_rows(), 4u);
  EXPECT_DOUBLE_EQ(e.worst_relative(), 1);
  EXPECT_EQ(e.worst_row(), 2u);
  EXPECT_DOUBLE_EQ(e.mean_relative(), (0 + 0.25 + 1 + 0.5) / 4);
}

TEST(RowErrors, EqualRowsAreEqualZerosToo) {
  RowErrors e;
  e.add(std::vector<float>{0, 0, 1, 2}, std::vector<float>{0, -0.0f, 1, 2}, 2);
  EXPECT_TRUE(e.is_equal());
  EXPECT_EQ(e.worst_relative(), 0);
  EXPECT_EQ(e.mean_relative(), 0);
}

TEST(RowErrors, WhatIsNoNumberIsInfinitelyOff) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const auto& [a, b] :
       {std::pair{1.0f, kNan}, {kNan, 1.0f}, {kNan, kNan}, {kInf, kInf}, {0.0f, 1.0f}}) {
    RowErrors e;
    e.add(std::vector<float>{1, 1}, std::vector<float>{1, 1}, 2);
    e.add(std::vector<float>{0, a}, std::vector<float>{0, b}, 2);
    EXPECT_TRUE(std::isinf(e.worst_relative())) << a << " and " << b;
    EXPECT_EQ(e.worst_row(), 1u);
    EXPECT_FALSE(e.is_equal());
  }
}

}  // namespace
}  // namespace dovetail::core
