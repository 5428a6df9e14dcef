// Machine over host memory: kernels run by emulation, a recording is its launches one after another. Time is that of
// the processor: it says nothing but that it was taken.
#include <cuda_emulation/launch.hpp>

#include <chrono>
#include <cstring>
#include <new>
#include <vector>

#include "tools/gpu_check/machine.hpp"

namespace dovetail::gpu_check {

struct Recording::State {
  std::vector<std::function<void()>> launches;
};
Recording::Recording() = default;
Recording::~Recording() = default;
Recording::Recording(Recording&&) noexcept = default;
Recording& Recording::operator=(Recording&&) noexcept = default;

struct Machine::State : CUstream_st {
  void add_launch(const char*, std::function<void()> launch) override {
    if (recording != nullptr)
      recording->push_back(std::move(launch));
    else
      launch();
  }
  std::vector<std::function<void()>>* recording = nullptr;
};

std::unique_ptr<Machine> Machine::open(std::string&) {
  return std::unique_ptr<Machine>(new Machine);
}
Machine::Machine() : state_(std::make_unique<State>()) {}
Machine::~Machine() = default;

MachineInfo Machine::info() const {
  MachineInfo out;
  out.name = "emulated on the CPU";
  out.driver = out.runtime = "none";
  out.n_multiprocessors = 1;
  out.l2_bytes = 1;
  out.is_emulated = true;
  return out;
}
kernels::cuda::Stream Machine::stream() const {
  return state_.get();
}

void* Machine::allocate(int64_t n_bytes) {
  const auto size = static_cast<size_t>(n_bytes > 0 ? n_bytes : 1);
  void* p = ::operator new (size, std::align_val_t{256});
  std::memset(p, 0xFF, size);
  return p;
}
void Machine::release(void* p) noexcept {
  ::operator delete (p, std::align_val_t{256});
}
void Machine::copy_in(void* to, const void* host, int64_t n_bytes) {
  std::memcpy(to, host, static_cast<size_t>(n_bytes));
}
void Machine::copy_out(void* host, const void* from, int64_t n_bytes) {
  std::memcpy(host, from, static_cast<size_t>(n_bytes));
}
void Machine::copy(void* to, const void* from, int64_t n_bytes) {
  std::memmove(to, from, static_cast<size_t>(n_bytes));
}
void Machine::zero(void* p, int64_t n_bytes) {
  std::memset(p, 0, static_cast<size_t>(n_bytes));
}

Recording Machine::record(const std::function<void()>& launches) {
  Recording out;
  out.state_ = std::make_unique<Recording::State>();
  state_->recording = &out.state_->launches;
  launches();
  state_->recording = nullptr;
  return out;
}
void Machine::replay(const Recording& recording) {
  for (const auto& launch : recording.state_->launches) launch();
}
double Machine::microseconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
      .count();
}
void Machine::wait() {}
bool Machine::reset() {
  return true;
}

}  // namespace dovetail::gpu_check
