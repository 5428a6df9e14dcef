#include "core/kv_cache/kv_cache.hpp"

#include <gtest/gtest.h>

#include <set>

namespace dovetail::core {
namespace {

TEST(BlockPool, GivesEachBlockOnceAndTakesItBack) {
  BlockPool pool(4);
  std::vector<BlockId> a, b;
  ASSERT_TRUE(pool.take(3, a));
  EXPECT_FALSE(pool.take(2, b));
  EXPECT_TRUE(b.empty());
  ASSERT_TRUE(pool.take(1, b));
  std::set<BlockId> all(a.begin(), a.end());
  all.insert(b.begin(), b.end());
  EXPECT_EQ(all.size(), 4u);
  pool.give_back(a, 1);
  EXPECT_EQ(a.size(), 1u);
  EXPECT_EQ(pool.n_free(), 2u);
}

TEST(BlockPool, ASharedBlockIsFreeWhenItsLastHolderGoes) {
  BlockPool pool(2);
  std::vector<BlockId> a;
  ASSERT_TRUE(pool.take(1, a));
  std::vector<BlockId> b = a;
  pool.share(a[0]);
  pool.give_back(a);
  EXPECT_EQ(pool.n_free(), 1u);
  pool.give_back(b);
  EXPECT_EQ(pool.n_free(), 2u);
}

TEST(KvCache, ReservesAllOrNothing) {
  KvCache cache({{0, 1}, {1, 4}}, 4, 3, 2);  // a second group with one row for four tokens
  SequenceCache s, other;
  ASSERT_TRUE(cache.open(s));
  ASSERT_TRUE(cache.open(other));
  EXPECT_FALSE(cache.open(*std::make_unique<SequenceCache>()));
  ASSERT_TRUE(cache.reserve(s, 9));
  EXPECT_EQ(s.tables[0].size(), 3u);
  EXPECT_EQ(s.tables[1].size(), 1u);
  EXPECT_FALSE(cache.reserve(other, 1));
  EXPECT_TRUE(other.tables[0].empty());
  EXPECT_TRUE(other.tables[1].empty());
  cache.rewind(s, 4);
  EXPECT_EQ(s.tables[0].size(), 1u);
  EXPECT_TRUE(cache.reserve(other, 8));
}

TEST(KvCache, CloseGivesEverythingBack) {
  KvCache cache({{0, 1}}, 16, 8, 1);
  SequenceCache s;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(cache.open(s));
    ASSERT_TRUE(cache.reserve(s, 100));
    cache.close(s);
    EXPECT_FALSE(s.is_open());
    EXPECT_EQ(cache.n_free_blocks(), 8u);
    EXPECT_EQ(cache.n_free_slots(), 1u);
  }
  EXPECT_EQ(cache.max_tokens(), 128u);
}

}  // namespace
}  // namespace dovetail::core
