// The pool under load: every index once, lanes at the same time, barriers that order memory.
#include "core/base/thread_pool.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace dovetail::core {
namespace {

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

TEST(ThreadPool, SleepsWhileThereIsNoWork) {
  ThreadPool pool(2);
  pool.parallel_for(64, 1, [](uint64_t, uint64_t, uint32_t) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // past the bounded spin
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  getrusage(RUSAGE_SELF, &after);
  const auto used_us = (after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000000 +
                       after.ru_utime.tv_usec - before.ru_utime.tv_usec;
  EXPECT_LT(used_us, 100000);
}

TEST(ThreadPool, DefaultLanesFollowTheAffinityMask) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  EXPECT_LE(ThreadPool::default_lanes(), static_cast<uint32_t>(CPU_COUNT(&all)));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &all)) {
      CPU_SET(i, &one);
      break;
    }
  }
  std::thread([&] {  // the mask is the thread's own
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(ThreadPool::default_lanes(), 1u);
  })
      .join();
}

class CpuQuota : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(testing::TempDir()) / ("dvt_quota_" + std::to_string(getpid()));
    std::filesystem::create_directories(root_ / "a" / "b");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void put(const std::string& file, const std::string& text) {
    std::ofstream(root_ / file) << text;
  }
  std::filesystem::path root_;
};

TEST_F(CpuQuota, IsTheLeastOfTheGroupAndItsParents) {
  EXPECT_EQ(cpu_quota(root_, "0::/a/b\n"), 0);
  put("a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(cpu_quota(root_, "0::/a/b\n"), 0);
  put("a/cpu.max", "150000 100000\n");
  EXPECT_EQ(cpu_quota(root_, "0::/a/b\n"), 1.5);
  put("a/b/cpu.max", "400000 100000\n");
  EXPECT_EQ(cpu_quota(root_, "0::/a/b\n"), 1.5);
  put("cpu.max", "50000 100000\n");
  EXPECT_EQ(cpu_quota(root_, "0::/a/b\n"), 0.5);
}

TEST_F(CpuQuota, UnderstandsMembershipOfSeveralHierarchies) {
  put("a/cpu.max", "200000 100000\n");
  EXPECT_EQ(cpu_quota(root_, "12:cpu:/x\n0::/a\n"), 2);
  EXPECT_EQ(cpu_quota(root_, "12:cpu:/x\n"), 0);
  EXPECT_EQ(cpu_quota(root_, ""), 0);
  put("a/cpu.max", "what\n");
  EXPECT_EQ(cpu_quota(root_, "0::/a\n"), 0);
}

}  // namespace
}  // namespace dovetail::core
