// The paged cache and attention over it, ragged batches in scattered pages, against kernels/ref.
#include <kernels/attend.hpp>
#include <kernels/cached_rows.hpp>

#include <algorithm>
#include <type_traits>

#include "tests/kernels/cuda/device_rig.hpp"

namespace dovetail::kernels::cuda {
namespace {

/// Of a sequence: how much of it is cached, how many tokens this step brings.
struct Part {
  int64_t n_cached, n_tokens;
};
struct Setting {
  std::vector<Part> parts;
  int64_t head_dim = 16, n_group_heads = 2, page_len = 16, window = INT64_MAX, gap = 0;
};
constexpr int64_t kKvHeads = 2;

template <class Element>
Element poison() {
  if constexpr (std::is_same_v<Element, float>) return NAN;
  if constexpr (std::is_same_v<Element, uint16_t>) return 0x7FC0;
  return static_cast<Element>(-1);  // four of them are a scale of NaN
}

/// A step over caches where all that nobody may read is NaN.
template <class Element>
struct Rig {
  explicit Rig(Setting setting) : s(std::move(setting)) {
    const int64_t row_len = cached_row_len<Element>(s.head_dim);
    layout = {kKvHeads, s.head_dim, s.page_len,
              kKvHeads * s.page_len * row_len + (kHasScale<Element> ? 4 : 1) * s.gap};
    uint32_t n_pages = 0;
    for (const Part& p : s.parts) {
      const auto begin = static_cast<uint32_t>(pages.size());
      for (int64_t i = 0; i < p.n_cached + p.n_tokens; i += s.page_len) pages.push_back(n_pages++);
      for (int64_t t = 0; t < p.n_tokens; ++t) {
        positions.push_back(static_cast<int32_t>(p.n_cached + t));
        page_begin.push_back(begin);
      }
    }
    std::reverse(pages.begin(), pages.end());
    k.assign(static_cast<size_t>(n_pages * layout.page_stride), poison<Element>());
    v = k;
    uint32_t seed = 50;
    size_t at = 0;
    for (const Part& p : s.parts) {  // what earlier steps have written
      const int64_t first = std::max<int64_t>(0, p.n_cached + 1 - s.window);
      const uint32_t* table = &pages[p.n_tokens > 0 ? page_begin[at] : 0];
      at += static_cast<size_t>(p.n_tokens);
      for (auto* cache : {&k, &v}) {
        std::vector<float> rows = noise(p.n_cached * kKvHeads * s.head_dim, ++seed);
        if (cache == &k)
          for (float& x : rows) x *= 4.0F;
        write(cache->data(), table, first,
              rows.data() + std::min(first, p.n_cached) * kKvHeads * s.head_dim,
              std::max<int64_t>(0, p.n_cached - first));
      }
    }
    const int64_t n_new = step().n_tokens * kKvHeads * s.head_dim;
    k_rows = device_noise(n_new, 48);
    v_rows = device_noise(n_new, 49);
    q = device_noise(n_new * s.n_group_heads, 47);
    cache_write(kStream, k.data(), layout, step(), k_rows.data());
    cache_write(kStream, v.data(), layout, step(), v_rows.data());
  }

