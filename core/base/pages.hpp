// Pages: memory of the system's own, for what is large: it goes back whole when it is freed, whatever the allocator
// keeps, and stands in 2 MiB pages where there are some.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dovetail::core {

inline constexpr uint64_t kHugePage = uint64_t{2} << 20;

/// n rounded up to whole huge pages.
constexpr uint64_t whole_huge_pages(uint64_t n) {
  return (n + kHugePage - 1) / kHugePage * kHugePage;
}

/// Addresses for n bytes, a multiple of kHugePage, at a multiple of kHugePage, nothing behind them yet; null if there
/// are none.
std::byte* reserve_pages(uint64_t n);

/// Gives the system what the allocator keeps of freed memory: after something large was read in small pieces.
void release_freed_memory();

class Pages {
 public:
  enum class Size { kHuge, kSmall };

  Pages() = default;
  /// Zeros, at a multiple of kHugePage; empty when there is no memory.
  explicit Pages(uint64_t n_bytes, Size size = Size::kHuge);
  ~Pages();
  Pages(Pages&& other) noexcept;
  Pages& operator=(Pages&& other) noexcept;

  std::byte* data() const { return p_; }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  std::byte* p_ = nullptr;
  uint64_t n_ = 0;  // reserved
};

}  // namespace dovetail::core
