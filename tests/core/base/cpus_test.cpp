// The affinity mask, and what a /sys made for the test says about cores.
#include "core/base/cpus.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace dovetail::core {
namespace {

class Cpus : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(testing::TempDir()) / ("dvt_cpus_" + std::to_string(getpid()));
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void put(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  std::filesystem::path root_;
};

TEST_F(Cpus, AllowedOnesAreThoseOfTheAffinityMask) {
  const std::vector<int> all = allowed_cpus();
  ASSERT_FALSE(all.empty());
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  std::thread([&] {  // the mask is the thread's own
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(all.back(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(allowed_cpus(), std::vector<int>{all.back()});
  })
      .join();
}

TEST_F(Cpus, OneOfEachCoreComesFirst) {
  const std::vector<std::string> siblings = {"0,4", "1", "2-3", "2-3", "0,4"};
  for (size_t cpu = 0; cpu < siblings.size(); ++cpu)
    put("cpu" + std::to_string(cpu) + "/topology/thread_siblings_list", siblings[cpu] + "\n");
  EXPECT_EQ(cores_first({0, 1, 2, 3, 4}, root_), (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(cores_first({0, 1, 2, 3, 4, 5}, root_), (std::vector<int>{0, 1, 2, 5, 3, 4}))
      << "nothing is known of 5";
  EXPECT_EQ(cores_first({3, 4}, root_), (std::vector<int>{3, 4})) << "of those given";
}

}  // namespace
}  // namespace dovetail::core
