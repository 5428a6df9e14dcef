// The pool's protocol: publish a job by its number, count lanes down, meet at a barrier.
//
// Sequentially consistent stores before notify: the waiter counts itself in before it looks at the
// word again, so one of the two always sees the other.
#include "core/base/thread_pool.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <system_error>

#include "core/base/assert.hpp"
#include "core/base/cgroup.hpp"
#include "core/base/cpus.hpp"
#include "core/base/signals_blocked.hpp"

namespace dovetail::core {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

constexpr nanoseconds kSpin{50'000};      // longer than an op, shorter than a scheduling tick
constexpr nanoseconds kShortSpin{2'000};  // where spinning did not pay
constexpr int kLooksPerClock = 16;        // a pause takes 10 to 60 ns, the clock about as long

// What the current thread is doing for a pool.
struct Place {
  const ThreadPool* pool = nullptr;
  uint32_t lane = 0;
  bool alone = false;  // a team of one inside a job: its barrier has nobody to wait for
};
thread_local Place t_place;

// Spinning pays while the other lanes run. When the scheduler puts two lanes on one core, because
// other programs keep the rest busy, it only keeps the other lane from arriving: so each thread
// learns from its last waits, and looks again now and then.
struct SpinBudget {
  nanoseconds spin = kSpin;
  uint32_t n_waits = 0;

  nanoseconds next(nanoseconds most) { return std::min(most, ++n_waits % 64 == 0 ? kSpin : spin); }
  void learn(bool paid) {
    spin = paid ? std::min(kSpin, spin * 2) : std::max(kShortSpin, spin / 2);
  }
};
thread_local SpinBudget t_spin_budget;

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

// Without effect where the system refuses: the lane then runs where it may.
void pin_this_thread(int cpu) {
  cpu_set_t* mask = CPU_ALLOC(cpu + 1);
  if (mask == nullptr) return;
  const size_t n_bytes = CPU_ALLOC_SIZE(cpu + 1);
  CPU_ZERO_S(n_bytes, mask);
  CPU_SET_S(cpu, n_bytes, mask);
  (void)sched_setaffinity(0, n_bytes, mask);
  CPU_FREE(mask);
}

}  // namespace

ThreadPool::ThreadPool(uint32_t n_lanes, std::vector<int> cpus) : cpus_(std::move(cpus)) {
  const uint32_t wanted = std::max(1u, n_lanes);
  if (cpus_.size() < wanted) cpus_.clear();
  const SignalsBlocked blocked;
  threads_.reserve(wanted - 1);
  try {
    for (uint32_t lane = 1; lane < wanted; ++lane)
      threads_.emplace_back([this, lane] { worker(lane); });
  } catch (const std::system_error&) {
    // A limit on threads: the lanes there are do all the work.
  }
  n_lanes_ = static_cast<uint32_t>(threads_.size()) + 1;
  spin_ = n_lanes_ <= allowed_cpus().size() ? kSpin : nanoseconds{0};
  // Threads read n_lanes_ and spin_ only after the first job is published.
}

ThreadPool::~ThreadPool() {
  stop_.store(true);
  job_number_.fetch_add(1);
  job_number_.notify_all();
  for (std::thread& t : threads_) t.join();
}

void ThreadPool::wait_while(const std::atomic<uint32_t>& word, uint32_t value) const {
  const Clock::time_point end = Clock::now() + t_spin_budget.next(spin_);
  do {
    for (int i = 0; i < kLooksPerClock; ++i) {
      if (word.load(std::memory_order_acquire) != value) {
        t_spin_budget.learn(true);
        return;
      }
      relax();
    }
  } while (Clock::now() < end);
  t_spin_budget.learn(false);
  word.wait(value);
}

void ThreadPool::worker(uint32_t lane) {
  pthread_setname_np(pthread_self(), ("dvt-lane-" + std::to_string(lane)).c_str());
  if (!cpus_.empty()) pin_this_thread(cpus_[lane]);
  t_place = {this, lane, false};
  uint32_t seen = 0;
  job_number_.wait(seen);
  while (!stop_.load()) {
    ++seen;
    job_.fn(job_.arg, lane, n_lanes_);
    if (n_running_.fetch_sub(1) == 1) n_running_.notify_one();
    wait_while(job_number_, seen);
  }
}

void ThreadPool::run_job(TeamFn fn, void* arg) {
  job_ = {fn, arg};
  n_running_.store(n_lanes_ - 1, std::memory_order_relaxed);
  job_number_.fetch_add(1);
  job_number_.notify_all();
  t_place = {this, 0, false};
  fn(arg, 0, n_lanes_);
  t_place = {};
  for (uint32_t left; (left = n_running_.load(std::memory_order_acquire)) != 0;)
    wait_while(n_running_, left);
}

void ThreadPool::team_run(TeamFn fn, void* arg) {
  const Place before = t_place;
  if (before.pool == this) {
    t_place.alone = true;
    fn(arg, 0, 1);
    t_place = before;
    return;
  }
  const std::lock_guard lock(one_job_);
  run_job(fn, arg);
  t_place = before;  // another pool's lane may have called
}

void ThreadPool::team_barrier() {
  DVT_ASSERT(t_place.pool == this);
  if (t_place.alone || n_lanes_ == 1) return;
  const uint32_t phase = phase_.load(std::memory_order_relaxed);
  if (n_arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == n_lanes_) {
    n_arrived_.store(0, std::memory_order_relaxed);
    phase_.store(phase + 1);
    phase_.notify_all();
    return;
  }
  wait_while(phase_, phase);
}

void ThreadPool::parallel_for(uint64_t n, uint64_t grain, RangeFn fn, void* arg) {
  if (n == 0) return;
  grain = std::max<uint64_t>(grain, 1);
  const bool nested = t_place.pool == this;
  const uint32_t own_lane = nested ? t_place.lane : 0;
  uint64_t done = 0;
  const auto take_piece = [&] {
    const uint64_t end = n - done <= grain ? n : done + grain;
    fn(arg, done, end, own_lane);
    done = end;
  };

  std::unique_lock lock(one_job_, std::defer_lock);
  while (done < n && (nested || n - done <= grain || n_lanes_ == 1 || !lock.try_lock()))
    take_piece();
  if (done == n) return;

  struct Range {
    std::atomic<uint64_t> next;
    uint64_t n, grain;
    RangeFn fn;
    void* arg;
  } range{{done}, n, grain, fn, arg};
  const Place before = t_place;
  run_job(
      [](void* p, uint32_t lane, uint32_t) noexcept {
        Range& r = *static_cast<Range*>(p);
        for (uint64_t begin = r.next.load(std::memory_order_relaxed); begin < r.n;) {
          const uint64_t end = r.n - begin <= r.grain ? r.n : begin + r.grain;
          if (!r.next.compare_exchange_weak(begin, end, std::memory_order_relaxed)) continue;
          r.fn(r.arg, begin, end, lane);
          begin = r.next.load(std::memory_order_relaxed);
        }
      },
      &range);
  t_place = before;
}

uint32_t ThreadPool::default_lanes() {
  const auto n_cpus = static_cast<double>(allowed_cpus().size());
  const double quota = cpu_quota(ControlGroups::of_this_process());
  return static_cast<uint32_t>(std::clamp(std::ceil(quota), 1.0, n_cpus));
}

}  // namespace dovetail::core
