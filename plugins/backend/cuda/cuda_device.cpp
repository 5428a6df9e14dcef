// Device over the CUDA runtime, which is linked into the plugin and looks for the driver when it is first
// called: without one the plugin loads, and says so.
#include "device.hpp"

#include <cuda_runtime_api.h>
#include <dovetail/doc.hpp>

namespace dovetail::cuda {
namespace {

std::string text_of(cudaError_t error) {
  return std::string(cudaGetErrorString(error)) + " (" + cudaGetErrorName(error) + ")";
}
void check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  (void)cudaGetLastError();  // an error that the next call would report again
  throw Error(std::string(call) + ": " + text_of(error),
              error == cudaErrorMemoryAllocation ? DVT_ENOMEM : DVT_EDEVICE);
}

}  // namespace

struct LaunchGraph::State {
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (graph != nullptr) (void)cudaGraphExecDestroy(graph);
  }
  cudaGraphExec_t graph = nullptr;
};
LaunchGraph::LaunchGraph() = default;
LaunchGraph::~LaunchGraph() = default;
LaunchGraph::LaunchGraph(LaunchGraph&&) noexcept = default;
LaunchGraph& LaunchGraph::operator=(LaunchGraph&&) noexcept = default;

struct Mark::State {
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (event != nullptr) (void)cudaEventDestroy(event);
  }
  cudaEvent_t event = nullptr;
};
Mark::Mark() = default;
Mark::~Mark() = default;
Mark::Mark(Mark&&) noexcept = default;
Mark& Mark::operator=(Mark&&) noexcept = default;

struct Device::State {
  int index = 0;
  cudaStream_t stream = nullptr;
  std::string variant;
};

std::vector<DeviceInfo> Device::list(std::string& why_none) {
  int n = 0;
  const cudaError_t error = cudaGetDeviceCount(&n);
  std::vector<DeviceInfo> out;
  if (error == cudaErrorInsufficientDriver || error == cudaErrorStubLibrary) {
    int driver = 0;
    (void)cudaDriverGetVersion(&driver);
    why_none =
        driver == 0
            ? "there is no NVIDIA driver (libcuda.so.1); install it, or use backend.plugin=cpu"
            : "the NVIDIA driver speaks CUDA " + std::to_string(driver / 1000) + "." +
                  std::to_string(driver % 1000 / 10) + ", expected " +
                  std::to_string(CUDART_VERSION / 1000) + "." +
                  std::to_string(CUDART_VERSION % 1000 / 10) + " or newer";
    return out;
  }
  if (error != cudaSuccess || n == 0) {
    why_none =
        "there is no CUDA device: " + text_of(error == cudaSuccess ? cudaErrorNoDevice : error);
    return out;
  }
  for (int i = 0; i < n; ++i) {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, i), "cudaGetDeviceProperties");
    // No memory is asked for: that would make a context on the device.
    out.push_back({std::string(properties.name) + ", sm_" + std::to_string(properties.major) +
                       std::to_string(properties.minor),
                   properties.totalGlobalMem, 0});
  }
  return out;
}

Device::Device(uint32_t index) : state_(std::make_unique<State>()) {
  std::string why_none;
  const size_t n = list(why_none).size();
  if (index >= n)
    throw Error(n == 0 ? why_none : "device " + std::to_string(index) + " of " + std::to_string(n),
                DVT_EDEVICE);
  state_->index = static_cast<int>(index);
  use();
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, state_->index), "cudaGetDeviceProperties");
  if (properties.major < 8)
    throw Error(std::string(properties.name) + " is of sm_" + std::to_string(properties.major) +
                    std::to_string(properties.minor) + ", expected sm_80 or newer",
                DVT_EDEVICE);
  state_->variant = "sm_" + std::to_string(properties.major) + std::to_string(properties.minor);
  check(cudaStreamCreateWithFlags(&state_->stream, cudaStreamNonBlocking), "cudaStreamCreate");
}
Device::~Device() {
  if (state_->stream != nullptr) (void)cudaStreamDestroy(state_->stream);
}

const std::string& Device::variant() const {
  return state_->variant;
}
kernels::cuda::Stream Device::stream() const {
  return state_->stream;
}
void Device::use() const {
  check(cudaSetDevice(state_->index), "cudaSetDevice");
}

