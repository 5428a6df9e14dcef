// The device as gpu_check uses it: memory, one stream, recordings of launches, time. The program links one of two
// implementations: cuda_machine.cpp over the CUDA runtime, or the tests' over host memory, where kernels run by
// emulation.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include <kernels/cuda.hpp>

namespace dovetail::gpu_check {

struct MachineInfo {
  std::string name;             // "NVIDIA H200, sm_90"
  std::string driver, runtime;  // versions of CUDA: "13.0"
  int64_t n_multiprocessors = 0, clock_mhz = 0, memory_clock_mhz = 0;
  int64_t total_bytes = 0, free_bytes = 0, l2_bytes = 0;
  bool is_emulated = false;
};

/// Names the call and the reason.
struct MachineError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct OutOfMemory : MachineError {
  using MachineError::MachineError;
};

/// Launches that were recorded, to be run as one (a CUDA graph).
class Recording {
 public:
  Recording();
  ~Recording();
  Recording(Recording&&) noexcept;
  Recording& operator=(Recording&&) noexcept;

 private:
  friend class Machine;
  struct State;
  std::unique_ptr<State> state_;
};

/// errors    throws MachineError.
class Machine {
 public:
  /// Null where there is no driver or no device: then why_none says which.
  static std::unique_ptr<Machine> open(std::string& why_none);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  MachineInfo info() const;
  kernels::cuda::Stream stream() const;

  /// On 256 bytes; every byte is 0xFF, which no float may be made of.
  void* allocate(int64_t n_bytes);
  void release(void* p) noexcept;
  /// These two wait.
  void copy_in(void* to, const void* host, int64_t n_bytes);
  void copy_out(void* host, const void* from, int64_t n_bytes);
  /// These two are queued.
  void copy(void* to, const void* from, int64_t n_bytes);
  void zero(void* p, int64_t n_bytes);

  Recording record(const std::function<void()>& launches);
  void replay(const Recording& recording);
  /// How long the device takes for what work() queues.
  double microseconds_of(const std::function<void()>& work);
  /// For all that is queued; throws what a launch since did wrong.
  void wait();
  /// After an error that the device does not recover from; all memory is gone. False: nor does this help.
  bool reset();

 private:
  Machine();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dovetail::gpu_check
