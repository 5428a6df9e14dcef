#include <kernels/bf16.hpp>

#include <bit>
#include <cmath>

#include <gtest/gtest.h>

namespace dovetail::kernels {
namespace {

uint16_t rounded(uint32_t bits) {
  return float_to_bf16(std::bit_cast<float>(bits));
}

TEST(Bf16, RoundsToNearestAndTiesToEven) {
  EXPECT_EQ(rounded(0x3F800000U), 0x3F80);  // 1
  EXPECT_EQ(rounded(0x3F807FFFU), 0x3F80);  // just below the middle
  EXPECT_EQ(rounded(0x3F808000U), 0x3F80);  // the middle: the even one is below
  EXPECT_EQ(rounded(0x3F808001U), 0x3F81);
  EXPECT_EQ(rounded(0x3F818000U), 0x3F82);  // the middle: the even one is above
  EXPECT_EQ(rounded(0x3FFFFFFFU), 0x4000);  // the carry reaches the exponent
  EXPECT_EQ(rounded(0xBF808001U), 0xBF81);
}

TEST(Bf16, KeepsZerosDenormalsAndInfinities) {
  EXPECT_EQ(rounded(0x00000000U), 0x0000);
  EXPECT_EQ(rounded(0x80000000U), 0x8000);
  EXPECT_EQ(rounded(0x00018000U), 0x0002);  // a denormal tie
  EXPECT_EQ(rounded(0x00010001U), 0x0001);
  EXPECT_EQ(rounded(0x7F7FFFFFU), 0x7F80);  // the greatest float rounds to infinity
  EXPECT_EQ(rounded(0x7F800000U), 0x7F80);
  EXPECT_EQ(rounded(0xFF800000U), 0xFF80);
}

TEST(Bf16, KeepsNanANan) {
  EXPECT_EQ(rounded(0x7FC00000U), 0x7FC0);
  EXPECT_EQ(rounded(0x7F800001U), 0x7FC0);  // cut off, its payload would be infinity
  EXPECT_EQ(rounded(0x7FFFFFFFU), 0x7FFF);  // rounded, it would be minus zero
  EXPECT_EQ(rounded(0xFFFFFFFFU), 0xFFFF);
  EXPECT_TRUE(std::isnan(bf16_to_float(0x7F81)));
}

TEST(Bf16, SurvivesARoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const float value = bf16_to_float(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(float_to_bf16(value), bits);
  }
}

TEST(F16, WidensEveryKindOfValue) {
  EXPECT_EQ(f16_to_float(0x3C00), 1.0F);
  EXPECT_EQ(f16_to_float(0xC500), -5.0F);
  EXPECT_EQ(f16_to_float(0x7BFF), 65504.0F);
  EXPECT_EQ(f16_to_float(0x0400), 0x1p-14F);
  EXPECT_EQ(f16_to_float(0x0001), 0x1p-24F);
  EXPECT_EQ(f16_to_float(0x83FF), -1023 * 0x1p-24F);
  EXPECT_EQ(f16_to_float(0x7C00), INFINITY);
  EXPECT_TRUE(std::signbit(f16_to_float(0x8000)));
  EXPECT_TRUE(std::isnan(f16_to_float(0x7C01)));
}

}  // namespace
}  // namespace dovetail::kernels