  StepRows step() const {
    return {positions.data(), page_begin.data(), pages.data(),
            static_cast<int64_t>(positions.size())};
  }
  void write(Element* base, const uint32_t* table, int64_t pos, const float* rows,
             int64_t n) const {
    const int64_t stride = kKvHeads * s.head_dim;
    if constexpr (std::is_same_v<Element, float>)
      ref::cache_write_f32(base, layout, table, pos, rows, stride, n);
    if constexpr (std::is_same_v<Element, uint16_t>)
      ref::cache_write_bf16(base, layout, table, pos, rows, stride, n);
    if constexpr (std::is_same_v<Element, int8_t>)
      ref::cache_write_int8(base, layout, table, pos, rows, stride, n);
  }
  /// Tiles of at most `len` tokens.
  DeviceVector<AttendTile> tiles(int64_t len) const {
    DeviceVector<AttendTile> out;
    int32_t first = 0;
    for (const Part& p : s.parts) {
      for (int64_t t = 0; t < p.n_tokens; t += len)
        out.push_back(
            {first + static_cast<int32_t>(t), static_cast<int32_t>(std::min(len, p.n_tokens - t))});
      first += static_cast<int32_t>(p.n_tokens);
    }
    return out;
  }
  /// n_spare: chunks of room that no sequence reaches.
  DeviceVector<float> attended(int64_t tile_len, bool in_parts, int64_t n_spare = 0) const {
    const DeviceVector<AttendTile> list = tiles(tile_len);
    const int64_t n_heads = kKvHeads * s.n_group_heads;
    int64_t longest = 0;
    for (const int32_t pos : positions) longest = std::max<int64_t>(longest, pos);
    const int64_t n_chunks = longest / kAttendChunk + 1 + n_spare;
    DeviceVector<float> out(q.size(), -7.0F), parts;
    if (in_parts)
      parts.assign(
          static_cast<size_t>(attend_parts_len(step().n_tokens, n_heads, s.head_dim, n_chunks)),
          NAN);
    DeviceVector<uint32_t> arrived(list.size() * static_cast<size_t>(n_heads), 0);
    attend(kStream,
           {out.data(), q.data(), list.data(), static_cast<int64_t>(list.size()), n_heads, s.window,
            0.3F, in_parts ? parts.data() : nullptr, n_chunks, arrived.data()},
           layout, step(), k.data(), v.data());
    EXPECT_EQ(std::ranges::count(arrived, 0U), std::ssize(arrived));
    return out;
  }
  std::vector<float> expected() const {
    std::vector<float> out(q.size());
    const int64_t stride = kKvHeads * s.n_group_heads * s.head_dim;
    for (int64_t t = 0; t < step().n_tokens; ++t)
      for (int64_t g = 0; g < kKvHeads; ++g) {
        const AttendTask task{
            out.data() + t * stride,           stride, q.data() + t * stride, stride,   1,
            positions[static_cast<size_t>(t)], g,      s.n_group_heads,       s.window, 0.3F};
        const uint32_t* table = &pages[page_begin[static_cast<size_t>(t)]];
        if constexpr (std::is_same_v<Element, float>)
          ref::attend_f32(task, layout, k.data(), v.data(), table);
        if constexpr (std::is_same_v<Element, uint16_t>)
          ref::attend_bf16(task, layout, k.data(), v.data(), table);
        if constexpr (std::is_same_v<Element, int8_t>)
          ref::attend_int8(task, layout, k.data(), v.data(), table);
      }
    return out;
  }

