#include "coordinator/fleet/stage_addresses.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

TEST(MetricsTargetTest, AnAddressOfItsOwnIsTakenAsItIs) {
  EXPECT_EQ(MetricsTarget("10.0.0.7:4700", "10.1.0.7:9700"), "10.1.0.7:9700");
  EXPECT_EQ(MetricsTarget("a:4700", "a.monitoring:9700"), "a.monitoring:9700");
}

TEST(MetricsTargetTest, EveryAddressIsTheOneByWhichTheStageWasReached) {
  EXPECT_EQ(MetricsTarget("gpu-7.lab:4700", "0.0.0.0:9700"), "gpu-7.lab:9700");
  EXPECT_EQ(MetricsTarget("[fd00::7]:4700", "[::]:9700"), "[fd00::7]:9700");
  EXPECT_EQ(MetricsTarget("[::1]:4700", "*:9700"), "[::1]:9700");
  EXPECT_EQ(MetricsTarget("unix:/tmp/stage-0.sock", "0.0.0.0:9700"), "127.0.0.1:9700");
}

TEST(MetricsTargetTest, AnotherMachinesLoopbackIsOfNoUse) {
  EXPECT_EQ(MetricsTarget("a:4700", "127.0.0.1:9700"), "");
  EXPECT_EQ(MetricsTarget("10.0.0.7:4700", "localhost:9700"), "");
  EXPECT_EQ(MetricsTarget("[fd00::7]:4700", "[::1]:9700"), "");
  EXPECT_EQ(MetricsTarget("localhost:4700", "127.0.0.1:9700"), "127.0.0.1:9700");
  EXPECT_EQ(MetricsTarget("[::1]:4700", "[::1]:9700"), "[::1]:9700");
  EXPECT_EQ(MetricsTarget("unix:/tmp/stage-0.sock", "127.0.0.1:9700"), "127.0.0.1:9700");
}

TEST(MetricsTargetTest, NoneIsNone) {
  EXPECT_EQ(MetricsTarget("a:4700", ""), "");
  EXPECT_EQ(MetricsTarget("a:4700", "\x1b[2J"), "");
}

}  // namespace
}  // namespace thinwire
