#include <kernels/kv_cache.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <kernels/cached_rows.hpp>

namespace dovetail::kernels {
namespace {

TEST(CacheWrite, PutsEachHeadsRowInItsPage) {
  const KvLayout layout{2, 3, 4,
                        30};  // 2 heads of 3 in pages of 4 rows, 24 elements and a gap of 6
  const uint32_t page_table[] = {2, 0};
  std::vector<float> cache(90, -1.0F);
  std::vector<float> rows;  // rows of 6, 7 apart
  for (int i = 0; i < 21; ++i) rows.push_back(static_cast<float>(i));
  ref::cache_write_f32(cache.data(), layout, page_table, 2, rows.data(), 7, 3);

  const auto at = [&](int page, int head, int row, int i) {
    return cache[static_cast<size_t>(page * 30 + (head * 4 + row) * 3 + i)];
  };
  EXPECT_EQ(at(2, 0, 2, 0), 0.0F);   // position 2: first row, head 0
  EXPECT_EQ(at(2, 1, 2, 2), 5.0F);   // its head 1
  EXPECT_EQ(at(2, 0, 3, 1), 8.0F);   // position 3: the second row starts at 7
  EXPECT_EQ(at(0, 1, 0, 0), 17.0F);  // position 4: the next page of the table
  int n_written = 0;
  for (const float value : cache) n_written += value != -1.0F;
  EXPECT_EQ(n_written, 18);
}

TEST(CacheWrite, RoundsToBf16) {
  const KvLayout layout{1, 2, 16, 32};
  const uint32_t page_table[] = {0};
  std::vector<uint16_t> cache(32, 0);
  const float row[] = {1.00390625F, -3.0F};  // halfway between 0x3F80 and 0x3F81
  ref::cache_write_bf16(cache.data(), layout, page_table, 5, row, 2, 1);
  EXPECT_EQ(cache[10], 0x3F80);
  EXPECT_EQ(cache[11], 0xC040);
}

/// What a row of head_dim numbers becomes: levels and zeros, and the scale in `scale`.
std::vector<int> int8_row(const std::vector<float>& x, float& scale) {
  const auto head_dim = static_cast<int64_t>(x.size());
  const KvLayout layout{1, head_dim, 1, int8_row_bytes(head_dim)};
  const uint32_t page_table[] = {0};
  std::vector<int8_t> cache(static_cast<size_t>(layout.page_stride), 99);
  ref::cache_write_int8(cache.data(), layout, page_table, 0, x.data(), head_dim, 1);
  std::memcpy(&scale, &cache[cache.size() - sizeof scale], sizeof scale);
  return {cache.begin(), cache.end() - sizeof scale};
}

TEST(CacheWrite, GivesEachInt8RowItsScale) {
  float scale = 0;
  EXPECT_EQ(int8_row({127, -127, 1, 0.4F}, scale), (std::vector<int>{127, -127, 1, 0}));
  EXPECT_EQ(scale, 1.0F);
  EXPECT_EQ(int8_row({-254, 2, 4, 6, 8}, scale), (std::vector<int>{-127, 1, 2, 3, 4, 0, 0, 0}));
  EXPECT_EQ(scale, 2.0F);
}

TEST(CacheWrite, RoundsTiesOfInt8ToEven) {
  float scale = 0;
  EXPECT_EQ(int8_row({127, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F, -2.5F, 125.5F}, scale),
            (std::vector<int>{127, 0, 2, 2, 0, -2, -2, 126}));
}

TEST(CacheWrite, WritesZerosAndTinyRowsAsZeros) {
  float scale = 9;
  EXPECT_EQ(int8_row({0, -0.0F, 0}, scale), (std::vector<int>{0, 0, 0, 0}));
  EXPECT_EQ(scale, 0.0F);
  EXPECT_EQ(int8_row({0x1p-101F, 0}, scale), (std::vector<int>{0, 0, 0, 0}));
  EXPECT_EQ(scale, 0.0F);
}

TEST(CacheWrite, KeepsAnInfinityOrNanAsTheScale) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float scale = 0;
  EXPECT_EQ(int8_row({1, -kInfinity, 5, 2}, scale), (std::vector<int>{0, 0, 0, 0}));
  EXPECT_EQ(scale, kInfinity);
  EXPECT_EQ(int8_row({1, kInfinity, NAN, 2}, scale), (std::vector<int>{0, 0, 0, 0}));
  EXPECT_TRUE(std::isnan(scale));
}

TEST(CacheWrite, PutsEachHeadsInt8RowInItsPage) {
  const KvLayout layout{2, 2, 2, 36};  // rows of 8 bytes, 32 in a page and a gap of 4
  const uint32_t page_table[] = {1, 0};
  std::vector<int8_t> cache(72, 99);
  const float rows[] = {1, 2, 30, 40, /*between rows*/ 9, 127, 0, 0, 254};  // positions 1 and 2
  ref::cache_write_int8(cache.data(), layout, page_table, 1, rows, 5, 2);
  const auto at = [&](int page, int head, int row) {
    return &cache[page * 36 + (head * 2 + row) * 8];
  };
  EXPECT_EQ(at(1, 0, 1)[0], 64);  // 63.5, a tie
  EXPECT_EQ(at(1, 0, 1)[1], 127);
  EXPECT_EQ(at(1, 1, 1)[0], 95);  // 95.25
  EXPECT_EQ(at(0, 0, 0)[0], 127);
  EXPECT_EQ(at(0, 1, 0)[1], 127);
  EXPECT_EQ(row_scale(at(0, 1, 0), 2), 2.0F);
  int n_written = 0;
  for (const int8_t byte : cache) n_written += byte != 99;
  EXPECT_EQ(n_written, 32);
}

}  // namespace
}  // namespace dovetail::kernels
