#include <kernels/rope.hpp>

#include <cmath>

#include <gtest/gtest.h>

namespace dovetail::kernels {
namespace {

TEST(RopeReference, TabulatesTheFloatAngleTimesTheAttentionFactor) {
  const int32_t positions[] = {0, 7, 40959};
  const float inv_freq[] = {1.0F, 0.31622776F};
  float cos[6];
  float sin[6];
  ref::rope_table(cos, sin, positions, inv_freq, 3, 2, 2.0F);
  EXPECT_EQ(cos[0], 2.0F);
  EXPECT_EQ(sin[0], 0.0F);
  EXPECT_FLOAT_EQ(cos[2], 2.0F * 0.75390225F);
  EXPECT_FLOAT_EQ(sin[2], 2.0F * 0.65698660F);
  // The angle is rounded to float first: 40959 * 0.31622776 is 12952.373 in steps of 1/1024.
  const float angle = 40959.0F * 0.31622776F;
  EXPECT_FLOAT_EQ(cos[5], 2.0F * static_cast<float>(std::cos(double{angle})));
}

TEST(RopeReference, PairsElementsHalfARotationApart) {
  const float x[] = {1, 2, 3, 4, 5};
  const float cos[] = {0, 1};
  const float sin[] = {1, 0};
  float out[5];
  ref::rope_half_split(out, 5, x, 5, cos, sin, 1, 1, 5, 2);
  const float expected[] = {-3, 2, 1, 4, 5};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(out[i], expected[i]) << i;
}

}  // namespace
}  // namespace dovetail::kernels
