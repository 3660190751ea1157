#include "stage_server/boundary/patience.h"

#include "gtest/gtest.h"

namespace thinwire {
namespace {

SteadyTime At(double seconds) { return SteadyTime() + absl::Seconds(seconds); }

TEST(PatienceTest, AWaitIsExtendedWhileTheRunAdvances) {
  Patience patience(absl::Seconds(60));
  SteadyTime deadline = At(1060);
  patience.RunAdvanced(5, At(1030));
  ASSERT_TRUE(patience.Extend(At(1060), &deadline));
  EXPECT_EQ(deadline - At(1090), absl::ZeroDuration());
  patience.RunAdvanced(6, At(1080));
  ASSERT_TRUE(patience.Extend(At(1090), &deadline));
  EXPECT_EQ(deadline - At(1140), absl::ZeroDuration());
}

TEST(PatienceTest, ARunThatStandsStillIsNotWaitedForAgain) {
  Patience patience(absl::Seconds(60));
  SteadyTime deadline = At(1060);
  patience.RunAdvanced(5, At(1000));
  for (int second = 1001; second < 1060; ++second) patience.RunAdvanced(5, At(second));
  EXPECT_FALSE(patience.Extend(At(1060), &deadline));
  EXPECT_EQ(deadline - At(1060), absl::ZeroDuration());
}

TEST(PatienceTest, ARunThatNobodyTellsOfIsNotWaitedForAgain) {
  const Patience patience(absl::Seconds(60));
  SteadyTime deadline = SteadyTime::Now();
  EXPECT_FALSE(patience.Extend(SteadyTime::Now() + absl::Seconds(61), &deadline));
}

TEST(PatienceTest, LongStepsMakeTheLimitLonger) {
  Patience patience(absl::Seconds(60));
  for (int i = 1; i < 8; ++i) {
    patience.StepTook(absl::Seconds(100));
    EXPECT_EQ(patience.limit(), absl::Seconds(60)) << i;
  }
  patience.StepTook(absl::Seconds(100));
  EXPECT_EQ(patience.limit(), absl::Seconds(100));
  // With 100 eight times and 104 eight times, the upper median is 104, and the MAD is likewise 4.
  for (int i = 0; i < 8; ++i) patience.StepTook(absl::Seconds(104));
  EXPECT_EQ(patience.limit(), absl::Seconds(104 + 10 * 4));
}

TEST(PatienceTest, OneStepThatTookLongIsForgiven) {
  Patience patience(absl::Seconds(60));
  for (int i = 0; i < 63; ++i) patience.StepTook(absl::Seconds(1));
  patience.StepTook(absl::Hours(1));
  EXPECT_EQ(patience.limit(), absl::Seconds(60));
}

TEST(PatienceTest, StepsOfLongAgoDoNotCount) {
  Patience patience(absl::Seconds(60));
  for (int i = 0; i < 64; ++i) patience.StepTook(absl::Seconds(500));
  EXPECT_EQ(patience.limit(), absl::Seconds(500));
  for (int i = 0; i < 64; ++i) patience.StepTook(absl::Seconds(1));
  EXPECT_EQ(patience.limit(), absl::Seconds(60));
}

}  // namespace
}  // namespace thinwire
