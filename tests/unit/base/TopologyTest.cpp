//===- TopologyTest.cpp - affinity, control groups, hyper-threads ---------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Topology.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sched.h>

using namespace llmc::rt;
namespace fs = std::filesystem;

namespace {

/// A folder that plays "/".
class FakeRoot : public testing::Test {
protected:
  void SetUp() override { fs::remove_all(root); }
  void write(const std::string &path, const std::string &text) {
    fs::create_directories(fs::path(root + path).parent_path());
    std::ofstream(root + path) << text;
  }
  const std::string root = testing::TempDir() + "llmc-fake-root-" +
                           testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST(Topology, CpuMax) {
  EXPECT_EQ(parseCpuMax("200000 100000\n"), 2.0);
  EXPECT_EQ(parseCpuMax("765000 100000"), 7.65);
  EXPECT_EQ(parseCpuMax("max 100000\n"), std::nullopt);
  for (const char *bad : {"", "200000", "x y", "-1 100000", "100000 0", "1 2 3"})
    EXPECT_EQ(parseCpuMax(bad), std::nullopt) << bad;
}

TEST(Topology, CpuLists) {
  EXPECT_EQ(parseCpuList("0-3,8,10-11\n"), (std::vector<unsigned>{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_TRUE(parseCpuList("").empty());
  EXPECT_TRUE(parseCpuList("x,-2,0-99999999999").empty());
}

TEST_F(FakeRoot, QuotaV2IsTheSmallestOnTheWayUp) {
  write("/proc/self/cgroup", "0::/a/b\n");
  EXPECT_EQ(cgroupCpuQuota(root), std::nullopt);
  write("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(cgroupCpuQuota(root), std::nullopt);
  write("/sys/fs/cgroup/a/cpu.max", "200000 100000\n");
  EXPECT_EQ(cgroupCpuQuota(root), 2.0);
  write("/sys/fs/cgroup/a/b/cpu.max", "150000 100000\n");
  EXPECT_EQ(cgroupCpuQuota(root), 1.5);
}

TEST_F(FakeRoot, QuotaV2OfAContainersOwnMount) {
  write("/proc/self/cgroup", "0::/docker/0123\n");
  write("/sys/fs/cgroup/cpu.max", "765000 100000\n");
  EXPECT_EQ(cgroupCpuQuota(root), 7.65);
}

TEST_F(FakeRoot, QuotaV1) {
  write("/proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/box\n1:name=systemd:/x\n");
  write("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "300000\n");
  write("/sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroupCpuQuota(root), 3.0);
  write("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(cgroupCpuQuota(root), std::nullopt);
}

TEST_F(FakeRoot, HyperThreadsCountOnce) {
  for (int cpu = 0; cpu < 8; ++cpu)
    write("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
          std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4) + "\n");
  EXPECT_EQ(physicalCores({0, 1, 2, 3, 4, 5, 6, 7}, root), 4u);
  EXPECT_EQ(physicalCores({0, 4}, root), 1u);
  EXPECT_EQ(physicalCores({4, 5}, root), 2u) << "the first sibling is outside the mask";
  EXPECT_EQ(physicalCores({0, 1, 2}, testing::TempDir() + "nowhere"), 3u);
}

TEST(Topology, AffinityIsRespected) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  const std::vector<unsigned> cpus = affinityCpus();
  ASSERT_FALSE(cpus.empty());
  CPU_ZERO(&one);
  CPU_SET(cpus.back(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(affinityCpus(), std::vector<unsigned>{cpus.back()});
  EXPECT_EQ(usableCores(), 1u);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_LE(usableCores(), cpus.size());
}

} // namespace
