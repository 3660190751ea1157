#include "coordinator/fleet/stage_setup.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;

TEST(ThreadsPerStageTest, AutoSharesTheCoresOfAHost) {
  EXPECT_THAT(ThreadsPerStage("auto", 8, {{"a", 8}, {"a", 8}, {"b", 4}}), ElementsAre(4, 4, 4));
}

TEST(ThreadsPerStageTest, EveryStageGetsAtLeastOneThread) {
  EXPECT_THAT(ThreadsPerStage("auto", 8, {{"", 2}, {"", 2}, {"", 2}}), ElementsAre(1, 1, 1));
}

TEST(ThreadsPerStageTest, WithOneMicrobatchStagesTakeTurns) {
  EXPECT_THAT(ThreadsPerStage("auto", 1, {{"", 2}, {"", 2}, {"", 2}}), ElementsAre(2, 2, 2));
  EXPECT_THAT(ThreadsPerStage("auto", 2, {{"", 8}, {"", 8}, {"", 8}}), ElementsAre(4, 4, 4));
}

TEST(ThreadsPerStageTest, ANumberHoldsForAll) {
  EXPECT_THAT(ThreadsPerStage("3", 1, {{"", 1}, {"", 1}}), ElementsAre(3, 3));
}

TEST(HostOfTest, IsWhatStandsBeforeThePort) {
  EXPECT_EQ(HostOf("10.0.0.7:4711"), "10.0.0.7");
  EXPECT_EQ(HostOf("[::1]:4711"), "[::1]");
  EXPECT_EQ(HostOf("unix:/run/stage-0.sock"), "");
}

}  // namespace
}  // namespace thinwire
