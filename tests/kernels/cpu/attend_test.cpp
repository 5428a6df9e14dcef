#include <kernels/attend.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include <kernels/cached_rows.hpp>

#include "tests/kernels/variants.hpp"

namespace dovetail::kernels {
namespace {

struct Setting {
  int64_t head_dim = 16;
  int64_t n_group_heads = 2;
  int64_t page_len = 16;
  int64_t kv_len = 100;  // keys in the cache; the queries are the last n_tokens of them
  int64_t n_tokens = 10;
  int64_t window = INT64_MAX;
};

constexpr int64_t kKvHeads = 2;

/// A cache whose pages are scattered, and where all that attend has no business reading is NaN:
/// rows past the last key, rows before every window, gaps between pages.
template <class Element>
class Cache {
 public:
  explicit Cache(const Setting& s)
      : layout_{kKvHeads, s.head_dim, s.page_len, kKvHeads * s.page_len * row_len(s) + kGap} {
    const int64_t n_pages = (s.kv_len + s.page_len - 1) / s.page_len;
    for (int64_t i = 0; i < n_pages; ++i) {
      page_table_.push_back(static_cast<uint32_t>(n_pages - i));  // page 0 is nobody's
    }
    const auto size = static_cast<size_t>((n_pages + 1) * layout_.page_stride);
    k_.assign(size, nan());
    v_.assign(size, nan());
    const int64_t row_len = kKvHeads * s.head_dim;
    std::vector<float> k = noise(s.kv_len * row_len, 11);
    const std::vector<float> v = noise(s.kv_len * row_len, 12);
    for (float& value : k) value *= 4.0F;  // scores that differ
    const int64_t first = std::max<int64_t>(0, s.kv_len - s.n_tokens + 1 - s.window);
    write(k_, k, row_len, first, s.kv_len);
    write(v_, v, row_len, first, s.kv_len);
  }

  const KvLayout& layout() const { return layout_; }
  const uint32_t* page_table() const { return page_table_.data(); }
  const Element* k() const { return k_.data(); }
  const Element* v() const { return v_.data(); }

 private:
  static constexpr int64_t kGap = kHasScale<Element> ? 20 : 5;  // elements after each page

  static int64_t row_len(const Setting& s) {
    return kHasScale<Element> ? int8_row_bytes(s.head_dim) : s.head_dim;
  }
  static Element nan() {
    if constexpr (std::is_same_v<Element, float>) {
      return std::numeric_limits<float>::quiet_NaN();
    } else if constexpr (std::is_same_v<Element, int8_t>) {
      return -1;  // four of them are a scale of NaN
    } else {
      return 0x7FC0;
    }
  }
  void write(std::vector<Element>& pages, const std::vector<float>& rows, int64_t row_len,
             int64_t first, int64_t end) {
    const float* from = rows.data() + first * row_len;
    if constexpr (std::is_same_v<Element, float>) {
      ref::cache_write_f32(pages.data(), layout_, page_table_.data(), first, from, row_len,
                           end - first);
    } else if constexpr (std::is_same_v<Element, int8_t>) {
      ref::cache_write_int8(pages.data(), layout_, page_table_.data(), first, from, row_len,
                            end - first);
    } else {
      ref::cache_write_bf16(pages.data(), layout_, page_table_.data(), first, from, row_len,
                            end - first);
    }
  }

