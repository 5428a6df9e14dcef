// A CUDA device as this backend uses it: memory, one stream, copies. The plugin links one of two
// implementations: cuda_device.cpp over the CUDA runtime, or the tests' over host memory, where kernels run by
// emulation.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <kernels/cuda.hpp>

namespace dovetail::cuda {

struct DeviceInfo {
  std::string name;  // "NVIDIA H200, sm_90"
  uint64_t total_bytes, free_bytes;
};

/// Copies, launches and fills are queued in the order of their calls; wait() waits for all of them.
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
  /// Also throws what a launch since the last wait() did wrong.
  void wait();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Memory of a device that frees itself.
class DeviceBytes {
 public:
  DeviceBytes() = default;
  DeviceBytes(Device& device, uint64_t n_bytes)
      : device_(&device), p_(device.allocate(n_bytes)), n_bytes_(n_bytes) {}
  DeviceBytes(DeviceBytes&& other) noexcept { swap(other); }
  DeviceBytes& operator=(DeviceBytes&& other) noexcept {
    swap(other);
    return *this;
  }
  ~DeviceBytes() {
    if (p_ != nullptr) device_->release(p_);
  }

  uint8_t* get() const { return p_; }
  uint64_t n_bytes() const { return n_bytes_; }

 private:
  void swap(DeviceBytes& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(p_, other.p_);
    std::swap(n_bytes_, other.n_bytes_);
  }

  Device* device_ = nullptr;
  uint8_t* p_ = nullptr;
  uint64_t n_bytes_ = 0;
};

}  // namespace dovetail::cuda
