#include "base/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>

namespace thinwire {
namespace {

void Write(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

std::string Mounted(const char* name) { return testing::TempDir() + "/cores_" + name; }

TEST(CoresTest, WholeCoresOfAQuotaAtLeastOne) {
  EXPECT_EQ(CoresOfCpuMax("200000 100000\n"), 2);
  EXPECT_EQ(CoresOfCpuMax("150000 100000\n"), 1);
  EXPECT_EQ(CoresOfCpuMax("50000 100000\n"), 1);
}

TEST(CoresTest, WhatIsNoQuotaLimitsNothing) {
  EXPECT_EQ(CoresOfCpuMax("max 100000\n"), 0);
  EXPECT_EQ(CoresOfCpuMax(""), 0);
  EXPECT_EQ(CoresOfCpuMax("200000"), 0);
  EXPECT_EQ(CoresOfQuota(-1, 100000), 0);
  EXPECT_EQ(CoresOfQuota(200000, 0), 0);
}

TEST(CoresTest, OfNestedGroupsTheStrictest) {
  const std::string mounted = Mounted("nested");
  Write(mounted + "/pods/cpu.max", "200000 100000\n");
  Write(mounted + "/pods/one/cpu.max", "400000 100000\n");
  Write(mounted + "/pods/two/cpu.max", "max 100000\n");
  EXPECT_EQ(CoresOfControlGroups("0::/pods/one\n", mounted), 2);
  EXPECT_EQ(CoresOfControlGroups("0::/pods/two\n", mounted), 2);
  EXPECT_EQ(CoresOfControlGroups("0::/elsewhere\n", mounted), 0);
}

TEST(CoresTest, AContainerSeesItsOwnGroupAsTheRoot) {
  const std::string mounted = Mounted("container");
  Write(mounted + "/cpu.max", "300000 100000\n");
  EXPECT_EQ(CoresOfControlGroups("0::/\n", mounted), 3);
  EXPECT_EQ(CoresOfControlGroups("0::/kubepods/pod1/c2\n", mounted), 3);
}

TEST(CoresTest, GroupsOfVersion1) {
  const std::string mounted = Mounted("version1");
  Write(mounted + "/cpu/docker/a/cpu.cfs_quota_us", "400000\n");
  Write(mounted + "/cpu/docker/a/cpu.cfs_period_us", "100000\n");
  Write(mounted + "/cpu/docker/b/cpu.cfs_quota_us", "-1\n");
  Write(mounted + "/cpu/docker/b/cpu.cfs_period_us", "100000\n");
  const std::string others = "5:memory:/docker/a\n3:cpuset:/docker/a\n";
  EXPECT_EQ(CoresOfControlGroups(others + "4:cpu,cpuacct:/docker/a\n", mounted), 4);
  EXPECT_EQ(CoresOfControlGroups(others + "4:cpu,cpuacct:/docker/b\n", mounted), 0);
}

TEST(CoresTest, DamagedTextLimitsNothing) {
  EXPECT_EQ(CoresOfControlGroups("no colon\n0:\n::relative\n\n", Mounted("nowhere")), 0);
}

TEST(CoresTest, AProcessBoundToOneCoreHasOne) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i) {
    if (CPU_ISSET(i, &before)) CPU_SET(i, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(UsableCores(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  EXPECT_GE(UsableCores(), 1);
}

}  // namespace
}  // namespace thinwire
