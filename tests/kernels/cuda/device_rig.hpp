// Kernels under every order of threads and blocks, with memory that is laid out as a device's.
#pragma once

#include <cstdint>
#include <new>
#include <vector>

#include <gtest/gtest.h>

#include <cuda_emulation/launch.hpp>
#include <kernels/cuda.hpp>

#include "tests/kernels/variants.hpp"

namespace dovetail::kernels::cuda {

/// Memory on 256 bytes, as cudaMalloc gives it, each a block of its own: AddressSanitizer knows its ends.
template <class T>
struct DeviceAllocator {
  using value_type = T;
  DeviceAllocator() = default;
  template <class U>
  DeviceAllocator(const DeviceAllocator<U>&) {}  // NOLINT(google-explicit-constructor)
  T* allocate(size_t n) {
    return static_cast<T*>(::operator new (n * sizeof(T), std::align_val_t{256}));
  }
  void deallocate(T* p, size_t) { ::operator delete (p, std::align_val_t{256}); }
  bool operator==(const DeviceAllocator&) const { return true; }
};
template <class T>
using DeviceVector = std::vector<T, DeviceAllocator<T>>;

template <class T>
DeviceVector<T> to_device(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}
inline DeviceVector<float> device_noise(int64_t n, uint32_t seed) {
  return to_device(noise(n, seed));
}

constexpr Stream kStream = nullptr;

/// The result of run() under every schedule, which must be the same bits; run() gives a DeviceVector.
template <class Run>
auto under_all_schedules(const Run& run) {
  decltype(run()) first;
  for (const cuda_emulation::Schedule& schedule : cuda_emulation::all_schedules()) {
    cuda_emulation::set_schedule(schedule);
    auto got = run();
    if (&schedule == cuda_emulation::all_schedules().data()) {
      first = std::move(got);
    } else {
      EXPECT_EQ(got.size(), first.size());
      if (first.empty()) continue;
      EXPECT_EQ(std::memcmp(got.data(), first.data(), first.size() * sizeof(first[0])), 0)
          << "another order of threads, " << name_of(schedule) << ", gives other bits";
    }
  }
  cuda_emulation::set_schedule({});
  return first;
}

/// Every element within bound(i) of what is expected.
template <class Got, class Expected, class Bound>
void expect_within(const Got& got, const Expected& expected, const Bound& bound) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(expected[i])) {
      ASSERT_TRUE(std::isnan(got[i])) << "element " << i;
      continue;
    }
    ASSERT_LE(std::fabs(static_cast<double>(got[i]) - static_cast<double>(expected[i])), bound(i))
        << "element " << i << ": got " << got[i] << ", expected " << expected[i];
  }
}

}  // namespace dovetail::kernels::cuda