  KvLayout layout_;
  std::vector<uint32_t> page_table_;
  std::vector<Element> k_;
  std::vector<Element> v_;
};

template <class Element>
void attend(const CpuKernels* row, const AttendTask& task, const Cache<Element>& cache) {
  if constexpr (std::is_same_v<Element, float>) {
    AttendF32Fn* fn = row != nullptr ? row->attend_f32 : ref::attend_f32;
    fn(task, cache.layout(), cache.k(), cache.v(), cache.page_table());
  } else if constexpr (std::is_same_v<Element, int8_t>) {
    AttendInt8Fn* fn = row != nullptr ? row->attend_int8 : ref::attend_int8;
    fn(task, cache.layout(), cache.k(), cache.v(), cache.page_table());
  } else {
    AttendBf16Fn* fn = row != nullptr ? row->attend_bf16 : ref::attend_bf16;
    fn(task, cache.layout(), cache.k(), cache.v(), cache.page_table());
  }
}

/// All heads and tokens, the tokens in chunks of chunk_len; row is null for the reference.
template <class Element>
std::vector<float> run(const CpuKernels* row, const Setting& s, int64_t chunk_len) {
  const Cache<Element> cache(s);
  const int64_t stride = kKvHeads * s.n_group_heads * s.head_dim + 3;
  const std::vector<float> q = noise(s.n_tokens * stride, 13);
  std::vector<float> out(q.size(), -7.0F);
  for (int64_t t = 0; t < s.n_tokens; t += chunk_len) {
    for (int64_t g = 0; g < kKvHeads; ++g) {
      const AttendTask task{out.data() + t * stride,
                            stride,
                            q.data() + t * stride,
                            stride,
                            std::min(chunk_len, s.n_tokens - t),
                            s.kv_len - s.n_tokens + t,
                            g,
                            s.n_group_heads,
                            s.window,
                            1.0F / std::sqrt(static_cast<float>(s.head_dim))};
      attend(row, task, cache);
    }
  }
  return out;
}

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const int64_t head_dim : {1, 8, 13, 16, 32, 43, 64, 80, 100, 128, 256, 264}) {
    all.push_back({.head_dim = head_dim});
    all.push_back({.head_dim = head_dim, .kv_len = 200, .n_tokens = 1});
  }
  for (const int64_t n_group_heads : {1, 2, 3, 5, 6, 7, 60}) {
    all.push_back({.n_group_heads = n_group_heads, .kv_len = 70, .n_tokens = 4});
  }
  for (const int64_t kv_len : {1, 2, 63, 64, 65, 127, 128, 129}) {
    all.push_back({.kv_len = kv_len, .n_tokens = 1});
    all.push_back({.kv_len = kv_len, .n_tokens = kv_len});
  }
  for (const int64_t window : {1, 2, 5, 64, 70}) {
    all.push_back({.kv_len = 150, .n_tokens = 1, .window = window});
    all.push_back({.kv_len = 150, .n_tokens = 150, .window = window});
    all.push_back({.kv_len = 150, .n_tokens = 40, .window = window});
  }
  for (const int64_t page_len : {1, 7, 32, 64, 128}) {
    all.push_back({.page_len = page_len, .kv_len = 140, .n_tokens = 30});
  }
  for (const int64_t kv_len : {kAttendChunk, kAttendChunk + 1, 3 * kAttendChunk + 70}) {
    all.push_back({.kv_len = kv_len, .n_tokens = 1});
    all.push_back({.head_dim = 43, .kv_len = kv_len, .n_tokens = 75});
    all.push_back({.kv_len = kv_len, .n_tokens = 75, .window = kAttendChunk - 40});
  }
  return all;
}

template <class Element>
void expect_near_reference() {
  for (const Setting& s : settings()) {
    const std::vector<float> expected = run<Element>(nullptr, s, s.n_tokens);
    for (const CpuKernels* row : variants()) {
      const std::vector<float> out = run<Element>(row, s, s.n_tokens);
      for (size_t i = 0; i < out.size(); ++i) {
        ASSERT_NEAR(out[i], expected[i], 1e-5F)
            << row->name << " head_dim " << s.head_dim << " heads " << s.n_group_heads << " kv_len "
            << s.kv_len << " tokens " << s.n_tokens << " window " << s.window << " page "
            << s.page_len << " at " << i;
      }
    }
  }
}

template <class Element>
void expect_same_bits_in_any_chunk() {
  for (Setting s : settings()) {
    for (const CpuKernels* row : variants()) {
      const std::vector<float> whole = run<Element>(row, s, s.n_tokens);
      for (const int64_t chunk_len : {1, 7, 64}) {
        const std::vector<float> chunked = run<Element>(row, s, chunk_len);
        ASSERT_TRUE(same_bits(whole.data(), chunked.data(), static_cast<int64_t>(whole.size())))
            << row->name << " head_dim " << s.head_dim << " heads " << s.n_group_heads << " kv_len "
            << s.kv_len << " tokens " << s.n_tokens << " window " << s.window << " chunk "
            << chunk_len;
      }
    }
  }
}