uint8_t* Device::allocate(uint64_t n_bytes) {
  use();
  void* p = nullptr;
  check(cudaMalloc(&p, n_bytes == 0 ? 1 : n_bytes), "cudaMalloc");
  return static_cast<uint8_t*>(p);
}
void Device::release(uint8_t* p) noexcept {
  (void)cudaSetDevice(state_->index);
  (void)cudaFree(p);
}
void Device::copy_in(void* to, const void* host, uint64_t n_bytes) {
  // Of pageable memory: it is read before the call returns.
  check(cudaMemcpyAsync(to, host, n_bytes, cudaMemcpyHostToDevice, state_->stream),
        "cudaMemcpyAsync");
}
void Device::copy_out(void* host, const void* from, uint64_t n_bytes) {
  check(cudaMemcpyAsync(host, from, n_bytes, cudaMemcpyDeviceToHost, state_->stream),
        "cudaMemcpyAsync");
}
void Device::copy(void* to, const void* from, uint64_t n_bytes) {
  check(cudaMemcpyAsync(to, from, n_bytes, cudaMemcpyDeviceToDevice, state_->stream),
        "cudaMemcpyAsync");
}
void Device::zero(void* p, uint64_t n_bytes) {
  check(cudaMemsetAsync(p, 0, n_bytes, state_->stream), "cudaMemsetAsync");
}
uint8_t* Device::allocate_host(uint64_t n_bytes) {
  use();
  void* p = nullptr;
  check(cudaMallocHost(&p, n_bytes == 0 ? 1 : n_bytes), "cudaMallocHost");
  return static_cast<uint8_t*>(p);
}
void Device::release_host(uint8_t* p) noexcept {
  (void)cudaFreeHost(p);
}
void Device::send(void* to, const uint8_t* host, uint64_t n_bytes) {
  copy_in(to, host, n_bytes);  // pinned memory: nothing is read before its turn
}
void Device::fetch(uint8_t* host, const void* from, uint64_t n_bytes) {
  copy_out(host, from, n_bytes);
}

LaunchGraph Device::record(const std::function<void()>& launches) {
  cudaGraph_t graph = nullptr;
  // Relaxed: the first launch of a kernel may load it.
  check(cudaStreamBeginCapture(state_->stream, cudaStreamCaptureModeRelaxed),
        "cudaStreamBeginCapture");
  try {
    launches();
  } catch (...) {
    (void)cudaStreamEndCapture(state_->stream, &graph);
    if (graph != nullptr) (void)cudaGraphDestroy(graph);
    throw;
  }
  const cudaError_t launched = cudaGetLastError();
  const cudaError_t ended = cudaStreamEndCapture(state_->stream, &graph);
  LaunchGraph out;
  out.state_ = std::make_unique<LaunchGraph::State>();
  cudaError_t made = cudaSuccess;
  if (launched == cudaSuccess && ended == cudaSuccess)
    made = cudaGraphInstantiate(&out.state_->graph, graph, 0);
  if (graph != nullptr) (void)cudaGraphDestroy(graph);
  check(launched, "a launch");
  check(ended, "cudaStreamEndCapture");
  check(made, "cudaGraphInstantiate");
  return out;
}
void Device::replay(const LaunchGraph& graph) {
  check(cudaGraphLaunch(graph.state_->graph, state_->stream), "cudaGraphLaunch");
}

void Device::place(Mark& mark) {
  if (!mark.state_) {
    mark.state_ = std::make_unique<Mark::State>();
    check(cudaEventCreateWithFlags(&mark.state_->event, cudaEventDisableTiming), "cudaEventCreate");
  }
  check(cudaGetLastError(), "a launch");
  check(cudaEventRecord(mark.state_->event, state_->stream), "cudaEventRecord");
}
void Device::wait(const Mark& mark) {
  if (mark.state_) check(cudaEventSynchronize(mark.state_->event), "cudaEventSynchronize");
}
void Device::wait() {
  const cudaError_t launched = cudaGetLastError();
  check(cudaStreamSynchronize(state_->stream), "cudaStreamSynchronize");
  check(launched, "a launch");
}

}  // namespace dovetail::cuda
