// The pool under load: every index once, lanes at the same time, barriers that order memory.
#include "core/base/thread_pool.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "core/base/cpus.hpp"

namespace dovetail::core {
namespace {

using namespace std::chrono_literals;

TEST(ThreadPool, CoversEveryIndexOnceForAnyGrain) {
  ThreadPool pool(3);
  for (const uint64_t n : {0, 1, 2, 7, 64, 1000}) {
    for (const uint64_t grain : {0, 1, 3, 64, 5000}) {
      std::vector<std::atomic<int>> hits(n);
      std::atomic<bool> in_range{true};
      pool.parallel_for(n, grain, [&](uint64_t begin, uint64_t end, uint32_t lane) {
        if (lane >= 3 || begin >= end || end - begin > std::max<uint64_t>(grain, 1))
          in_range = false;
        for (uint64_t i = begin; i < end; ++i) ++hits[i];
      });
      EXPECT_TRUE(in_range);
      for (uint64_t i = 0; i < n; ++i)
        EXPECT_EQ(hits[i], 1) << "index " << i << " of " << n << ", grain " << grain;
    }
  }
}

TEST(ThreadPool, PiecesNearTheTopOfTheRangeDoNotWrap) {
  ThreadPool pool(2);
  std::atomic<uint64_t> covered{0};
  pool.parallel_for(UINT64_MAX, UINT64_MAX / 2 + 5,
                    [&](uint64_t begin, uint64_t end, uint32_t) { covered += end - begin; });
  EXPECT_EQ(covered, UINT64_MAX);
}

TEST(ThreadPool, TeamRunsEveryLaneOnceAndAtTheSameTime) {
  ThreadPool pool(4);
  for (int round = 0; round < 50; ++round) {
    std::vector<int> calls(4);
    std::atomic<int> n_inside{0};
    pool.team_run([&](uint32_t lane, uint32_t n_lanes) {
      ++calls[lane];
      ++n_inside;
      while (n_inside != static_cast<int>(n_lanes))
        std::this_thread::yield();  // ends only if all are here
    });
    EXPECT_EQ(calls, std::vector<int>(4, 1));
  }
}

TEST(ThreadPool, BarrierShowsEachLaneWhatTheOthersWroteBefore) {
  for (const uint32_t n_lanes : {1u, 2u, 3u, 8u}) {
    ThreadPool pool(n_lanes);
    std::vector<uint64_t> value(n_lanes, 1);
    std::vector<uint64_t> next(n_lanes);
    pool.team_run([&](uint32_t lane, uint32_t n) {
      for (int round = 0; round < 200; ++round) {
        uint64_t sum = lane;
        for (uint32_t i = 0; i < n; ++i) sum += value[i];
        next[lane] = sum;
        pool.team_barrier();
        value[lane] = next[lane] % 1000003;
        pool.team_barrier();
      }
    });
    std::vector<uint64_t> expected(n_lanes, 1);
    for (int round = 0; round < 200; ++round) {
      uint64_t sum = 0;
      for (const uint64_t v : expected) sum += v;
      for (uint32_t i = 0; i < n_lanes; ++i) expected[i] = (sum + i) % 1000003;
    }
    EXPECT_EQ(value, expected) << n_lanes << " lanes";
  }
}

TEST(ThreadPool, ManyMoreLanesThanCoresMakeProgress) {
  ThreadPool pool(32);
  std::atomic<uint64_t> meetings{0};
  pool.team_run([&](uint32_t, uint32_t) {
    for (int i = 0; i < 20; ++i) {
      ++meetings;
      pool.team_barrier();
    }
  });
  EXPECT_EQ(meetings, 32u * 20);
}

TEST(ThreadPool, CallersOfTeamRunTakeTurns) {
  ThreadPool pool(2);
  std::atomic<int> n_teams{0};
  std::atomic<bool> overlapped{false};
  std::vector<std::thread> callers;
  std::atomic<int> n_runs{0};
  for (int c = 0; c < 3; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        pool.team_run([&](uint32_t lane, uint32_t) {
          if (lane == 0 && ++n_teams != 1) overlapped = true;
          pool.team_barrier();
          if (lane == 0) {
            ++n_runs;
            --n_teams;
          }
        });
      }
    });
  }
  for (std::thread& t : callers) t.join();
  EXPECT_FALSE(overlapped);
  EXPECT_EQ(n_runs, 300);
}

TEST(ThreadPool, ParallelForGoesOnWhileATeamRuns) {
  ThreadPool pool(2);
  std::atomic<bool> inside{false}, release{false};
  std::thread team([&] {
    pool.team_run([&](uint32_t, uint32_t) {
      inside = true;
      while (!release) std::this_thread::yield();
    });
  });
  while (!inside) std::this_thread::yield();
  std::atomic<uint64_t> sum{0};
  pool.parallel_for(100, 10, [&](uint64_t begin, uint64_t end, uint32_t lane) {
    EXPECT_EQ(lane, 0u);
    for (uint64_t i = begin; i < end; ++i) sum += i;
  });
  EXPECT_EQ(sum, 4950u);
  release = true;
  team.join();
}

