#include "coordinator/fleet/pulse.h"

#include "gtest/gtest.h"

namespace thinwire {
namespace {

SteadyTime At(double seconds) { return SteadyTime() + absl::Seconds(seconds); }

TEST(PulseTest, ARunStandsStillOnceItHasAdvanced) {
  Pulse pulse;
  pulse.set_trains(true);
  pulse.Add(0, At(1));
  EXPECT_FALSE(pulse.StandsStill(At(100), absl::Seconds(1))) << "it is yet to begin";
  pulse.Add(1, At(101));
  EXPECT_FALSE(pulse.StandsStill(At(101.5), absl::Seconds(1)));
  EXPECT_TRUE(pulse.StandsStill(At(102), absl::Seconds(1)));
  EXPECT_EQ(pulse.advances(), 1u);
  pulse.set_trains(false);
  EXPECT_FALSE(pulse.StandsStill(At(102), absl::Seconds(1)));
}

TEST(PulseTest, ARunThatAdvancesSeldomMayPause) {
  Pulse pulse;
  pulse.set_trains(true);
  for (const double at : {10, 14, 18}) pulse.Add(1, At(at));
  EXPECT_FALSE(pulse.StandsStill(At(29), absl::Seconds(1)));
  EXPECT_TRUE(pulse.StandsStill(At(30), absl::Seconds(1)));
}

TEST(PulseTest, KnowsWhetherAnyoneAnswers) {
  Pulse pulse;
  pulse.Add(0, At(10));
  EXPECT_TRUE(pulse.Answers(At(10.4), absl::Seconds(0.5)));
  EXPECT_FALSE(pulse.Answers(At(10.5), absl::Seconds(0.5)));
}

}  // namespace
}  // namespace thinwire
