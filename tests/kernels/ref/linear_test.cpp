#include <kernels/linear.hpp>

#include <gtest/gtest.h>

namespace dovetail::kernels {
namespace {

TEST(LinearReference, MultipliesByTheTransposeOfTheStripe) {
  const float x[] = {1, 2, 3, /*gap*/ 99, 4, 5, 6};
  const float w[] = {1, 0, 0, 0, 1, 0, 1, 1, 1};
  float y[] = {-1, -1, -1, -1, -1, -1};
  ref::linear_f32(y, 3, x, 4, w, 2, 3, 1, 3);
  const float expected[] = {-1, 2, 6, -1, 5, 15};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(y[i], expected[i]) << i;
}

TEST(LinearReference, AddsToWhatIsThere) {
  const float x[] = {2, 3};
  const uint16_t w[] = {0x3F80, 0x4000};  // 1, 2
  float y[] = {10};
  ref::linear_add_bf16(y, 1, x, 2, w, 1, 2, 0, 1);
  EXPECT_EQ(y[0], 18);
  ref::linear_bf16(y, 1, x, 2, w, 1, 2, 0, 1);
  EXPECT_EQ(y[0], 8);
}

}  // namespace
}  // namespace dovetail::kernels
