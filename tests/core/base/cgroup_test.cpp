// Limits of control groups, from folders made for the test.
#include "core/base/cgroup.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

namespace dovetail::core {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

double quota(const std::string& membership, const std::string& mounts) {
  return cpu_quota({membership, mounts});
}

class Cgroup : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(testing::TempDir()) / ("dvt_cgroup_" + std::to_string(getpid()));
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void put(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  // A line of mountinfo for the hierarchy whose group `root` is seen as a folder of the test.
  std::string mount(const std::string& root, const std::string& folder, const std::string& type,
                    const std::string& options) {
    return "31 23 0:28 " + root + " " + (root_ / folder).string() + " rw,relatime shared:9 - " +
           type + " cgroup " + options + "\n";
  }
  std::string version_2(const std::string& root = "/") {
    return mount(root, "v2", "cgroup2", "rw");
  }
  std::string version_1(const std::string& root = "/") {
    return mount(root, "mem", "cgroup", "rw,memory") +
           mount(root, "v1", "cgroup", "rw,cpu,cpuacct");
  }
  std::filesystem::path root_;
};

TEST_F(Cgroup, QuotaIsTheLeastOfTheGroupAndThoseAboveIt) {
  EXPECT_EQ(quota("0::/a/b\n", version_2()), kNoLimit);
  put("v2/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(quota("0::/a/b\n", version_2()), kNoLimit);
  put("v2/a/cpu.max", "150000 100000\n");
  EXPECT_EQ(quota("0::/a/b\n", version_2()), 1.5);
  put("v2/a/b/cpu.max", "400000 100000\n");
  EXPECT_EQ(quota("0::/a/b\n", version_2()), 1.5);
  put("v2/cpu.max", "50000 100000\n");
  EXPECT_EQ(quota("0::/a/b\n", version_2()), 0.5);
  EXPECT_EQ(quota("0::/\n", version_2()), 0.5);
}

TEST_F(Cgroup, QuotaOfVersion1) {
  put("v1/a/cpu.cfs_quota_us", "-1\n");
  put("v1/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota("5:memory:/m\n4:cpu,cpuacct:/a\n", version_1()), kNoLimit);
  put("v1/a/cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(quota("5:memory:/m\n4:cpu,cpuacct:/a\n", version_1()), 2.5);
  EXPECT_EQ(quota("4:cpu,cpuacct:/b\n", version_1()), kNoLimit) << "another group's";
  EXPECT_EQ(quota("4:cpuset:/a\n", version_1()), kNoLimit) << "not of the cpu controller";
}

TEST_F(Cgroup, BothVersionsAtOnce) {
  put("v1/a/cpu.cfs_quota_us", "300000\n");
  put("v1/a/cpu.cfs_period_us", "100000\n");
  put("v2/a/cpu.max", "200000 100000\n");
  EXPECT_EQ(quota("1:cpu:/a\n0::/\n", version_1() + version_2()), 3);
  EXPECT_EQ(quota("1:cpu:/a\n0::/a\n", version_1() + version_2()), 2);
}

// In a container the group that /proc names may be the one that is mounted, or lie outside of it.
TEST_F(Cgroup, QuotaOfAGroupThatIsMountedItself) {
  put("v2/cpu.max", "200000 100000\n");
  put("v2/in/cpu.max", "100000 100000\n");
  EXPECT_EQ(quota("0::/docker/x\n", version_2("/docker/x")), 2);
  EXPECT_EQ(quota("0::/docker/x/in\n", version_2("/docker/x")), 1);
  EXPECT_EQ(quota("0::/docker/xy\n", version_2("/docker/x")), 2) << "seen from its top";
  EXPECT_EQ(quota("0::/../other\n", version_2()), 2);
}

TEST_F(Cgroup, NoQuotaInTextThatSaysNothing) {
  put("v2/a/cpu.max", "what\n");
  EXPECT_EQ(quota("0::/a\n", version_2()), kNoLimit);
  EXPECT_EQ(quota("", version_2()), kNoLimit);
  EXPECT_EQ(quota("0::/a\n", ""), kNoLimit);
  EXPECT_EQ(quota("::\nx\n0:\n", "y\n - \n - cgroup2\n"), kNoLimit);
}

TEST_F(Cgroup, MemoryIsWhatTheLimitLeavesWithoutFilesPages) {
  EXPECT_EQ(memory_left({"0::/a\n", version_2()}), UINT64_MAX);
  put("v2/a/memory.max", "max\n");
  put("v2/a/memory.current", "700\n");
  EXPECT_EQ(memory_left({"0::/a\n", version_2()}), UINT64_MAX);
  put("v2/a/memory.max", "1000\n");
  EXPECT_EQ(memory_left({"0::/a\n", version_2()}), 300u);
  put("v2/a/memory.stat", "anon 100\nfile 600\ninactive_file 350\nactive_file 250\n");
  EXPECT_EQ(memory_left({"0::/a\n", version_2()}), 900u);
  put("v2/memory.max", "2000\n");
  put("v2/memory.current", "1950\n");
  EXPECT_EQ(memory_left({"0::/a\n", version_2()}), 50u) << "the group above has less";
  put("v2/memory.current", "2500\n");
  EXPECT_EQ(memory_left({"0::/a\n", version_2()}), 0u);
}

TEST_F(Cgroup, MemoryOfVersion1) {
  put("mem/a/memory.limit_in_bytes", "1000\n");
  put("mem/a/memory.usage_in_bytes", "400\n");
  put("mem/a/memory.stat", "active_file 1\ntotal_inactive_file 60\ntotal_active_file 40\n");
  EXPECT_EQ(memory_left({"5:memory:/a\n4:cpu,cpuacct:/b\n", version_1()}), 700u);
}

}  // namespace
}  // namespace dovetail::core
