// Machine over the CUDA runtime, which is linked in and looks for the driver when it is first called.
#include <cuda_runtime_api.h>

#include <algorithm>

#include "tools/gpu_check/machine.hpp"

namespace dovetail::gpu_check {
namespace {

std::string text_of(cudaError_t error) {
  return std::string(cudaGetErrorString(error)) + " (" + cudaGetErrorName(error) + ")";
}
void check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  (void)cudaGetLastError();  // else the next call would report it again
  if (error == cudaErrorMemoryAllocation) throw OutOfMemory(std::string(call) + ": out of memory");
  throw MachineError(std::string(call) + ": " + text_of(error));
}
std::string version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

}  // namespace

struct Recording::State {
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (graph != nullptr) (void)cudaGraphExecDestroy(graph);
  }
  cudaGraphExec_t graph = nullptr;
};
Recording::Recording() = default;
Recording::~Recording() = default;
Recording::Recording(Recording&&) noexcept = default;
Recording& Recording::operator=(Recording&&) noexcept = default;

struct Machine::State {
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;

  void make() {
    check(cudaSetDevice(0), "cudaSetDevice");
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaEventCreate(&begin), "cudaEventCreate");
    check(cudaEventCreate(&end), "cudaEventCreate");
  }
};

std::unique_ptr<Machine> Machine::open(std::string& why_none) {
  int n = 0;
  const cudaError_t error = cudaGetDeviceCount(&n);
  if (error == cudaErrorInsufficientDriver || error == cudaErrorStubLibrary) {
    int driver = 0;
    (void)cudaDriverGetVersion(&driver);
    why_none = driver == 0 ? "there is no NVIDIA driver (libcuda.so.1)"
                           : "the NVIDIA driver speaks CUDA " + version(driver) + ", expected " +
                                 version(CUDART_VERSION) + " or newer";
    return nullptr;
  }
  if (error != cudaSuccess || n == 0) {
    why_none =
        "there is no CUDA device: " + text_of(error == cudaSuccess ? cudaErrorNoDevice : error);
    return nullptr;
  }
  std::unique_ptr<Machine> out(new Machine);
  out->state_->make();
  return out;
}
Machine::Machine() : state_(std::make_unique<State>()) {}
Machine::~Machine() {
  if (state_->stream != nullptr) (void)cudaStreamDestroy(state_->stream);
}

MachineInfo Machine::info() const {
  cudaDeviceProp p{};
  check(cudaGetDeviceProperties(&p, 0), "cudaGetDeviceProperties");
  int driver = 0, clock_khz = 0, memory_khz = 0;
  size_t free = 0, total = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  (void)cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, 0);
  (void)cudaDeviceGetAttribute(&memory_khz, cudaDevAttrMemoryClockRate, 0);
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  MachineInfo out;
  out.name = std::string(p.name) + ", sm_" + std::to_string(p.major) + std::to_string(p.minor);
  out.driver = version(driver);
  out.runtime = version(CUDART_VERSION);
  out.n_multiprocessors = p.multiProcessorCount;
  out.clock_mhz = clock_khz / 1000;
  out.memory_clock_mhz = memory_khz / 1000;
  out.total_bytes = static_cast<int64_t>(total);
  out.free_bytes = static_cast<int64_t>(free);
  out.l2_bytes = p.l2CacheSize;
  return out;
}
kernels::cuda::Stream Machine::stream() const {
  return state_->stream;
}

void* Machine::allocate(int64_t n_bytes) {
  void* p = nullptr;
  const auto size = static_cast<size_t>(std::max<int64_t>(n_bytes, 1));
  check(cudaMalloc(&p, size), "cudaMalloc");
  check(cudaMemsetAsync(p, 0xFF, size, state_->stream), "cudaMemset");
  return p;
}
void Machine::release(void* p) noexcept {
  (void)cudaFree(p);
}
void Machine::copy_in(void* to, const void* host, int64_t n_bytes) {
  check(cudaMemcpyAsync(to, host, static_cast<size_t>(n_bytes), cudaMemcpyHostToDevice,
                        state_->stream),
        "cudaMemcpy");
  wait();
}
void Machine::copy_out(void* host, const void* from, int64_t n_bytes) {
  check(cudaMemcpyAsync(host, from, static_cast<size_t>(n_bytes), cudaMemcpyDeviceToHost,
                        state_->stream),
        "cudaMemcpy");
  wait();
}
void Machine::copy(void* to, const void* from, int64_t n_bytes) {
  check(cudaMemcpyAsync(to, from, static_cast<size_t>(n_bytes), cudaMemcpyDeviceToDevice,
                        state_->stream),
        "cudaMemcpy");
}
void Machine::zero(void* p, int64_t n_bytes) {
  check(cudaMemsetAsync(p, 0, static_cast<size_t>(n_bytes), state_->stream), "cudaMemset");
}

Recording Machine::record(const std::function<void()>& launches) {
  check(cudaGetLastError(), "a launch");
  cudaGraph_t graph = nullptr;
  check(cudaStreamBeginCapture(state_->stream, cudaStreamCaptureModeRelaxed),
        "cudaStreamBeginCapture");
  launches();
  const cudaError_t launched = cudaGetLastError();
  const cudaError_t ended = cudaStreamEndCapture(state_->stream, &graph);
  Recording out;
  out.state_ = std::make_unique<Recording::State>();
  cudaError_t made = cudaSuccess;
  if (launched == cudaSuccess && ended == cudaSuccess)
    made = cudaGraphInstantiate(&out.state_->graph, graph, 0);
  if (graph != nullptr) (void)cudaGraphDestroy(graph);
  check(launched, "a launch");
  check(ended, "cudaStreamEndCapture");
  check(made, "cudaGraphInstantiate");
  return out;
}
void Machine::replay(const Recording& recording) {
  check(cudaGraphLaunch(recording.state_->graph, state_->stream), "cudaGraphLaunch");
}
double Machine::microseconds_of(const std::function<void()>& work) {
  check(cudaEventRecord(state_->begin, state_->stream), "cudaEventRecord");
  work();
  check(cudaEventRecord(state_->end, state_->stream), "cudaEventRecord");
  wait();
  float ms = 0;
  check(cudaEventElapsedTime(&ms, state_->begin, state_->end), "cudaEventElapsedTime");
  return static_cast<double>(ms) * 1e3;
}
void Machine::wait() {
  const cudaError_t launched = cudaGetLastError();
  const cudaError_t ran = cudaStreamSynchronize(state_->stream);
  check(ran, "a kernel");
  check(launched, "a launch");
}
bool Machine::reset() {
  (void)cudaDeviceReset();
  (void)cudaGetLastError();
  try {
    state_->make();
    wait();
    return true;
  } catch (const MachineError&) {
    return false;
  }
}

}  // namespace dovetail::gpu_check
