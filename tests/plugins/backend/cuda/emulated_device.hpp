// What the emulated device (emulated_device.cpp) counts, for tests that are linked with it.
#pragma once

#include <cstdint>

namespace dovetail::cuda {

struct EmulatedCounts {
  uint64_t n_launches = 0;                  // that ran, those of graphs too
  uint64_t n_queued = 0;                    // that the host launched one by one
  uint64_t n_recorded = 0, n_replayed = 0;  // graphs
  uint64_t n_waits = 0;
};
/// Of all devices of the process.
EmulatedCounts& emulated_counts();

}  // namespace dovetail::cuda
