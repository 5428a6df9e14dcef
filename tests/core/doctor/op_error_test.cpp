#include "core/doctor/op_error.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace dovetail::core {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(OpError, NamesTheWorstRowAndTheWorstElement) {
  const std::vector<float> expected = {3, 4, 3, 4, 30, 40}, got = {3, 4, 3, 4.5F, 30, 41};
  const std::vector<size_t> rows = {0, 1, 2};
  const OpError e = error_of(expected, got, 2, rows);
  EXPECT_DOUBLE_EQ(e.relative, 0.1);  // 0.5 / 5; the third row is off by 1 / 50
  EXPECT_EQ(e.row, 1u);
  EXPECT_EQ(e.element_row, 1u);
  EXPECT_EQ(e.element, 1u);
  EXPECT_EQ(e.got, 4.5F);
  EXPECT_EQ(e.expected, 4.0F);
  EXPECT_DOUBLE_EQ(e.element_share, 0.5 / std::sqrt(12.5));
}

TEST(OpError, OnlyTheRowsThatAreAskedForCount) {
  const std::vector<float> expected = {1, 2, 3}, got = {9, 2, 9};
  EXPECT_EQ(error_of(expected, got, 1, std::vector<size_t>{1}).measure(), 0);
  EXPECT_EQ(error_of(expected, got, 1, std::vector<size_t>{1, 2}).element_row, 2u);
}

TEST(OpError, OneWrongElementOfALongRowIsBeyond) {
  std::vector<float> expected(10000, 1.0F), got = expected;
  got[77] = 1.5F;
  const OpError e = error_of(expected, got, 10000, std::vector<size_t>{0});
  EXPECT_DOUBLE_EQ(e.relative, 0.005);
  EXPECT_DOUBLE_EQ(e.measure(), 0.05);
  EXPECT_TRUE(e.is_beyond(0.01));
  EXPECT_FALSE(e.is_beyond(0.05));
}

TEST(OpError, NumbersThatAreNoneAreEqualOnlyWhereBothAre) {
  const std::vector<size_t> row = {0};
  const std::vector<float> odd = {kNan, kInfinity, -kInfinity, 2};
  EXPECT_EQ(error_of(odd, odd, 4, row).measure(), 0);
  for (const float wrong : {kNan, kInfinity, -kInfinity}) {
    const std::vector<float> expected = {1, 2}, got = {1, wrong};
    EXPECT_TRUE(error_of(expected, got, 2, row).is_beyond(1e9));
    EXPECT_TRUE(error_of(got, expected, 2, row).is_beyond(1e9));
    EXPECT_EQ(error_of(expected, got, 2, row).element, 1u);
  }
  EXPECT_TRUE(error_of(std::vector<float>{kInfinity}, std::vector<float>{-kInfinity}, 1, row)
                  .is_beyond(1e9));
}

TEST(OpError, ARowOfZerosMustBeZero) {
  const std::vector<size_t> row = {0};
  EXPECT_EQ(error_of(std::vector<float>{0, 0}, std::vector<float>{0, -0.0F}, 2, row).measure(), 0);
  EXPECT_TRUE(
      error_of(std::vector<float>{0, 0}, std::vector<float>{0, 1e-9F}, 2, row).is_beyond(1));
}

TEST(OpTolerance, GrowsAsBitsGetFewer) {
  EXPECT_LT(op_tolerance(32), op_tolerance(16));
  EXPECT_LT(op_tolerance(16), op_tolerance(8));
  EXPECT_EQ(op_tolerance(8), op_tolerance(4));
}

}  // namespace
}  // namespace dovetail::core
