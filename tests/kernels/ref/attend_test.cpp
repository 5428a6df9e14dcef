#include <kernels/attend.hpp>

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <kernels/cached_rows.hpp>

namespace dovetail::kernels {
namespace {

// One kv head of 2 elements, pages of 2 rows, keys at positions 0, 1 and 2.
const KvLayout kLayout{1, 2, 2, 4};
const uint32_t kPageTable[] = {1, 0};
const float kKeys[] = {/*page 0: position 2*/ 0,     0, 9, 9,
                       /*page 1: positions 0, 1*/ 1, 0, 0, 1};
const float kValues[] = {100, 1000, 9, 9, 1, 2, 10, 20};

std::vector<float> attend(const std::vector<float>& q, int64_t n_tokens, int64_t first_pos,
                          int64_t n_group_heads, int64_t window) {
  std::vector<float> out(q.size());
  const auto stride = static_cast<int64_t>(q.size()) / n_tokens;
  ref::attend_f32(
      {out.data(), stride, q.data(), stride, n_tokens, first_pos, 0, n_group_heads, window, 1.0F},
      kLayout, kKeys, kValues, kPageTable);
  return out;
}

TEST(AttendReference, SeesItsOwnKeyAndThoseBefore) {
  const std::vector<float> out = attend({0, 0, 0, 0, 0, 0}, 3, 0, 1, INT64_MAX);
  EXPECT_FLOAT_EQ(out[0], 1.0F);
  EXPECT_FLOAT_EQ(out[2], 5.5F);
  EXPECT_FLOAT_EQ(out[3], 11.0F);
  EXPECT_FLOAT_EQ(out[4], 37.0F);
}

TEST(AttendReference, WeighsKeysByTheExponentialOfTheScore) {
  const float ln3 = std::log(3.0F);
  const std::vector<float> out = attend({ln3, 0}, 1, 1, 1, INT64_MAX);  // weights 3 : 1
  EXPECT_FLOAT_EQ(out[0], 3.25F);
  EXPECT_FLOAT_EQ(out[1], 6.5F);
}

TEST(AttendReference, ForgetsKeysBeforeTheWindow) {
  const std::vector<float> out = attend({0, 0}, 1, 2, 1, 2);
  EXPECT_FLOAT_EQ(out[0], 55.0F);
  EXPECT_FLOAT_EQ(attend({0, 0}, 1, 2, 1, 1)[0], 100.0F);
}

TEST(AttendReference, LetsHeadsOfAGroupShareTheirKeys) {
  const std::vector<float> out = attend({50, 0, 0, 50}, 1, 1, 2, INT64_MAX);
  EXPECT_FLOAT_EQ(out[0], 1.0F);
  EXPECT_FLOAT_EQ(out[2], 10.0F);
}

TEST(AttendReference, MultipliesLevelsWithTheScaleOfTheirRow) {
  const KvLayout layout{1, 2, 2, 2 * int8_row_bytes(2)};
  const uint32_t page_table[] = {0};
  std::vector<int8_t> k(static_cast<size_t>(layout.page_stride));
  std::vector<int8_t> v(k.size());
  const float keys[] = {254, 0, 0, 127};  // levels of 127, scales 2 and 1
  const float values[] = {127, -63.5F, 3,
                          0};  // levels 127, -64 (a tie) with 1; 127, 0 with 3 / 127
  ref::cache_write_int8(k.data(), layout, page_table, 0, keys, 2, 2);
  ref::cache_write_int8(v.data(), layout, page_table, 0, values, 2, 2);
  const float q[] = {std::log(3.0F) / 127.0F, 0};  // times key 0: log 9, at a scale of 0.5 log 3
  std::vector<float> out(2);
  ref::attend_int8({out.data(), 2, q, 2, 1, 1, 0, 1, INT64_MAX, 0.5F}, layout, k.data(), v.data(),
                   page_table);
  EXPECT_FLOAT_EQ(out[0], 0.75F * 127.0F + 0.25F * 3.0F);
  EXPECT_FLOAT_EQ(out[1], 0.75F * -64.0F);
}

}  // namespace
}  // namespace dovetail::kernels