TEST(ThreadPool, JobsInsideJobsStayOnTheirLane) {
  ThreadPool pool(2);
  std::atomic<uint64_t> sum{0};
  std::atomic<int> n_wrong{0};
  pool.team_run([&](uint32_t lane, uint32_t) {
    pool.parallel_for(10, 3, [&](uint64_t begin, uint64_t end, uint32_t inner) {
      if (inner != lane) ++n_wrong;
      for (uint64_t i = begin; i < end; ++i) sum += i;
    });
    pool.team_run([&](uint32_t inner, uint32_t n) {
      if (inner != 0 || n != 1) ++n_wrong;
      pool.team_barrier();  // of a team of one
    });
    pool.team_barrier();
  });
  EXPECT_EQ(sum, 90u);
  EXPECT_EQ(n_wrong, 0);
}

TEST(ThreadPool, NamesItsThreads) {
  ThreadPool pool(2);
  char name[16] = {};
  pool.team_run([&](uint32_t lane, uint32_t) {
    if (lane == 1) pthread_getname_np(pthread_self(), name, sizeof name);
  });
  EXPECT_STREQ(name, "dvt-lane-1");
}

std::chrono::microseconds cpu_time() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return std::chrono::seconds(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         std::chrono::microseconds(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

TEST(ThreadPool, SleepsWhileThereIsNoWork) {
  ThreadPool pool(2);
  pool.team_run([&](uint32_t, uint32_t) { pool.team_barrier(); });
  pool.parallel_for(64, 1, [](uint64_t, uint64_t, uint32_t) {});
  std::this_thread::sleep_for(20ms);  // past the bounded spin
  const auto before = cpu_time();
  std::this_thread::sleep_for(300ms);
  EXPECT_LT(cpu_time() - before, 100ms) << "a lane that spins uses 300";
}

// A lane that waits long sleeps: it does not spin through the 300 ms that the other is late.
TEST(ThreadPool, SleepsAtABarrierThatOneLaneIsLateFor) {
  ThreadPool pool(2);
  const auto before = cpu_time();
  pool.team_run([&](uint32_t lane, uint32_t) {
    if (lane == 0) std::this_thread::sleep_for(300ms);  // the other's thread has learnt nothing yet
    pool.team_barrier();
  });
  EXPECT_LT(cpu_time() - before, 100ms) << "a lane that spins uses 300";
}

void allow_this_thread(const std::vector<int>& cpus) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int cpu : cpus) CPU_SET(cpu, &mask);
  ASSERT_EQ(sched_setaffinity(0, sizeof mask, &mask), 0);
}

// The lanes were to have a processor each, and then all get one: whoever spins keeps another from
// arriving. A lane that did so for the whole of its time at each meeting would use 50 us of it.
TEST(ThreadPool, LanesThatShareAProcessorLearnNotToSpin) {
  constexpr int kMeetings = 4000;
  const std::vector<int> cpus = allowed_cpus();
  if (cpus.size() < 2) GTEST_SKIP() << "needs two processors";
  std::thread([&] {  // whose affinity may change
    ThreadPool pool(2);
    pool.team_run([&](uint32_t, uint32_t) { allow_this_thread({cpus[0]}); });
    const auto before = cpu_time();
    pool.team_run([&](uint32_t, uint32_t) {
      for (int i = 0; i < kMeetings; ++i) pool.team_barrier();
    });
    EXPECT_LT(cpu_time() - before, kMeetings * 40us);
  })
      .join();
}

TEST(ThreadPool, PinsEachLaneButTheCallersToItsProcessor) {
  const std::vector<int> cpus = allowed_cpus();
  if (cpus.size() < 2) GTEST_SKIP() << "needs two processors";
  const std::vector<int> backwards(cpus.rbegin(), cpus.rend());
  ThreadPool pool(2, backwards);
  std::vector<std::vector<int>> of_lane(2);
  pool.team_run([&](uint32_t lane, uint32_t) { of_lane[lane] = allowed_cpus(); });
  EXPECT_EQ(of_lane[0], cpus) << "the caller's own";
  EXPECT_EQ(of_lane[1], std::vector<int>{backwards[1]});
  EXPECT_EQ(allowed_cpus(), cpus);
}

TEST(ThreadPool, PinsNothingWithFewerProcessorsThanLanes) {
  const std::vector<int> cpus = allowed_cpus();
  ThreadPool pool(static_cast<uint32_t>(cpus.size()) + 1, cpus);
  std::atomic<int> n_pinned{0};
  pool.team_run([&](uint32_t, uint32_t) { n_pinned += allowed_cpus() == cpus ? 0 : 1; });
  EXPECT_EQ(n_pinned, 0);
}

TEST(ThreadPool, ALaneThatCannotBePinnedWorksWhereItMay) {
  ThreadPool pool(2, {100000, 100001});
  std::atomic<int> n_calls{0};
  pool.team_run([&](uint32_t, uint32_t) { n_calls += allowed_cpus().empty() ? 0 : 1; });
  EXPECT_EQ(n_calls, 2);
}

TEST(ThreadPool, DefaultLanesFollowTheAffinityMask) {
  const std::vector<int> cpus = allowed_cpus();
  EXPECT_LE(ThreadPool::default_lanes(), cpus.size());
  std::thread([&] {  // the mask is the thread's own
    allow_this_thread({cpus.back()});
    EXPECT_EQ(ThreadPool::default_lanes(), 1u);
  })
      .join();
}

}  // namespace
}  // namespace dovetail::core
