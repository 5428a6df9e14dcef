#include <kernels/rms_norm.hpp>

#include <cmath>

#include <gtest/gtest.h>

namespace dovetail::kernels {
namespace {

TEST(RmsNormReference, DividesByTheRootOfTheMeanSquare) {
  const float x[] = {3, 4, 0, 0, 6, 8, 0, 0};  // mean squares 6.25 and 25
  const float weight[] = {1, 2, 5, 5};
  float out[8];
  ref::rms_norm(out, x, weight, 2, 4, 0.0F, 0.0F);
  EXPECT_FLOAT_EQ(out[0], 1.2F);
  EXPECT_FLOAT_EQ(out[1], 3.2F);
  EXPECT_FLOAT_EQ(out[4], 1.2F);
  EXPECT_FLOAT_EQ(out[5], 3.2F);
}

TEST(RmsNormReference, AddsTheOffsetToTheWeightAndEpsToTheMean) {
  const float x[] = {1, 1};
  const float weight[] = {0, 0.5F};
  float out[2];
  ref::rms_norm(out, x, weight, 1, 2, 3.0F, 1.0F);
  EXPECT_FLOAT_EQ(out[0], 0.5F);
  EXPECT_FLOAT_EQ(out[1], 0.75F);
}

}  // namespace
}  // namespace dovetail::kernels
