#include "core/model/promotion.hpp"

#include <algorithm>
#include <fstream>
#include <string>
#include <system_error>

#include "core/base/log.hpp"
#include "core/base/pages.hpp"
#include "core/base/signals_blocked.hpp"
#include "core/model/memory_plan.hpp"

namespace dovetail::core {

bool has_huge_pages() {
  std::ifstream in("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string line;
  return std::getline(in, line) && line.find("[never]") == std::string::npos;
}

Promotion::~Promotion() {
  stop_ = true;
  wait();
}

void Promotion::start(std::vector<Range> ranges) {
  if (ranges.empty() || !has_huge_pages()) return;
  const SignalsBlocked blocked;
  try {
    thread_ = std::thread([this, ranges = std::move(ranges)] { move(ranges); });
  } catch (const std::system_error&) {
    // A limit on threads: the weights stay where they are.
  }
}

void Promotion::begin_now() {
  const std::lock_guard lock(mutex_);
  begins_now_ = true;
  begins_.notify_one();
}

void Promotion::wait() {
  begin_now();
  if (thread_.joinable()) thread_.join();
}

void Promotion::move(const std::vector<Range>& ranges) {
  constexpr uint64_t kPiece = uint64_t{32} << 20;  // one change of the address space each
  static_assert(kPiece % kHugePage == 0);
  {
    std::unique_lock lock(mutex_);
    begins_.wait_for(lock, kDelay, [this] { return begins_now_; });
  }
  for (const Range& r : ranges)
    for (uint64_t at = r.offset; at < r.offset + r.bytes;) {
      const uint64_t n = std::min(r.offset + r.bytes, (at / kPiece + 1) * kPiece) - at;
      if (stop_) return;
      if (available_memory() < kReserve + n) {
        log_info("memory", "memory runs short: the rest of the weights stays in pages of 4 KiB");
        return;
      }
      if (const Status s = r.file->move_to_huge_pages(at, n); !s.is_ok()) {
        log_warn("memory", s.message() + "; the rest of the weights stays in pages of 4 KiB");
        return;
      }
      moved_.fetch_add(n, std::memory_order_relaxed);
      at += n;
    }
}

}  // namespace dovetail::core
