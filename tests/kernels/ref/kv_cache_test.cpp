#include <kernels/kv_cache.hpp>

#include <vector>

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace dovetail::kernels