/// The same from parts: each chunk by a call of its own, the last one first.
template <class Element>
std::vector<float> run_in_parts(const CpuKernels* row, const Setting& s) {
  const Cache<Element> cache(s);
  const int64_t stride = kKvHeads * s.n_group_heads * s.head_dim + 3;
  const std::vector<float> q = noise(s.n_tokens * stride, 13);
  std::vector<float> out(q.size(), -7.0F);
  const int64_t n_chunks = (s.kv_len + kAttendChunk - 1) / kAttendChunk;
  const int64_t part_len = attend_part_len(s.head_dim);
  const int64_t n_rows = s.n_tokens * s.n_group_heads;
  std::vector<float> parts(static_cast<size_t>(n_chunks * n_rows * part_len), -9.0F);
  for (int64_t g = 0; g < kKvHeads; ++g) {
    for (int64_t c = n_chunks - 1; c >= 0; --c) {
      const AttendTask task{nullptr,
                            stride,
                            q.data(),
                            stride,
                            s.n_tokens,
                            s.kv_len - s.n_tokens,
                            g,
                            s.n_group_heads,
                            s.window,
                            1.0F / std::sqrt(static_cast<float>(s.head_dim)),
                            parts.data() + c * n_rows * part_len,
                            c};
      attend(row, task, cache);
    }
    for (int64_t r = 0; r < n_rows; ++r) {
      const int64_t head = g * s.n_group_heads + r % s.n_group_heads;
      row->attend_merge(out.data() + r / s.n_group_heads * stride + head * s.head_dim,
                        parts.data() + r * part_len, n_chunks, n_rows * part_len, s.head_dim);
    }
  }
  return out;
}

template <class Element>
void expect_same_bits_from_parts() {
  for (const Setting& s : settings()) {
    for (const CpuKernels* row : variants()) {
      const std::vector<float> whole = run<Element>(row, s, s.n_tokens);
      const std::vector<float> merged = run_in_parts<Element>(row, s);
      ASSERT_TRUE(same_bits(whole.data(), merged.data(), static_cast<int64_t>(whole.size())))
          << row->name << " head_dim " << s.head_dim << " heads " << s.n_group_heads << " kv_len "
          << s.kv_len << " tokens " << s.n_tokens << " window " << s.window;
    }
  }
}

TEST(Attend, GivesTheSameBitsFromTheChunksOfAFloatCache) {
  expect_same_bits_from_parts<float>();
}

TEST(Attend, GivesTheSameBitsFromTheChunksOfABf16Cache) {
  expect_same_bits_from_parts<uint16_t>();
}

TEST(Attend, GivesTheSameBitsFromTheChunksOfAnInt8Cache) {
  expect_same_bits_from_parts<int8_t>();
}

TEST(Attend, MatchesReferenceOverAFloatCache) {
  expect_near_reference<float>();
}

TEST(Attend, MatchesReferenceOverABf16Cache) {
  expect_near_reference<uint16_t>();
}

TEST(Attend, MatchesReferenceOverAnInt8Cache) {
  expect_near_reference<int8_t>();
}

TEST(Attend, GivesTheSameBitsHoweverAFloatPromptIsCut) {
  expect_same_bits_in_any_chunk<float>();
}

TEST(Attend, GivesTheSameBitsHoweverABf16PromptIsCut) {
  expect_same_bits_in_any_chunk<uint16_t>();
}

TEST(Attend, GivesTheSameBitsHoweverAnInt8PromptIsCut) {
  expect_same_bits_in_any_chunk<int8_t>();
}

template <class Element>
void expect_same_bits_at_any_page_length() {
  for (const CpuKernels* row : variants()) {
    const std::vector<float> expected = run<Element>(row, {.kv_len = 300, .n_tokens = 50}, 50);
    for (const int64_t page_len : {1, 5, 64, 100, 512}) {
      const Setting s{.page_len = page_len, .kv_len = 300, .n_tokens = 50};
      const std::vector<float> out = run<Element>(row, s, 50);
      EXPECT_TRUE(same_bits(out.data(), expected.data(), static_cast<int64_t>(out.size())))
          << row->name << " page_len " << page_len;
    }
  }
}

TEST(Attend, GivesTheSameBitsAtAnyPageLength) {
  expect_same_bits_at_any_page_length<uint16_t>();
  expect_same_bits_at_any_page_length<int8_t>();
}

