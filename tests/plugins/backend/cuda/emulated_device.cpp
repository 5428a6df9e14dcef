// Device over host memory: kernels run by emulation. Nothing that is queued runs before somebody waits for it: who
// reads results too early finds NaN. What it sees it checks: that copies stay within memory that is allocated, that
// nothing is released twice, that nothing is left behind. The variable DOVETAIL_TEST_DEVICE_BYTES bounds its memory.
#include <cuda_emulation/launch.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <new>
#include <utility>
#include <vector>

#include "plugins/backend/cuda/device.hpp"
#include "tests/plugins/backend/cuda/emulated_device.hpp"

#include <dovetail/doc.hpp>

namespace dovetail::cuda {
namespace {

constexpr size_t kAlign = 256;
constexpr int kPoison = 0xff;  // NaN: what is read was not written

}  // namespace

EmulatedCounts& emulated_counts() {
  static EmulatedCounts counts;
  return counts;
}

struct LaunchGraph::State {
  std::vector<std::function<void()>> launches;
};
LaunchGraph::LaunchGraph() = default;
LaunchGraph::~LaunchGraph() = default;
LaunchGraph::LaunchGraph(LaunchGraph&&) noexcept = default;
LaunchGraph& LaunchGraph::operator=(LaunchGraph&&) noexcept = default;

struct Mark::State {
  uint64_t n_before;  // how much was queued, since the device is there
};
Mark::Mark() = default;
Mark::~Mark() = default;
Mark::Mark(Mark&&) noexcept = default;
Mark& Mark::operator=(Mark&&) noexcept = default;

struct Device::State : CUstream_st {
  std::string variant = "emulated";
  std::map<const uint8_t*, uint64_t> blocks, host_blocks;  // by address
  std::deque<std::function<void()>> queue;
  uint64_t n_done = 0;  // of all that was ever queued
  uint64_t n_allocated = 0, most = UINT64_MAX;  // bytes of the device's memory
  LaunchGraph::State* recording = nullptr;