  Setting s;
  KvLayout layout{};
  DeviceVector<int32_t> positions;
  DeviceVector<uint32_t> page_begin, pages;
  DeviceVector<Element> k, v;
  DeviceVector<float> k_rows, v_rows, q;
};

template <class Element>
class CudaAttend : public testing::Test {};
using Elements = testing::Types<float, uint16_t, int8_t>;
TYPED_TEST_SUITE(CudaAttend, Elements);

// Prefill beside decode; heads that vectors do not divide, more query heads than a block has rows, windows.
const std::vector<Setting>& settings() {
  static const std::vector<Setting> list = {
      {{{0, 11}, {30, 1}, {70, 3}}},
      {{{5, 4}, {0, 1}}, 10, 2, 4, INT64_MAX, 5},
      {{{100, 20}, {3, 2}}, 10, 2, 4, 5},
      {{{140, 2}}, 136, 3, 32, 70},
      {{{20, 3}}, 8, 19, 16},
  };
  return list;
}

TYPED_TEST(CudaAttend, WritesTheBytesOfTheReference) {
  for (const Setting& s : settings()) {
    Rig<TypeParam> rig(s);
    auto expected = rig.k;
    std::fill(expected.begin(), expected.end(), poison<TypeParam>());
    auto got = under_all_schedules([&] {
      auto cache = expected;
      cache_write(kStream, cache.data(), rig.layout, rig.step(), rig.k_rows.data());
      return cache;
    });
    for (size_t t = 0; t < rig.positions.size(); ++t)
      rig.write(expected.data(), &rig.pages[rig.page_begin[t]], rig.positions[t],
                &rig.k_rows[t * static_cast<size_t>(kKvHeads * s.head_dim)], 1);
    EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(TypeParam)), 0);
  }
}
TEST(CudaCacheWrite, Int8KeepsNanAndDropsDust) {
  const KvLayout layout{1, 5, 4, 4 * int8_row_bytes(5)};
  DeviceVector<float> rows;
  for (const float odd : {NAN, INFINITY, 1e-38F, 127.0F})
    for (int i = 0; i < 5; ++i) rows.push_back(i == 2 ? odd : odd == 1e-38F ? 0.0F : 1.5F);
  DeviceVector<int32_t> positions = {0, 1, 2, 3};
  DeviceVector<uint32_t> begin(4, 0), pages = {0};
  DeviceVector<int8_t> got(static_cast<size_t>(layout.page_stride), 99), expected = got;
  cache_write(kStream, got.data(), layout, {positions.data(), begin.data(), pages.data(), 4},
              rows.data());
  ref::cache_write_int8(expected.data(), layout, pages.data(), 0, rows.data(), 5, 4);
  EXPECT_EQ(got, expected);
}

TYPED_TEST(CudaAttend, MatchesReferenceOverRaggedBatches) {
  for (const Setting& s : settings()) {
    SCOPED_TRACE("head of " + std::to_string(s.head_dim));
    const Rig<TypeParam> rig(s);
    const auto got =
        under_all_schedules([&] { return rig.attended(attend_tile_len(s.n_group_heads), false); });
    expect_within(got, rig.expected(), [](size_t) { return 1e-5; });
  }
}

// Long contexts: several chunks, in one block or each in its own, tiles of any length: the same bits.
TYPED_TEST(CudaAttend, GivesTheSameBitsHoweverTheWorkIsCut) {
  for (const int64_t window : {INT64_MAX, int64_t{600}}) {
    const Rig<TypeParam> rig({{{1100, 3}, {510, 5}, {0, 1}}, 12, 2, 16, window});
    const auto whole = rig.attended(8, false);
    expect_within(whole, rig.expected(), [](size_t) { return 1e-5; });
    for (const int64_t tile_len : {1, 2, 8})
      for (const bool in_parts : {false, true}) {
        const auto got = rig.attended(tile_len, in_parts);
        EXPECT_TRUE(same_bits(got.data(), whole.data(), static_cast<int64_t>(got.size())))
            << tile_len << (in_parts ? ", in parts" : "");
      }
  }
  const Rig<TypeParam> rig({{{1100, 1}}, 12, 2, 16});
  const auto got = under_all_schedules([&] { return rig.attended(1, true, 5); });
  EXPECT_TRUE(same_bits(got.data(), rig.attended(1, false).data(), std::ssize(got)));
}

// A row that is written later, or by nobody, does not reach what is attended to.
TYPED_TEST(CudaAttend, NanInTheFutureStaysThere) {
  Rig<TypeParam> rig({{{0, 6}}});
  const auto before = rig.attended(8, false);
  rig.k_rows[5 * kKvHeads * 16] = rig.v_rows[5 * kKvHeads * 16] = NAN;
  cache_write(kStream, rig.k.data(), rig.layout, rig.step(), rig.k_rows.data());
  cache_write(kStream, rig.v.data(), rig.layout, rig.step(), rig.v_rows.data());
  const auto after = rig.attended(8, false);
  EXPECT_TRUE(same_bits(before.data(), after.data(), 5 * kKvHeads * 2 * 16));
  EXPECT_TRUE(std::isnan(after[5 * kKvHeads * 2 * 16]));
}

}  // namespace
}  // namespace dovetail::kernels::cuda
