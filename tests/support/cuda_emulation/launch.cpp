// The scheduler: gives the threads of a block their turns, lets them meet, and says what stands still.
#include <cuda_emulation/launch.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <random>
#include <utility>

#include "fiber.hpp"

namespace cuda_emulation {
namespace {

constexpr unsigned kWarp = 32, kMaxThreads = 1024;
constexpr size_t kMaxShared = 48 << 10;  // of a block, dynamic and static; more must be asked for
constexpr int kPoison = 0xff;            // NaN, or -1

enum class State { kReady, kAtBlockBarrier, kAtWarp, kDone };

struct Copy {
  void* to;
  const void* from;
  size_t n_bytes;
};

struct Thread {
  Fiber* fiber = nullptr;  // from its first turn to its end
  State state = State::kDone;
  uint3 index{};
  Where where;                             // of the barrier that it waits at
  const Collective* collective = nullptr;  // that it waits in
  std::vector<Copy> copies;                // not yet in a group
  std::deque<std::vector<Copy>> groups;
};

struct AlignedDelete {
  size_t align;
  void operator()(void* p) const { ::operator delete (p, std::align_val_t{align}); }
};
struct SharedArray {
  const void* tag;
  size_t bytes;
  std::unique_ptr<void, AlignedDelete> memory;
};

/// Bits of lanes.
struct Warp {
  uint32_t lanes, waiting, done;  // that there are; in a collective; that left the kernel
};

struct Launch {
  LaunchShape shape{};
  void (*body)(void*) = nullptr;
  void* arg = nullptr;
  unsigned n_threads = 0, current = 0, n_at_barrier = 0, n_done = 0;
  std::array<Warp, kMaxThreads / kWarp> warps{};
  std::vector<SharedArray> shared;
  std::exception_ptr failure;
  std::mt19937 random;
};

// One launch at a time, so that kernels find their block without asking for it.
std::mutex g_mutex;
Launch g_launch;
Schedule g_schedule;
std::vector<std::unique_ptr<Thread>> g_threads;
std::vector<std::unique_ptr<Fiber>> g_fibers;
// The last one is the one that ran last: threads that never wait all run on the same stack.
std::vector<Fiber*> g_free_fibers;

Thread& current() {
  return *g_threads[g_launch.current];
}

std::string text_of(uint3 v) {
  return "(" + std::to_string(v.x) + ", " + std::to_string(v.y) + ", " + std::to_string(v.z) + ")";
}
std::string text_of(const Where& where) {
  const std::string path = where.file_name();
  return path.substr(path.rfind('/') + 1) + ":" + std::to_string(where.line());
}
std::string in_block() {
  return std::string(g_launch.shape.kernel) + ", block " + text_of(current_indices.block);
}

bool same_text(const char* a, const char* b) {
  return a == b || std::strcmp(a, b) == 0;
}
bool same_place(const Where& a, const Where& b) {
  return a.line() == b.line() && same_text(a.file_name(), b.file_name());
}

// "threads 0-31, 40" of numbers in ascending order.
std::string ranges_of(const std::vector<unsigned>& numbers) {
  std::string out = numbers.size() == 1 ? "thread " : "threads ";
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    out += (i == 0 ? "" : ", ") + std::to_string(numbers[i]);
    if (end > i + 1) out += "-" + std::to_string(numbers[end - 1]);
    i = end;
  }
  return out;
}

// Where every thread of the block stands.
std::string standings() {
  std::map<std::string, std::vector<unsigned>> by_place;
  for (unsigned i = 0; i < g_launch.n_threads; ++i) {
    const Thread& t = *g_threads[i];
    std::string place = "can go on";
    if (t.state == State::kDone) place = "left the kernel";
    if (t.state == State::kAtBlockBarrier) place = "in __syncthreads at " + text_of(t.where);
    if (t.state == State::kAtWarp) {
      char mask[16];
      std::snprintf(mask, sizeof mask, "%08x", t.collective->mask);
      place = std::string("in ") + t.collective->name + " with mask " + mask + " at " +
              text_of(t.collective->where);
    }
    by_place[place].push_back(i);
  }
  std::string out;
  for (const auto& [place, numbers] : by_place)
    out += (out.empty() ? "" : "; ") + ranges_of(numbers) + " " + place;
  return out;
}

void thread_entry() {
  try {
    g_launch.body(g_launch.arg);
  } catch (...) {
    g_launch.failure = std::current_exception();
  }
  Thread& t = current();
  t.state = State::kDone;
  ++g_launch.n_done;
  g_launch.warps[g_launch.current / kWarp].done |= 1U << g_launch.current % kWarp;
}

void wait_as(State state) {
  Thread& t = current();
  t.state = state;
  t.fiber->leave();
}

void give_turn(unsigned i) {
  Thread& t = *g_threads[i];
  g_launch.current = i;
  current_indices.thread = t.index;
  if (!t.fiber) {
    if (g_free_fibers.empty()) {
      g_fibers.push_back(std::make_unique<Fiber>());
      g_free_fibers.push_back(g_fibers.back().get());
    }
    t.fiber = g_free_fibers.back();
    g_free_fibers.pop_back();
    t.fiber->start(thread_entry);
  }
  t.fiber->resume();
  if (t.state == State::kDone) g_free_fibers.push_back(std::exchange(t.fiber, nullptr));
}

std::vector<unsigned> order_of(unsigned n) {
  std::vector<unsigned> out(n);
  std::iota(out.begin(), out.end(), 0U);
  if (g_schedule.order == Order::kReverse) std::reverse(out.begin(), out.end());
  if (g_schedule.order == Order::kRandom) std::shuffle(out.begin(), out.end(), g_launch.random);
  return out;
}

void set_index(Thread& t, unsigned i) {
  const dim3& n = g_launch.shape.block;
  t.index = {i % n.x, i / n.x % n.y, i / (n.x * n.y)};
}

void begin_block(unsigned block) {
  const dim3& n = g_launch.shape.grid;
  current_indices.block = {block % n.x, block / n.x % n.y, block / (n.x * n.y)};
  g_launch.n_at_barrier = g_launch.n_done = 0;
  for (unsigned i = 0; i < g_launch.n_threads; i += kWarp) {
    const unsigned n_lanes = std::min(kWarp, g_launch.n_threads - i);
    g_launch.warps[i / kWarp] = {0xffffffffU >> (kWarp - n_lanes), 0, 0};
  }
  for (const SharedArray& a : g_launch.shared) std::memset(a.memory.get(), kPoison, a.bytes);
  for (unsigned i = 0; i < g_launch.n_threads; ++i) {
    Thread& t = *g_threads[i];
    set_index(t, i);
    t.state = State::kReady;
    t.copies.clear();
    t.groups.clear();
    if (t.fiber) g_free_fibers.push_back(std::exchange(t.fiber, nullptr));  // left by a fault
  }
}

void run_block(unsigned block) {
  begin_block(block);
  std::vector<unsigned> order = order_of(g_launch.n_threads);
  while (g_launch.n_done < g_launch.n_threads) {
    bool has_moved = false;
    for (const unsigned i : order) {
      if (g_threads[i]->state != State::kReady) continue;
      has_moved = true;
      give_turn(i);
      if (g_launch.failure) std::rethrow_exception(std::exchange(g_launch.failure, nullptr));
    }
    if (!has_moved) throw Fault(in_block() + ": threads wait for ever: " + standings());
    if (g_schedule.order == Order::kRandom) order = order_of(g_launch.n_threads);
  }
}

SharedArray make_shared_array(const void* tag, size_t bytes, size_t align) {
  SharedArray out{tag, bytes, {::operator new (bytes, std::align_val_t{align}), {align}}};
  std::memset(out.memory.get(), kPoison, bytes);
  return out;
}

size_t n_shared_bytes() {
  size_t sum = 0;
  for (const SharedArray& a : g_launch.shared) sum += a.bytes;
  return sum;
}
void check_shared(const std::string& who, size_t n_bytes) {
  if (n_bytes > kMaxShared)
    throw Fault(who + ": " + std::to_string(n_bytes) +
                " bytes of shared memory, expected at most " + std::to_string(kMaxShared));
}

}  // namespace

