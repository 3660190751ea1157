#include "coordinator/fleet/dealer.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;

SteadyTime At(double seconds) { return SteadyTime() + absl::Seconds(seconds); }

TEST(DealBySpeedTest, EachPipelineHasWhatItIsFastEnoughFor) {
  EXPECT_THAT(DealBySpeed({4, 4, 2, 1}, 8), ElementsAre(1, 1, 2, 4));
  EXPECT_THAT(DealBySpeed({1, 1, 1, 1}, 8), ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(DealBySpeed({1, 1, 1}, 8), ElementsAre(3, 3, 2));
  EXPECT_THAT(DealBySpeed({100, 1}, 2), ElementsAre(1, 1)) << "none is left out";
}

TEST(DealBySpeedTest, NoOtherDealIsFaster) {
  const std::vector<double> seconds = {3, 1.7, 0.9};
  const Deal best = DealBySpeed(seconds, 9);
  const auto slowest = [&](int a, int b, int c) {
    return std::max({a * seconds[0], b * seconds[1], c * seconds[2]});
  };
  for (int a = 1; a <= 7; ++a) {
    for (int b = 1; a + b <= 8; ++b) {
      EXPECT_GE(slowest(a, b, 9 - a - b), slowest(best[0], best[1], best[2])) << a << " " << b;
    }
  }
}

// Two pipelines of one stage that share eight replicas.
class DealerTest : public ::testing::Test {
 protected:
  DealerTest() { dealer_.Begin({"a", "b"}, {4, 4}); }

  // Reports both at every second for `seconds`, of one step each. Returns when it is to be dealt
  // anew, if it is.
  std::optional<double> Train(double from, double seconds, double of_a, double of_b) {
    for (double now = from; now <= from + seconds; ++now, ++step_) {
      const bool first = dealer_.Add(0, step_, busy_[0] += of_a, At(now));
      if (dealer_.Add(1, step_, busy_[1] += of_b, At(now)) || first) return now;
    }
    return std::nullopt;
  }

  Dealer dealer_{8};
  uint64_t step_ = 1;
  double busy_[2] = {0, 0};
};

TEST_F(DealerTest, UnequalSpeedsAreSeenOnceBothAreMeasured) {
  const auto seen = Train(0, 60, 0.75, 0.25);
  ASSERT_TRUE(seen.has_value());
  EXPECT_GE(*seen, 3);
  EXPECT_LE(*seen, 5);
  EXPECT_THAT(dealer_.BestFor({"a", "b"}, 2), ElementsAre(2, 6));
  EXPECT_THAT(dealer_.BestFor({"b", "a"}, 2), ElementsAre(6, 2)) << "they are known by address";
  EXPECT_THAT(dealer_.BestFor({"a", "b", "c"}, 3), ElementsAre(1, 5, 2)) << "one is not known";
}

TEST_F(DealerTest, NothingIsDealtAnewForLittle) {
  EXPECT_EQ(Train(0, 60, 0.50, 0.53), std::nullopt) << "5 to 3 would be slower";
  EXPECT_THAT(Dealer(8).BestFor({"a", "b", "c"}, 3), ElementsAre(2, 3, 3))
      << "nothing was measured";
}

TEST_F(DealerTest, BetweenTwoDealsThereIsTime) {
  const auto first = Train(0, 60, 0.75, 0.25);
  ASSERT_TRUE(first.has_value());
  dealer_.Begin({"a", "b"}, {2, 6});
  const auto second = Train(*first, 60, 0.2, 0.9);
  ASSERT_TRUE(second.has_value());
  EXPECT_GE(*second - *first, 20);
}

TEST_F(DealerTest, APipelineIsAsFastAsItsSlowestStage) {
  Dealer dealer(4);
  dealer.Begin({"a0", "a1", "b0", "b1"}, {2, 2});
  for (int i = 0; i <= 5; ++i) {
    const double busy[] = {0.1 * i, 0.9 * i, 0.3 * i, 0.3 * i};
    for (int server = 0; server < 4; ++server) {
      dealer.Add(server, static_cast<uint64_t>(i), busy[server], At(i));
    }
  }
  EXPECT_THAT(dealer.BestFor({"a0", "a1", "b0", "b1"}, 2), ElementsAre(1, 3));
}

}  // namespace
}  // namespace thinwire