  /// Throws for a range that is not within one block.
  static void check(const std::map<const uint8_t*, uint64_t>& blocks, const void* p,
                    uint64_t n_bytes, const char* call) {
    const auto* begin = static_cast<const uint8_t*>(p);
    auto it = blocks.upper_bound(begin);
    if (it != blocks.begin() && begin + n_bytes <= std::prev(it)->first + std::prev(it)->second)
      return;
    throw Error(std::string(call) + " of " + std::to_string(n_bytes) +
                    " bytes outside of what was allocated",
                DVT_EDEVICE);
  }
  void check(const void* p, uint64_t n_bytes, const char* call) const {
    check(blocks, p, n_bytes, call);
  }
  void add(std::function<void()> work, const char* call) {
    if (recording) throw Error(std::string(call) + " while launches are recorded", DVT_EDEVICE);
    queue.push_back(std::move(work));
  }
  void add_launch(const char* kernel, std::function<void()> launch) override {
    auto counted = [launch = std::move(launch)] {
      ++emulated_counts().n_launches;
      launch();
    };
    if (recording) {
      recording->launches.emplace_back(std::move(counted));
    } else {
      ++emulated_counts().n_queued;
      add(std::move(counted), kernel);
    }
  }
  void run_until(uint64_t n) {
    for (; n_done < n; ++n_done) {
      const auto work = std::move(queue.front());
      queue.pop_front();
      work();
    }
  }
  void run_all() { run_until(n_done + queue.size()); }
};

std::vector<DeviceInfo> Device::list(std::string&) {
  return {{"emulated on the CPU", 0, 0}};
}

Device::Device(uint32_t index) : state_(std::make_unique<State>()) {
  if (index != 0) throw Error("device " + std::to_string(index) + " of 1", DVT_EDEVICE);
  if (const char* most = std::getenv("DOVETAIL_TEST_DEVICE_BYTES"))
    state_->most = std::strtoull(most, nullptr, 10);
}
Device::~Device() {
  if (state_->blocks.empty() && state_->host_blocks.empty()) return;
  std::fprintf(stderr, "emulated device: %zu blocks of memory are left behind\n",
               state_->blocks.size() + state_->host_blocks.size());
  std::abort();
}

const std::string& Device::variant() const {
  return state_->variant;
}
kernels::cuda::Stream Device::stream() const {
  return state_.get();
}
void Device::use() const {}

namespace {

uint8_t* allocate_in(std::map<const uint8_t*, uint64_t>& blocks, uint64_t n_bytes) {
  auto* p =
      static_cast<uint8_t*>(::operator new (n_bytes == 0 ? 1 : n_bytes, std::align_val_t{kAlign}));
  std::memset(p, kPoison, n_bytes);
  blocks[p] = n_bytes;
  return p;
}
/// Gives the bytes that were released.
uint64_t release_in(std::map<const uint8_t*, uint64_t>& blocks, uint8_t* p) {
  const auto block = blocks.find(p);
  if (block == blocks.end()) {
    std::fprintf(stderr, "emulated device: memory is released that was never allocated\n");
    std::abort();
  }
  const uint64_t n_bytes = block->second;
  blocks.erase(block);
  ::operator delete (p, std::align_val_t{kAlign});
  return n_bytes;
}

}  // namespace

uint8_t* Device::allocate(uint64_t n_bytes) {
  if (n_bytes > state_->most - state_->n_allocated)
    throw Error("allocate of " + std::to_string(n_bytes) + " bytes: out of memory", DVT_ENOMEM);
  state_->n_allocated += n_bytes;
  return allocate_in(state_->blocks, n_bytes);
}
void Device::release(uint8_t* p) noexcept {
  state_->run_all();  // cudaFree waits
  state_->n_allocated -= release_in(state_->blocks, p);
}
void Device::copy_in(void* to, const void* host, uint64_t n_bytes) {
  state_->check(to, n_bytes, "copy_in");
  const auto* bytes = static_cast<const uint8_t*>(host);
  state_->add(
      [to, read = std::vector<uint8_t>(bytes, bytes + n_bytes)] {
        if (!read.empty()) std::memcpy(to, read.data(), read.size());
      },
      "copy_in");
}
void Device::copy_out(void* host, const void* from, uint64_t n_bytes) {
  state_->check(from, n_bytes, "copy_out");
  if (n_bytes > 0) std::memset(host, kPoison, n_bytes);
  state_->add(
      [host, from, n_bytes] {
        if (n_bytes > 0) std::memcpy(host, from, n_bytes);
      },
      "copy_out");
}
void Device::copy(void* to, const void* from, uint64_t n_bytes) {
  state_->check(to, n_bytes, "copy");
  state_->check(from, n_bytes, "copy");
  state_->add(
      [to, from, n_bytes] {
        if (n_bytes > 0) std::memmove(to, from, n_bytes);
      },
      "copy");
}
void Device::zero(void* p, uint64_t n_bytes) {
  state_->check(p, n_bytes, "zero");
  state_->add([p, n_bytes] { std::memset(p, 0, n_bytes); }, "zero");
}

uint8_t* Device::allocate_host(uint64_t n_bytes) {
  return allocate_in(state_->host_blocks, n_bytes);
}
void Device::release_host(uint8_t* p) noexcept {
  release_in(state_->host_blocks, p);
}
void Device::send(void* to, const uint8_t* host, uint64_t n_bytes) {
  state_->check(to, n_bytes, "send");
  State::check(state_->host_blocks, host, n_bytes, "send");
  state_->add([to, host, n_bytes] { std::memcpy(to, host, n_bytes); }, "send");
}
void Device::fetch(uint8_t* host, const void* from, uint64_t n_bytes) {
  state_->check(from, n_bytes, "fetch");
  State::check(state_->host_blocks, host, n_bytes, "fetch");
  std::memset(host, kPoison, n_bytes);
  state_->add([host, from, n_bytes] { std::memcpy(host, from, n_bytes); }, "fetch");
}

LaunchGraph Device::record(const std::function<void()>& launches) {
  LaunchGraph out;
  out.state_ = std::make_unique<LaunchGraph::State>();
  state_->recording = out.state_.get();
  try {
    launches();
  } catch (...) {
    state_->recording = nullptr;
    throw;
  }
  state_->recording = nullptr;
  ++emulated_counts().n_recorded;
  return out;
}
void Device::replay(const LaunchGraph& graph) {
  ++emulated_counts().n_replayed;
  state_->add(
      [launches = graph.state_->launches] {
        for (const auto& launch : launches) launch();
      },
      "replay");
}

void Device::place(Mark& mark) {
  mark.state_ = std::make_unique<Mark::State>(Mark::State{state_->n_done + state_->queue.size()});
}
void Device::wait(const Mark& mark) {
  ++emulated_counts().n_waits;
  if (mark.state_) state_->run_until(mark.state_->n_before);
}
void Device::wait() {
  ++emulated_counts().n_waits;
  state_->run_all();
}

}  // namespace dovetail::cuda
