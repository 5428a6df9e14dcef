#include <kernels/gather_rows.hpp>

#include <gtest/gtest.h>

namespace dovetail::kernels {
namespace {

TEST(GatherRows, CopiesRowsInTheOrderOfTheIds) {
  const float table[] = {0, 1, 10, 11, 20, 21};
  const int32_t ids[] = {2, 0, 2};
  float out[6];
  ref::gather_rows_f32(out, table, ids, 3, 2);
  const float expected[] = {20, 21, 0, 1, 20, 21};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(out[i], expected[i]) << i;
}

TEST(GatherRows, WidensHalfRows) {
  const F16 table[] = {{0x3C00}, {0xC000}, {0x3800}, {0x0001}};  // 1, -2, 0.5, 2^-24
  const int32_t ids[] = {1, 0};
  float out[4];
  ref::gather_rows_f16(out, table, ids, 2, 2);
  EXPECT_EQ(out[0], 0.5F);
  EXPECT_EQ(out[1], 0x1p-24F);
  EXPECT_EQ(out[2], 1.0F);
  EXPECT_EQ(out[3], -2.0F);
}

TEST(GatherRows, WidensBf16Rows) {
  const uint16_t table[] = {0x3F80, 0x4000, 0xC040, 0x7F80};
  const int32_t ids[] = {1, 0};
  float out[4];
  ref::gather_rows_bf16(out, table, ids, 2, 2);
  EXPECT_EQ(out[0], -3.0F);
  EXPECT_GT(out[1], 3.4e38F);
  EXPECT_EQ(out[2], 1.0F);
  EXPECT_EQ(out[3], 2.0F);
}

}  // namespace
}  // namespace dovetail::kernels
