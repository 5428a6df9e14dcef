#include <kernels/kv_cache.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <kernels/cached_rows.hpp>

#include "tests/kernels/variants.hpp"

namespace dovetail::kernels {
namespace {

constexpr int64_t kKvHeads = 3, kPageLen = 4, kRows = 9, kFirst = 2;
constexpr uint32_t kPageTable[] = {2, 0, 3};

/// Four pages and their gaps, of which rows [kFirst, kFirst + kRows) are written.
std::vector<int8_t> written(CacheWriteInt8Fn* fn, int64_t head_dim,
                            const std::vector<float>& rows) {
  const KvLayout layout{kKvHeads, head_dim, kPageLen,
                        kKvHeads * kPageLen * int8_row_bytes(head_dim) + 4};
  std::vector<int8_t> cache(static_cast<size_t>(4 * layout.page_stride), 99);
  const int64_t row_len = kKvHeads * head_dim + 1;
  fn(cache.data(), layout, kPageTable, kFirst, rows.data(), row_len, kRows);
  return cache;
}

TEST(CacheWrite, GivesTheInt8BytesOfTheReference) {
  for (const int64_t head_dim : {1, 2, 5, 7, 8, 9, 15, 16, 20, 64, 127, 128}) {
    std::vector<float> rows = noise(kRows * (kKvHeads * head_dim + 1), 5);
    const auto row = [&](int64_t r) { return rows.begin() + r * (kKvHeads * head_dim + 1); };
    std::fill_n(row(1), head_dim, 0.0F);
    std::fill_n(row(2), head_dim, 0x1p-101F);
    for (int64_t i = 0; i < head_dim; ++i) row(3)[i] = static_cast<float>(i) + 0.5F;
    row(3)[0] = 127.0F;  // the others are ties
    row(4)[head_dim - 1] = std::numeric_limits<float>::infinity();
    row(5)[head_dim / 2] = -NAN;
    for (int64_t i = 0; i < head_dim; ++i) row(6)[i] *= 0x1p+120F;
    for (int64_t i = 0; i < head_dim; ++i) row(7)[i] = row(7)[i] * 0x1p-120F;
    const std::vector<int8_t> expected = written(ref::cache_write_int8, head_dim, rows);
    for (const CpuKernels* variant : variants()) {
      EXPECT_EQ(written(variant->cache_write_int8, head_dim, rows), expected)
          << variant->name << " head_dim " << head_dim;
    }
  }
}

}  // namespace
}  // namespace dovetail::kernels
