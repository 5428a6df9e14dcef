// Promotion: moves mapped weights to 2 MiB pages in the background, while the model already answers, a second after it is loaded.
//
// A file's pages are of 4 KiB, and a processor that streams through gigabytes of them spends its time
// on translations. The start stays quick: nobody waits for the copy. Addresses and bytes never change.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
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

  /// Begins after kDelay, once. The files outlive this object. Does nothing where the system gives no such pages.
  void start(std::vector<Range> ranges);
  /// The first answer has the processors for itself, and a short one is over before anything moves.
  static constexpr std::chrono::milliseconds kDelay{1000};
  /// Until everything has moved, or memory ran short. Begins at once.
  void wait();
  uint64_t moved_bytes() const { return moved_.load(std::memory_order_relaxed); }

 private:
  void move(const std::vector<Range>& ranges);
  void begin_now();

  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable begins_;
  bool begins_now_ = false;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> moved_{0};
};

/// Whether the system gives 2 MiB pages to memory that asks for them.
bool has_huge_pages();

}  // namespace dovetail::core
