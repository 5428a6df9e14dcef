// Which tokens of a text each rule counts.
#include <gtest/gtest.h>

#include <vector>

#include "core/measure/perplexity.hpp"

namespace dovetail::core {
namespace {

std::vector<std::vector<size_t>> as_lists(const std::vector<TextWindow>& windows) {
  std::vector<std::vector<size_t>> out;
  for (const TextWindow& w : windows) out.push_back({w.begin, w.counted, w.end});
  return out;
}

using Lists = std::vector<std::vector<size_t>>;

TEST(Windows, SecondHalvesOfWholeWindowsAreCounted) {
  WindowRule rule{.context = 8};
  EXPECT_EQ(as_lists(windows_of(20, rule)), (Lists{{0, 5, 8}, {8, 13, 16}}));
  EXPECT_EQ(as_lists(windows_of(16, rule)), (Lists{{0, 5, 8}, {8, 13, 16}}));
  EXPECT_EQ(as_lists(windows_of(15, rule)), (Lists{{0, 5, 8}}));
  EXPECT_EQ(windows_of(7, rule).size(), 0u);
  // 512 tokens: those from 257 on, 255 of them.
  EXPECT_EQ(as_lists(windows_of(512, {.context = 512})), (Lists{{0, 257, 512}}));
}

TEST(Windows, AStrideCountsEveryTokenOnceButTheFirst) {
  WindowRule rule{.context = 8, .stride = 3};
  EXPECT_EQ(as_lists(windows_of(16, rule)),
            (Lists{{0, 1, 8}, {3, 8, 11}, {6, 11, 14}, {9, 14, 16}}));
  EXPECT_EQ(as_lists(windows_of(8, rule)), (Lists{{0, 1, 8}}));
  for (const size_t stride : {1, 2, 5, 7}) {
    size_t next = 1;
    for (const TextWindow& w : windows_of(101, {.context = 8, .stride = stride})) {
      EXPECT_EQ(w.counted, next);
      EXPECT_LE(w.end - w.begin, 8u);
      next = w.end;
    }
    EXPECT_EQ(next, 101u) << stride;
  }
}

TEST(Windows, SideBySideTheFirstOfEachHasNothingBeforeIt) {
  EXPECT_EQ(as_lists(windows_of(18, {.context = 8, .stride = 8})),
            (Lists{{0, 1, 8}, {8, 9, 16}, {16, 17, 18}}));
  EXPECT_EQ(as_lists(windows_of(17, {.context = 8, .stride = 8})), (Lists{{0, 1, 8}, {8, 9, 16}}))
      << "a window of one token counts nothing";
}

TEST(Windows, APrefixIsNeverCounted) {
  EXPECT_EQ(as_lists(windows_of(16, {.context = 8, .stride = 8, .n_prefix = 2})),
            (Lists{{0, 2, 8}, {8, 10, 16}}));
  EXPECT_EQ(
      as_lists(windows_of(16, {.context = 8, .stride = 7, .n_prefix = 2})),
      (Lists{{0, 2, 8}, {7, 9, 15}}));  // it hides tokens 7 and 8, and the last window's only one
  EXPECT_EQ(as_lists(windows_of(8, {.context = 8, .n_prefix = 6})), (Lists{{0, 6, 8}}));
}

TEST(Windows, NoMoreThanAskedFor) {
  EXPECT_EQ(as_lists(windows_of(100, {.context = 8, .most = 2})), (Lists{{0, 5, 8}, {8, 13, 16}}));
  EXPECT_EQ(windows_of(100, {.context = 8, .stride = 2, .most = 3}).size(), 3u);
}

}  // namespace
}  // namespace dovetail::core
