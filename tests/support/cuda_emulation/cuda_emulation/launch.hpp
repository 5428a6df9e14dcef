// Launches a CUDA kernel that was compiled for the CPU: its threads run by turns, as fibers, from one point
// where threads meet to the next.
//
// Blocks run one after another. What is found on the way is a Fault: threads that wait for others that
// never come, barriers that not all threads reach, misaligned vectors, too much shared memory. Shared memory
// is poisoned before each block; each array of it is memory of its own, so that AddressSanitizer finds
// what lies outside. A missing barrier shows as a result that changes with the order of threads: run a
// kernel under every order of all_schedules().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cuda_emulation/types.hpp>

/// What launches go to. Null stands for a stream that runs each at once.
struct CUstream_st {
  CUstream_st() = default;
  virtual ~CUstream_st() = default;
  CUstream_st(const CUstream_st&) = delete;
  CUstream_st& operator=(const CUstream_st&) = delete;

  /// Runs it when its turn comes, as often as it likes: the launch has its arguments with it.
  virtual void add_launch(const char* kernel, std::function<void()> launch) = 0;
};

namespace cuda_emulation {

/// In which order threads, and blocks, get their turns.
enum class Order { kForward, kReverse, kRandom };
struct Schedule {
  Order order = Order::kForward;
  uint32_t seed = 0;  // of kRandom
};
/// Forward, reverse and some random ones.
const std::vector<Schedule>& all_schedules();
/// For a test's trace.
std::string name_of(const Schedule& schedule);
/// Of the launches that follow.
void set_schedule(const Schedule& schedule);

/// What is wrong with a kernel: its name, block, threads and lines.
class Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What one launch asks for.
struct LaunchShape {
  const char* kernel;
  dim3 grid, block;
  size_t shared_bytes = 0;  // of dynamic shared memory
};
/// Calls body(arg) as every thread of every block.
///
/// threads   one launch at a time, whoever launches.
/// errors    throws Fault.
void run_grid(const LaunchShape& shape, void (*body)(void*), void* arg);

/// kernel<<<grid, block, shared_bytes, stream>>>(args...)
template <class... Params, class... Args>
void launch(CUstream_st* stream, const LaunchShape& shape, void (*kernel)(Params...),
            Args&&... args) {
  struct Job {
    void (*kernel)(Params...);
    std::tuple<std::remove_cv_t<Params>...> params;
  };
  auto run = [shape, job = Job{kernel, {static_cast<Params>(args)...}}]() mutable {
    run_grid(
        shape,
        [](void* arg) {
          const Job& j = *static_cast<Job*>(arg);
          std::apply(j.kernel, j.params);
        },
        &job);
  };
  if (stream == nullptr)
    run();
  else
    stream->add_launch(shape.kernel, std::move(run));
}

// ---------------------------------------------------------------- for the device's side

using Where = std::source_location;

/// The thread that runs, its block and its launch.
struct Indices {
  uint3 thread, block;
  dim3 n_threads, n_blocks;
};
extern Indices current_indices;

/// Stops the launch: throws Fault with the kernel, the block and the thread before what.
[[noreturn]] void fault(const std::string& what, const Where& where);

/// A block's memory for one array of shared memory: the same for all its threads. `tag` names the array.
void* shared_array(const void* tag, size_t bytes, size_t align);
void* dynamic_shared_array();

/// All threads of the block meet.
void meet_block(const Where& where);

/// What the lanes of a warp do together: when all lanes of the mask are here, apply gets what each of them
/// brought, and then all go on.
struct Collective {
  const char* name;
  uint32_t mask;
  Where where;
  void (*apply)(void* const data[32], uint32_t mask);
  void* data;
};
void meet_warp(const Collective& collective);

/// Copies to shared memory under way, of this thread.
void copy_later(void* to, const void* from, size_t n_bytes);
void commit_copies();
/// Finishes all groups of copies but the last n_left.
void finish_copies(int n_left);

}  // namespace cuda_emulation
