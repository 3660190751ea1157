#include "tensor/cuda/clock_map.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

constexpr int64_t kFar = 1'700'000'000'000'000'000;  // a clock that counts from 1970

TEST(ClockMapTest, TimesAtBothComparisonsAreExact) {
  const ClockPair first = {kFar, 5000}, last = {kFar + 1'000'000'000, 1'000'105'000};
  EXPECT_EQ(OnOurClock(first.theirs, first, last), first.ours);
  EXPECT_EQ(OnOurClock(last.theirs, first, last), last.ours);
}

TEST(ClockMapTest, DriftIsSpreadBetweenThem) {
  const ClockPair first = {kFar, 5000}, last = {kFar + 1'000'000'000, 1'000'105'000};
  EXPECT_EQ(OnOurClock(kFar + 500'000'000, first, last), 500'055'000);
  EXPECT_EQ(OnOurClock(kFar + 1, first, last), 5001);
}

TEST(ClockMapTest, OutsideBothClocksGoAlike) {
  const ClockPair first = {kFar, 5000}, last = {kFar + 100, 5200};
  EXPECT_EQ(OnOurClock(kFar - 50, first, last), 4950);
  EXPECT_EQ(OnOurClock(kFar + 150, first, last), 5250);
}

TEST(ClockMapTest, AClockThatStoodOrWasSetBackIsComparedOnce) {
  EXPECT_EQ(OnOurClock(kFar + 7, {kFar, 5000}, {kFar, 9000}), 5007);
  EXPECT_EQ(OnOurClock(kFar + 7, {kFar, 5000}, {kFar - 100, 9000}), 5007);
}

}  // namespace
}  // namespace thinwire
