#include "core/base/pages.hpp"

#include <sys/mman.h>

#include <utility>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace dovetail::core {

std::byte* reserve_pages(uint64_t n) {
  void* p =
      mmap(nullptr, n + kHugePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<uintptr_t>(p);
  const uint64_t before = whole_huge_pages(begin) - begin;
  if (before > 0) munmap(p, before);
  std::byte* place = static_cast<std::byte*>(p) + before;
  if (before < kHugePage) munmap(place + n, kHugePage - before);
  return place;
}

void release_freed_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

// The last huge page is one only as far as it is used: a page that is touched in part is there whole.
Pages::Pages(uint64_t n_bytes, Size size) {
  constexpr uint64_t kPage = 4096;
  const uint64_t reserved = whole_huge_pages(n_bytes);
  std::byte* const place = reserve_pages(reserved);
  if (!place) return;
  p_ = place;
  n_ = (n_bytes + kPage - 1) / kPage * kPage;
  if (n_ < reserved) munmap(place + n_, reserved - n_);
  if (mprotect(place, n_, PROT_READ | PROT_WRITE) != 0) {
    *this = Pages();
    return;
  }
  madvise(place, n_, size == Size::kHuge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

Pages::~Pages() {
  if (p_) munmap(p_, n_);
}

Pages::Pages(Pages&& other) noexcept
    : p_(std::exchange(other.p_, nullptr)), n_(std::exchange(other.n_, 0)) {}

Pages& Pages::operator=(Pages&& other) noexcept {
  std::swap(p_, other.p_);
  std::swap(n_, other.n_);
  return *this;
}

}  // namespace dovetail::core
