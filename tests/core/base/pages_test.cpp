// Large memory: aligned, whole, and back at the system as soon as it is freed.
#include "core/base/pages.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace dovetail::core {
namespace {

bool is_mapped(const std::byte* p) {
  unsigned char resident = 0;
  const size_t in_page = reinterpret_cast<uintptr_t>(p) % 4096;
  return mincore(const_cast<std::byte*>(p) - in_page, 1, &resident) == 0;
}

TEST(Pages, AreZeroAtAHugePageAndNoLongerThanNeeded) {
  for (const Pages::Size size : {Pages::Size::kHuge, Pages::Size::kSmall})
    for (const uint64_t n : {uint64_t{1}, uint64_t{4096}, kHugePage, 3 * kHugePage + 5000}) {
      const Pages pages(n, size);
      ASSERT_TRUE(pages);
      const std::byte* p = pages.data();
      EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % kHugePage, 0u);
      EXPECT_TRUE(std::all_of(p, p + n, [](std::byte b) { return b == std::byte{0}; }));
      std::memset(pages.data(), 7, n);
      EXPECT_TRUE(is_mapped(p + n - 1));
      const uint64_t rest = n % 4096 ? 4096 - n % 4096 : 0;
      EXPECT_FALSE(is_mapped(p + n + rest)) << n;
    }
}

TEST(Pages, GoBackWhenTheyAreFreedOrReplaced) {
  const std::byte *first = nullptr, *second = nullptr;
  {
    Pages pages(2 * kHugePage);
    first = pages.data();
    Pages moved(std::move(pages));
    EXPECT_EQ(moved.data(), first);
    EXPECT_FALSE(pages);  // NOLINT(bugprone-use-after-move): empty is what is tested
    Pages other(kHugePage);
    second = other.data();
    other = std::move(moved);
    EXPECT_EQ(other.data(), first);
    EXPECT_TRUE(is_mapped(first));
  }
  EXPECT_FALSE(is_mapped(first));
  EXPECT_FALSE(is_mapped(second));
}

TEST(Pages, WithoutMemoryAreEmpty) {
  EXPECT_FALSE(Pages(uint64_t{1} << 60));
}

}  // namespace
}  // namespace dovetail::core