Indices current_indices;

const std::vector<Schedule>& all_schedules() {
  static const std::vector<Schedule> schedules = {
      {Order::kForward, 0}, {Order::kReverse, 0}, {Order::kRandom, 1}, {Order::kRandom, 2}};
  return schedules;
}
std::string name_of(const Schedule& schedule) {
  if (schedule.order == Order::kForward) return "forward";
  if (schedule.order == Order::kReverse) return "reverse";
  return "random " + std::to_string(schedule.seed);
}
void set_schedule(const Schedule& schedule) {
  const std::lock_guard lock(g_mutex);
  g_schedule = schedule;
}

void run_grid(const LaunchShape& shape, void (*body)(void*), void* arg) {
  const std::lock_guard lock(g_mutex);
  const uint64_t n_threads = uint64_t{shape.block.x} * shape.block.y * shape.block.z;
  const uint64_t n_blocks = uint64_t{shape.grid.x} * shape.grid.y * shape.grid.z;
  const std::string kernel = shape.kernel;
  if (n_threads == 0 || n_threads > kMaxThreads || shape.block.z > 64)
    throw Fault(kernel + ": " + std::to_string(n_threads) + " threads in a block, expected 1 to " +
                std::to_string(kMaxThreads));
  if (n_blocks == 0 || shape.grid.x > 0x7fffffffU || shape.grid.y > 65535 || shape.grid.z > 65535)
    throw Fault(kernel + ": a grid of " + text_of({shape.grid.x, shape.grid.y, shape.grid.z}) +
                ", expected at least 1 and at most 65535 in y and z");
  check_shared(kernel, shape.shared_bytes);
  g_launch.shape = shape;
  g_launch.body = body;
  g_launch.arg = arg;
  g_launch.n_threads = static_cast<unsigned>(n_threads);
  current_indices = {{}, {}, shape.block, shape.grid};
  g_launch.random.seed(g_schedule.seed);
  g_launch.failure = nullptr;
  g_launch.shared.clear();
  if (shape.shared_bytes > 0)
    g_launch.shared.push_back(make_shared_array(nullptr, shape.shared_bytes, 128));
  while (g_threads.size() < n_threads) g_threads.push_back(std::make_unique<Thread>());
  for (const unsigned block : order_of(static_cast<unsigned>(n_blocks))) run_block(block);
  g_launch.shared.clear();
}

