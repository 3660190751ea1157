#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "base/resources.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;

class AvailableMemoryTest : public ::testing::Test {
 protected:
  AvailableMemoryTest() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = ::testing::TempDir() + "/" + test->name();
    Write("/proc/meminfo", "MemTotal:    9000 kB\nMemFree:   10 kB\nMemAvailable:  4000 kB\n");
  }
  ~AvailableMemoryTest() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  std::string root_;
};

TEST_F(AvailableMemoryTest, IsWhatTheKernelEstimates) {
  EXPECT_EQ(AvailableMemoryBytes(root_), 4000u * 1024);
}

TEST_F(AvailableMemoryTest, IsLessWhereAGroupAboveTheProcessHasALimit) {
  Write("/proc/self/cgroup", "0::/slice/service\n");
  Write("/sys/fs/cgroup/slice/service/memory.max", "max\n");
  Write("/sys/fs/cgroup/slice/service/memory.current", "70000\n");
  Write("/sys/fs/cgroup/slice/memory.max", "100000\n");
  Write("/sys/fs/cgroup/slice/memory.current", "90000\n");
  EXPECT_EQ(AvailableMemoryBytes(root_), 10000u);
  Write("/sys/fs/cgroup/slice/memory.stat", "anon 40000\ninactive_file 50000\n");
  EXPECT_EQ(AvailableMemoryBytes(root_), 60000u);
}

TEST_F(AvailableMemoryTest, IsNothingWhereALimitIsExceeded) {
  Write("/sys/fs/cgroup/memory.max", "1000\n");
  Write("/sys/fs/cgroup/memory.current", "2000\n");
  EXPECT_EQ(AvailableMemoryBytes(root_), 0u);
}

TEST_F(AvailableMemoryTest, HasNoBoundWhereNothingSays) {
  EXPECT_EQ(AvailableMemoryBytes(root_ + "/none"), std::numeric_limits<uint64_t>::max());
  EXPECT_GT(AvailableMemoryBytes(), 0u);  // of this machine
}

TEST_F(AvailableMemoryTest, ResidentIsWhatNoFileHas) {
  EXPECT_EQ(ResidentBytes(root_), 0u);
  Write("/proc/self/statm", "900 70 30 1 0 2 0\n");
  EXPECT_EQ(ResidentBytes(root_), 40u * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
  EXPECT_GT(ResidentBytes(), 100000u);
}

}  // namespace
}  // namespace thinwire
