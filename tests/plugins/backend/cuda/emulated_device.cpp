// Device over host memory: kernels run by emulation, at once. What it sees it checks: that copies stay within
// memory that is allocated, that nothing is released twice, that nothing is left behind. The variable
// DOVETAIL_TEST_DEVICE_BYTES bounds its memory.
#include <cuda_emulation/launch.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>

#include "plugins/backend/cuda/device.hpp"

#include <dovetail/doc.hpp>

namespace dovetail::cuda {
namespace {

constexpr size_t kAlign = 256;
constexpr int kPoison = 0xff;  // NaN: what is read was not written

}  // namespace

struct Device::State {
  std::string variant = "emulated";
  std::map<const uint8_t*, uint64_t> blocks;  // by address
  uint64_t n_allocated = 0, most = UINT64_MAX;

  /// Throws for a range that is not within one block.
  void check(const void* p, uint64_t n_bytes, const char* call) const {
    const auto* begin = static_cast<const uint8_t*>(p);
    auto it = blocks.upper_bound(begin);
    if (it != blocks.begin() && begin + n_bytes <= std::prev(it)->first + std::prev(it)->second)
      return;
    throw Error(std::string(call) + " of " + std::to_string(n_bytes) +
                    " bytes outside of what was allocated",
                DVT_EDEVICE);
  }
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
  if (state_->blocks.empty()) return;
  std::fprintf(stderr, "emulated device: %zu blocks of memory are left behind\n",
               state_->blocks.size());
  std::abort();
}

const std::string& Device::variant() const {
  return state_->variant;
}
kernels::cuda::Stream Device::stream() const {
  return nullptr;
}
void Device::use() const {}

uint8_t* Device::allocate(uint64_t n_bytes) {
  if (n_bytes > state_->most - state_->n_allocated)
    throw Error("allocate of " + std::to_string(n_bytes) + " bytes: out of memory", DVT_ENOMEM);
  state_->n_allocated += n_bytes;
  auto* p =
      static_cast<uint8_t*>(::operator new (n_bytes == 0 ? 1 : n_bytes, std::align_val_t{kAlign}));
  std::memset(p, kPoison, n_bytes);
  state_->blocks[p] = n_bytes;
  return p;
}
void Device::release(uint8_t* p) noexcept {
  const auto block = state_->blocks.find(p);
  if (block == state_->blocks.end()) {
    std::fprintf(stderr, "emulated device: memory is released that was never allocated\n");
    std::abort();
  }
  state_->n_allocated -= block->second;
  state_->blocks.erase(block);
  ::operator delete (p, std::align_val_t{kAlign});
}
void Device::copy_in(void* to, const void* host, uint64_t n_bytes) {
  state_->check(to, n_bytes, "copy_in");
  if (n_bytes > 0) std::memcpy(to, host, n_bytes);
}
void Device::copy_out(void* host, const void* from, uint64_t n_bytes) {
  state_->check(from, n_bytes, "copy_out");
  if (n_bytes > 0) std::memcpy(host, from, n_bytes);
}
void Device::copy(void* to, const void* from, uint64_t n_bytes) {
  state_->check(to, n_bytes, "copy");
  state_->check(from, n_bytes, "copy");
  if (n_bytes > 0) std::memmove(to, from, n_bytes);
}
void Device::zero(void* p, uint64_t n_bytes) {
  state_->check(p, n_bytes, "zero");
  std::memset(p, 0, n_bytes);
}
void Device::wait() {}

}  // namespace dovetail::cuda
