// A CUDA device as this backend uses it: memory, one stream, copies. The plugin links one of two
// implementations: cuda_device.cpp over the CUDA runtime, or the tests' over host memory, where kernels run by
// emulation.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <kernels/cuda.hpp>

namespace dovetail::cuda {

struct DeviceInfo {
  std::string name;  // "NVIDIA H200, sm_90"
  uint64_t total_bytes, free_bytes;
};

/// Launches that were recorded, to be run as one; they keep their arguments, and what those point to must stay.
class LaunchGraph {
 public:
  LaunchGraph();
  ~LaunchGraph();
  LaunchGraph(LaunchGraph&&) noexcept;
  LaunchGraph& operator=(LaunchGraph&&) noexcept;

 private:
  friend class Device;
  struct State;
  std::unique_ptr<State> state_;
};

/// A place in the queue, to be waited for.
class Mark {
 public:
  Mark();
  ~Mark();
  Mark(Mark&&) noexcept;
  Mark& operator=(Mark&&) noexcept;

 private:
  friend class Device;
  struct State;
  std::unique_ptr<State> state_;
};

/// Copies, launches, replays and fills are queued in the order of their calls; wait() waits for all of them.
///
/// threads   one at a time.
/// errors    throws Error with DVT_EDEVICE (DVT_ENOMEM where memory is short), naming the call and the reason.
class Device {
 public:
  /// The devices that this machine has. Empty where there is none or no driver: then why_none says which.
  static std::vector<DeviceInfo> list(std::string& why_none);

  explicit Device(uint32_t index);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// What results depend on: "sm_90".
  const std::string& variant() const;
  kernels::cuda::Stream stream() const;
  /// Makes it the device of the calling thread's launches.
  void use() const;

  uint8_t* allocate(uint64_t n_bytes);
  void release(uint8_t* p) noexcept;
  /// host may change as soon as the call returns.
  void copy_in(void* to, const void* host, uint64_t n_bytes);
  /// host is filled when wait() returns.
  void copy_out(void* host, const void* from, uint64_t n_bytes);
  void copy(void* to, const void* from, uint64_t n_bytes);
  void zero(void* p, uint64_t n_bytes);

  /// Memory of the host that the device reaches while the host goes on.
  uint8_t* allocate_host(uint64_t n_bytes);
  void release_host(uint8_t* p) noexcept;
  /// To and from such memory: it stays as it is, or is filled, until the queue is past this.
  void send(void* to, const uint8_t* host, uint64_t n_bytes);
  void fetch(uint8_t* host, const void* from, uint64_t n_bytes);

  /// What launches() launches is recorded, not run; it does nothing else with the device.
  LaunchGraph record(const std::function<void()>& launches);
  void replay(const LaunchGraph& graph);

  /// Puts the mark at the queue's end.
  void place(Mark& mark);
  /// Waits for all that was queued before it; a mark that was never placed is not waited for.
  void wait(const Mark& mark);
  /// Also throws what a launch since the last wait() did wrong.
  void wait();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Memory of one of a device's two kinds that frees itself.
template <uint8_t* (Device::*kAllocate)(uint64_t), void (Device::*kRelease)(uint8_t*) noexcept>
class OwnedBytes {
 public:
  OwnedBytes() = default;
  OwnedBytes(Device& device, uint64_t n_bytes)
      : device_(&device), p_((device.*kAllocate)(n_bytes)), n_bytes_(n_bytes) {}
  OwnedBytes(OwnedBytes&& other) noexcept { swap(other); }
  OwnedBytes& operator=(OwnedBytes&& other) noexcept {
    swap(other);
    return *this;
  }
  ~OwnedBytes() {
    if (p_ != nullptr) (device_->*kRelease)(p_);
  }

  uint8_t* get() const { return p_; }
  uint64_t n_bytes() const { return n_bytes_; }

 private:
  void swap(OwnedBytes& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(p_, other.p_);
    std::swap(n_bytes_, other.n_bytes_);
  }

  Device* device_ = nullptr;
  uint8_t* p_ = nullptr;
  uint64_t n_bytes_ = 0;
};
using DeviceBytes = OwnedBytes<&Device::allocate, &Device::release>;
using HostBytes = OwnedBytes<&Device::allocate_host, &Device::release_host>;

}  // namespace dovetail::cuda
