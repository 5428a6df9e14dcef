#include <kernels/argmax.hpp>

#include <limits>

#include <gtest/gtest.h>

namespace dovetail::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Argmax, TakesTheLowestIndexOnTies) {
  const float x[] = {1, 3, 2, 3};
  EXPECT_EQ(ref::argmax(x, 4), 1);
  const float zeros[] = {-0.0F, 0.0F};
  EXPECT_EQ(ref::argmax(zeros, 2), 0);
  const float masked[] = {-kInf, -kInf};
  EXPECT_EQ(ref::argmax(masked, 2), 0);
}

TEST(Argmax, NeverTakesNan) {
  const float x[] = {kNan, -kInf, kNan};
  EXPECT_EQ(ref::argmax(x, 3), 1);
  const float inf[] = {1, kNan, kInf, kNan};
  EXPECT_EQ(ref::argmax(inf, 4), 2);
}

TEST(Argmax, HasNoWinnerAmongNothing) {
  const float x[] = {kNan, kNan};
  EXPECT_EQ(ref::argmax(x, 2), -1);
  EXPECT_EQ(ref::argmax(x, 0), -1);
}

}  // namespace
}  // namespace dovetail::kernels
