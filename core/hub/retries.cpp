#include "core/hub/retries.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

namespace dovetail::core {
namespace {

using Milliseconds = std::chrono::milliseconds;
constexpr Milliseconds kFirst(500), kLongest(30'000);
constexpr uint64_t kMostAskedFor = 300;  // seconds

}  // namespace

Status Retries::wait(const Status& failure, uint64_t retry_after_s) {
  if (retry_after_s > kMostAskedFor)
    return Status(failure.code(), failure.message() + "; it asks to come back in " +
                                      std::to_string(retry_after_s) + " s");
  if (n_ >= most_) {
    if (most_ == 0) return failure;
    return Status(failure.code(),
                  failure.message() + "; given up after " + std::to_string(most_ + 1) + " tries");
  }
  Milliseconds pause = std::min(kLongest, kFirst * (int64_t{1} << std::min<uint32_t>(n_, 10)));
  if (retry_after_s > 0) pause = std::chrono::seconds(retry_after_s);
  ++n_;
  char text[64];
  std::snprintf(text, sizeof text, "; again in %.1f s (%u of %u)",
                static_cast<double>(pause.count()) / 1000, n_, most_);
  events_.note(failure.message() + text);
  const auto end = std::chrono::steady_clock::now() + pause;
  while (std::chrono::steady_clock::now() < end) {
    if (events_.stopped()) return {Code::kCancelled, "interrupted"};
    std::this_thread::sleep_for(Milliseconds(20));
  }
  return Status::ok();
}

}  // namespace dovetail::core
