// Promotion: moves mapped weights to 2 MiB pages in the background, while the model already answers.
//
// A file's pages are of 4 KiB, and a processor that streams through gigabytes of them spends its time
// on translations. The start stays quick: nobody waits for the copy. Addresses and bytes never change.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "core/base/files.hpp"

namespace dovetail::core {

class Promotion {
 public:
  /// Bytes of a mapped file.
  struct Range {
    const File* file = nullptr;
    uint64_t offset = 0, bytes = 0;
  };
  /// Memory that is left to others: no page moves when less than this would stay available.
  static constexpr uint64_t kReserve = uint64_t{512} << 20;

  Promotion() = default;
  /// Stops after the piece in hand.
  ~Promotion();
  Promotion(const Promotion&) = delete;
  Promotion& operator=(const Promotion&) = delete;

  /// Begins, once. The files outlive this object. Does nothing where the system gives no such pages.
  void start(std::vector<Range> ranges);
  /// Until everything has moved, or memory ran short.
  void wait();
  uint64_t moved_bytes() const { return moved_.load(std::memory_order_relaxed); }

 private:
  void move(const std::vector<Range>& ranges);

  std::thread thread_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> moved_{0};
};

/// Whether the system gives 2 MiB pages to memory that asks for them.
bool has_huge_pages();

}  // namespace dovetail::core