void fault(const std::string& what, const Where& where) {
  throw Fault(in_block() + ", thread " + text_of(current().index) + ", " + text_of(where) + ": " +
              what);
}

void* shared_array(const void* tag, size_t bytes, size_t align) {
  for (SharedArray& a : g_launch.shared)
    if (a.tag == tag) return a.memory.get();
  check_shared(in_block(), n_shared_bytes() + bytes);
  g_launch.shared.push_back(make_shared_array(tag, bytes, align));
  return g_launch.shared.back().memory.get();
}
void* dynamic_shared_array() {
  if (g_launch.shared.empty() || g_launch.shared[0].tag)
    throw Fault(in_block() + ": the launch gave no dynamic shared memory");
  return g_launch.shared[0].memory.get();
}

void meet_block(const Where& where) {
  current().where = where;
  if (g_launch.n_at_barrier > 0)
    for (unsigned i = 0; i < g_launch.n_threads; ++i) {
      const Thread& t = *g_threads[i];
      if (t.state != State::kAtBlockBarrier) continue;
      if (same_place(t.where, where)) break;
      current().state = State::kAtBlockBarrier;
      throw Fault(in_block() + ": threads diverged at a barrier: " + standings());
    }
  if (++g_launch.n_at_barrier < g_launch.n_threads) return wait_as(State::kAtBlockBarrier);
  g_launch.n_at_barrier = 0;
  for (unsigned i = 0; i < g_launch.n_threads; ++i)
    if (g_threads[i]->state == State::kAtBlockBarrier) g_threads[i]->state = State::kReady;
}

void meet_warp(const Collective& c) {
  const unsigned first = g_launch.current / kWarp * kWarp, lane = g_launch.current - first;
  Warp& warp = g_launch.warps[first / kWarp];
  const uint32_t others = c.mask & ~(1U << lane);
  if (!(c.mask >> lane & 1U))
    fault(std::string(c.name) + " with a mask that leaves out its own lane", c.where);
  if (others & ~warp.lanes)
    fault(std::string(c.name) + " names lane " +
              std::to_string(std::countr_zero(others & ~warp.lanes)) + ", which the block lacks",
          c.where);
  if (others & warp.done)
    fault(std::string(c.name) + " names lane " +
              std::to_string(std::countr_zero(others & warp.done)) + ", which left the kernel",
          c.where);
  current().collective = &c;
  const auto check_same = [&](unsigned other_lane) {
    const Collective& other = *g_threads[first + other_lane]->collective;
    const bool is_same =
        other.mask == c.mask && same_place(other.where, c.where) && same_text(other.name, c.name);
    // Else it may yet come, when what it waits for has gone on.
    if (is_same || !(other.mask >> lane & 1U)) return is_same;
    current().state = State::kAtWarp;
    throw Fault(in_block() + ": lanes diverged: " + standings());
  };
  const uint32_t waiting = others & warp.waiting;
  bool all_here = waiting == others;
  if (!all_here && waiting != 0) (void)check_same(static_cast<unsigned>(std::countr_zero(waiting)));
  std::array<void*, kWarp> data{};
  data[lane] = c.data;
  for (uint32_t rest = all_here ? others : 0; rest != 0; rest &= rest - 1) {
    const auto i = static_cast<unsigned>(std::countr_zero(rest));
    all_here = check_same(i) && all_here;
    data[i] = g_threads[first + i]->collective->data;
  }
  if (!all_here) {
    warp.waiting |= 1U << lane;
    return wait_as(State::kAtWarp);
  }
  if (c.apply) c.apply(data.data(), c.mask);
  warp.waiting &= ~c.mask;
  for (uint32_t rest = others; rest != 0; rest &= rest - 1)
    g_threads[first + static_cast<unsigned>(std::countr_zero(rest))]->state = State::kReady;
}

void copy_later(void* to, const void* from, size_t n_bytes) {
  current().copies.push_back({to, from, n_bytes});
}
void commit_copies() {
  current().groups.push_back(std::exchange(current().copies, {}));
}
void finish_copies(int n_left) {
  auto& groups = current().groups;
  for (; groups.size() > static_cast<size_t>(n_left); groups.pop_front())
    for (const Copy& c : groups.front()) std::memcpy(c.to, c.from, c.n_bytes);
}

}  // namespace cuda_emulation