TEST(Attend, ReadsRowsOfZerosInAnInt8Cache) {
  const KvLayout layout{1, 8, 16, int8_row_bytes(8) * 16};
  const std::vector<uint32_t> page_table = {0};
  std::vector<int8_t> k(static_cast<size_t>(layout.page_stride));
  std::vector<int8_t> v(k.size());
  std::vector<float> values(16, 0.0F);  // position 0 is zeros, position 1 sixes
  std::fill_n(values.begin() + 8, 8, 6.0F);
  ref::cache_write_int8(v.data(), layout, page_table.data(), 0, values.data(), 8, 2);
  const std::vector<float> zeros(16, 0.0F);
  ref::cache_write_int8(k.data(), layout, page_table.data(), 0, zeros.data(), 8, 2);
  const std::vector<float> q(8, 1000.0F);
  for (const CpuKernels* row : variants()) {
    std::vector<float> out(8);
    row->attend_int8({out.data(), 8, q.data(), 8, 1, 1, 0, 1, INT64_MAX, 1.0F}, layout, k.data(),
                     v.data(), page_table.data());
    for (const float value : out) EXPECT_FLOAT_EQ(value, 3.0F) << row->name;
  }
}

/// Positions [0, 20) of one head of a float cache in which key 10 is `bad`, for a query at each.
void expect_nan_from_the_row_that_sees(float bad) {
  constexpr int64_t kDim = 16;
  constexpr int64_t kLen = 20;
  const KvLayout layout{1, kDim, 32, 32 * kDim};
  const std::vector<uint32_t> page_table = {0};
  std::vector<float> k(32 * kDim, 1.0F);
  const std::vector<float> v(32 * kDim, 2.0F);
  k[10 * kDim + 3] = bad;
  const std::vector<float> q(kLen * kDim, 1.0F);
  for (const CpuKernels* row : variants()) {
    for (const int64_t n_tokens : {int64_t{1}, kLen}) {  // at once, or the last one alone
      std::vector<float> out(kLen * kDim, 2.0F);
      const int64_t first = kLen - n_tokens;
      row->attend_f32(
          {out.data() + first * kDim, kDim, q.data(), kDim, n_tokens, first, 0, 1, INT64_MAX, 1.0F},
          layout, k.data(), v.data(), page_table.data());
      for (int64_t t = 0; t < kLen; ++t) {
        const float value = out[static_cast<size_t>(t * kDim)];
        EXPECT_EQ(std::isnan(value), t >= 10 && t >= first) << row->name << " token " << t;
        if (t < 10) {
          EXPECT_FLOAT_EQ(value, 2.0F) << row->name << " token " << t;
        }
      }
    }
  }
}

TEST(Attend, GivesNanWhereAScoreIsNan) {
  expect_nan_from_the_row_that_sees(std::numeric_limits<float>::quiet_NaN());
}

TEST(Attend, GivesNanWhereAScoreIsInfinite) {
  expect_nan_from_the_row_that_sees(std::numeric_limits<float>::infinity());
}

TEST(Attend, KeepsDenormalValues) {
  const KvLayout layout{1, 16, 64, 64 * 16};
  const std::vector<uint32_t> page_table = {0};
  const std::vector<float> k(64 * 16, 1e-40F);
  const std::vector<float> v(64 * 16, 1e-40F);
  const std::vector<float> q(16, 1.0F);
  for (const CpuKernels* row : variants()) {
    std::vector<float> out(16);
    row->attend_f32({out.data(), 16, q.data(), 16, 1, 63, 0, 1, INT64_MAX, 1.0F}, layout, k.data(),
                    v.data(), page_table.data());
    for (const float value : out) EXPECT_NEAR(value / 1e-40F, 1.0F, 1e-3F) << row->name;
  }
}

TEST(Attend, KeepsLargeScoresFinite) {
  const KvLayout layout{1, 8, 16, 128};
  const std::vector<uint32_t> page_table = {0};
  std::vector<float> k(128, 0.0F);
  std::vector<float> v(128, 0.0F);
  std::fill_n(k.begin() + 8, 8, 1000.0F);  // key 1 outweighs key 0 beyond any float
  std::fill_n(v.begin() + 8, 8, 3.0F);
  const std::vector<float> q(8, 1000.0F);
  for (const CpuKernels* row : variants()) {
    std::vector<float> out(8);
    row->attend_f32({out.data(), 8, q.data(), 8, 1, 1, 0, 1, INT64_MAX, 1.0F}, layout, k.data(),
                    v.data(), page_table.data());
    for (const float value : out) EXPECT_EQ(value, 3.0F) << row->name;
  }
}

}  // namespace
}  // namespace dovetail::kernels
