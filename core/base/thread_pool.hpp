// ThreadPool: the one pool of threads in the process; plugins reach it through the host table.
//
// A lane is a number 0 .. n_lanes-1; the caller of a job is lane 0 of it. Threads wait in the kernel
// while there is no work; inside a job they spin for a short, bounded time before they do.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace dovetail::core {

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): what lanes write lies on lines apart
class ThreadPool {
 public:
  using RangeFn = void (*)(void* arg, uint64_t begin, uint64_t end, uint32_t lane) noexcept;
  using TeamFn = void (*)(void* arg, uint32_t lane, uint32_t n_lanes) noexcept;

  /// Starts n_lanes - 1 threads; fewer where the system refuses more. With `cpus`, one for each lane
  /// or more, lane i stays on processor cpus[i]; lane 0 does not: it is the caller's thread, whose
  /// affinity is the caller's own. With fewer processors than lanes nothing is pinned.
  explicit ThreadPool(uint32_t n_lanes = default_lanes(), std::vector<int> cpus = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  uint32_t n_lanes() const { return n_lanes_; }

  /// Covers [0, n) with pieces of at most `grain` (0 means 1), each given to whichever lane is free.
  /// Returns when all are done.
  ///
  /// threads  any. While another job runs, the caller works through pieces by itself as lane 0 and
  ///          takes the pool in when it is free. Called from inside a job, it stays on that lane.
  void parallel_for(uint64_t n, uint64_t grain, RangeFn fn, void* arg);

  /// Calls fn once per lane, all at the same time. Returns when all are done.
  ///
  /// threads  any; a second caller waits. Called from inside a job, fn runs as a team of one.
  void team_run(TeamFn fn, void* arg);

  /// All lanes of the team meet; what one wrote before, all see after. Inside team_run's fn only.
  void team_barrier();

  // The same with any callable; it must not throw.
  template <class Fn>
  void parallel_for(uint64_t n, uint64_t grain, Fn&& fn) {
    parallel_for(
        n, grain,
        [](void* arg, uint64_t begin, uint64_t end, uint32_t lane) noexcept {
          (*static_cast<std::remove_reference_t<Fn>*>(arg))(begin, end, lane);
        },
        const_cast<void*>(static_cast<const void*>(&fn)));
  }
  template <class Fn>
  void team_run(Fn&& fn) {
    team_run(
        [](void* arg, uint32_t lane, uint32_t n_lanes) noexcept {
          (*static_cast<std::remove_reference_t<Fn>*>(arg))(lane, n_lanes);
        },
        const_cast<void*>(static_cast<const void*>(&fn)));
  }

  /// The processors that this process may use: those of its affinity mask, but no more than the
  /// control groups' CPU quota, rounded up; at least 1.
  static uint32_t default_lanes();

 private:
  struct Job {
    TeamFn fn = nullptr;
    void* arg = nullptr;
  };
  void worker(uint32_t lane);
  void run_job(TeamFn fn, void* arg);
  void wait_while(const std::atomic<uint32_t>& word, uint32_t value) const;

  std::vector<std::thread> threads_;
  uint32_t n_lanes_ = 1;
  std::vector<int> cpus_;             // by lane; empty: the system places the threads
  std::chrono::nanoseconds spin_{0};  // a lane watches a word for as long before it sleeps on it
  std::mutex one_job_;
  Job job_;

  // Each on its own cache line: they are written by different lanes.
  alignas(64) std::atomic<uint32_t> job_number_{0};  // kStop ends the threads
  alignas(64) std::atomic<uint32_t> n_running_{0};   // lanes of the job, besides the caller's
  alignas(64) std::atomic<uint32_t> n_arrived_{0};   // at the barrier
  alignas(64) std::atomic<uint32_t> phase_{0};       // of the barrier
  alignas(64) std::atomic<bool> stop_{false};
};

}  // namespace dovetail::core
