// Retries: how often, and after which wait, something is asked for again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/base/status.hpp"

namespace dovetail::core {

/// What the parts of a pull tell whoever started it, and ask.
/// threads  any
struct PullEvents {
  std::function<bool()> stopped = [] { return false; };  // Ctrl-C, or another file's failure
  std::function<void(const std::string&)> note = [](const std::string&) {};
};

class Retries {
 public:
  Retries(uint32_t n, const PullEvents& events) : most_(n), events_(events) {}

  /// Waits before the next try: half a second, doubled each time up to half a minute, or as long as the hub
  /// asks; says so. `failure` is why.
  /// errors  `failure` itself, when there were enough tries or the hub asks for more than five minutes.
  ///         kCancelled.
  Status wait(const Status& failure, uint64_t retry_after_s);
  /// Something has been achieved: the count begins again.
  void reset() { n_ = 0; }

 private:
  uint32_t most_, n_ = 0;
  const PullEvents& events_;
};

}  // namespace dovetail::core
