#include "coordinator/fleet/dealer.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;

SteadyTime At(double seconds) { return SteadyTime() + absl::Seconds(seconds); }

TEST(DealBySpeedTest, EachPipelineHasWhatItIsFastEnoughFor) {
  EXPECT_THAT(DealBySpeed({{4}, {4}, {2}, {1}}, 8), ElementsAre(1, 1, 2, 4));
  EXPECT_THAT(DealBySpeed({{1}, {1}, {1}, {1}}, 8), ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(DealBySpeed({{1}, {1}, {1}}, 8), ElementsAre(3, 3, 2));
  EXPECT_THAT(DealBySpeed({{100}, {1}}, 2), ElementsAre(1, 1)) << "none is left out";
}

TEST(DealBySpeedTest, NoneCarriesMoreThanItMayIfOthersCan) {
  EXPECT_THAT(DealBySpeed({{4}, {4}, {2}, {1, 3}}, 8), ElementsAre(1, 1, 3, 3));
  EXPECT_THAT(DealBySpeed({{2, 2}, {1, 2}}, 5), ElementsAre(2, 3));
}

TEST(DealBySpeedTest, NoOtherDealIsFaster) {
  const std::vector<DealtTo> three = {{3}, {1.7}, {0.9}};
  const Deal best = DealBySpeed(three, 9);
  const auto slowest = [&](int a, int b, int c) {
    return std::max({a * three[0].seconds, b * three[1].seconds, c * three[2].seconds});
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

  Dealer dealer_{8, /*work=*/{1}};
  uint64_t step_ = 1;
  double busy_[2] = {0, 0};
};

TEST_F(DealerTest, UnequalSpeedsAreSeenOnceBothAreMeasured) {
  const auto seen = Train(0, 60, 0.75, 0.25);
  ASSERT_TRUE(seen.has_value());
  EXPECT_GE(*seen, 6);
  EXPECT_LE(*seen, 8);
  EXPECT_THAT(dealer_.BestFor({"a", "b"}), ElementsAre(2, 6));
  EXPECT_THAT(dealer_.BestFor({"b", "a"}), ElementsAre(6, 2)) << "they are known by address";
  EXPECT_THAT(dealer_.BestFor({"a", "b", "c"}), ElementsAre(1, 5, 2)) << "one is not known";
}

TEST_F(DealerTest, NothingIsDealtAnewForLittle) {
  EXPECT_EQ(Train(0, 60, 0.50, 0.53), std::nullopt) << "5 to 3 would be slower";
  EXPECT_THAT(Dealer(8, {1}).BestFor({"a", "b", "c"}), ElementsAre(2, 3, 3)) << "none is known";
}

TEST_F(DealerTest, BetweenTwoDealsThereIsTime) {
  const auto first = Train(0, 60, 0.75, 0.25);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(Train(*first, 60, 0.75, 0.25), std::nullopt) << "it is told once";
  dealer_.Begin({"a", "b"}, {2, 6});
  const auto second = Train(*first + 1, 60, 0.2, 0.9);
  ASSERT_TRUE(second.has_value());
  EXPECT_GE(*second - *first, 20);
  dealer_.Begin({"a", "b"}, {4, 4});
  const auto third = Train(*second + 3, 100, 0.75, 0.25);
  ASSERT_TRUE(third.has_value());
  EXPECT_GE(*third - *second, 60) << "the one before took three seconds";
}

TEST_F(DealerTest, OneThatLacksMemoryIsDealtFewer) {
  ASSERT_TRUE(Train(0, 60, 0.75, 0.25).has_value());
  dealer_.Begin({"a", "b"}, {2, 6});
  EXPECT_TRUE(dealer_.Limit(1));
  EXPECT_THAT(dealer_.BestFor({"a", "b"}), ElementsAre(3, 5));
  EXPECT_FALSE(dealer_.Limit(0)) << "it has no more than without regard to speed";
  dealer_.Begin({"a", "b"}, {3, 5});
  EXPECT_TRUE(dealer_.Limit(1));
  dealer_.Begin({"a", "b"}, {3, 5});
  EXPECT_FALSE(dealer_.Limit(1)) << "its limit is lower already, and so does not help";
  EXPECT_TRUE(dealer_.CanCarry({"a", "b"}));
  EXPECT_FALSE(dealer_.CanCarry({"b"}));
}

// Two pipelines of two stages that share four replicas.
class DealerOfStagesTest : public ::testing::Test {
 protected:
  DealerOfStagesTest() { dealer_.Begin(addresses_, {2, 2}); }

  // Reports all for eight seconds, of one step each, in which they are busy for so long. Returns
  // whether it is to be dealt anew.
  bool Train(const std::vector<double>& busy) {
    bool is_seen = false;
    for (int i = 0; i <= 8; ++i) {
      for (size_t server = 0; server < busy.size(); ++server) {
        is_seen |= dealer_.Add(static_cast<int>(server), static_cast<uint64_t>(i), i * busy[server],
                               At(i));
      }
    }
    return is_seen;
  }

  const std::vector<std::string> addresses_ = {"a0", "a1", "b0", "b1"};
  Dealer dealer_{4, /*work=*/{0.5, 0.5}};
};

TEST_F(DealerOfStagesTest, ServersThatWereNotMeasuredKeepTheirPlaces) {
  EXPECT_EQ(dealer_.Placed(addresses_, /*moves=*/true), addresses_);
}

TEST_F(DealerOfStagesTest, PlacesStayWhereOthersGainLittle) {
  EXPECT_FALSE(Train({0.50, 0.51, 0.51, 0.50}));
  EXPECT_EQ(dealer_.Placed(addresses_, /*moves=*/true), addresses_);
}

TEST_F(DealerOfStagesTest, TwoFastMachinesInTwoPipelinesAreWorthANewDeal) {
  // Each pipeline has a slow machine, so whole ones are equally fast.
  EXPECT_TRUE(Train({0.1, 0.9, 0.9, 0.1}));
  EXPECT_THAT(dealer_.Placed(addresses_, /*moves=*/true), ElementsAre("a0", "b1", "b0", "a1"));
}

TEST_F(DealerOfStagesTest, APipelineIsAsFastAsItsSlowestStage) {
  Train({0.1, 0.9, 0.3, 0.3});
  EXPECT_THAT(dealer_.BestFor(addresses_), ElementsAre(1, 3));
  EXPECT_EQ(dealer_.Placed(addresses_, /*moves=*/true), addresses_)
      << "one replica of the slowest takes as long in either";
  // One that was measured at the other stage is as fast here, where that has as much work.
  EXPECT_THAT(dealer_.BestFor({"a1", "a0", "b0", "b1"}), ElementsAre(1, 3));
  EXPECT_THAT(dealer_.BestFor({"a0", "b0", "x", "a1"}), ElementsAre(3, 1)) << "x is as the mean";
}

TEST_F(DealerOfStagesTest, FastServersOfOneStageGoToAnotherButNotAll) {
  EXPECT_TRUE(Train({0.1, 0.9, 0.1, 0.9}));
  EXPECT_THAT(dealer_.Placed(addresses_, /*moves=*/true), ElementsAre("a0", "b0", "b1", "a1"));
  EXPECT_THAT(dealer_.BestFor(dealer_.Placed(addresses_, /*moves=*/true)), ElementsAre(3, 1));
  EXPECT_EQ(dealer_.Placed(addresses_, /*moves=*/false), addresses_) << "some lack their state";
  dealer_.set_may_move(false);
  EXPECT_EQ(dealer_.Placed(addresses_, /*moves=*/true), addresses_);
}

TEST_F(DealerOfStagesTest, AServerThatCannotTakeItsNewStageEndsAllMoves) {
  ASSERT_TRUE(Train({0.1, 0.9, 0.1, 0.9}));
  EXPECT_FALSE(dealer_.RefuseMove(1)) << "it was not moved";
  const std::vector<std::string> moved = dealer_.Placed(addresses_, /*moves=*/true);
  dealer_.Begin(moved, {3, 1});
  ASSERT_EQ(moved[1], "b0");
  EXPECT_FALSE(dealer_.RefuseMove(0));
  EXPECT_FALSE(dealer_.TakeRefusal());
  EXPECT_TRUE(dealer_.RefuseMove(1));
  EXPECT_TRUE(dealer_.TakeRefusal());
  EXPECT_FALSE(dealer_.TakeRefusal()) << "it is told once";
  dealer_.set_may_move(true);
  EXPECT_EQ(dealer_.Placed(addresses_, /*moves=*/true), addresses_);
}

TEST(DealerOfFourStagesTest, OnlyTheFirstStageAndTheLastExchangeTheirServers) {
  Dealer dealer(8, {0.25, 0.25, 0.25, 0.25});
  const std::vector<std::string> addresses = {"a0", "a1", "a2", "a3", "b0", "b1", "b2", "b3"};
  dealer.Begin(addresses, {4, 4});
  // Stages 0 and 1 are fast, so that all of them would make the first pipeline.
  const double busy[] = {0.1, 0.1, 0.9, 0.9, 0.1, 0.1, 0.9, 0.9};
  for (int i = 0; i <= 8; ++i) {
    for (int server = 0; server < 8; ++server) {
      dealer.Add(server, static_cast<uint64_t>(i), i * busy[server], At(i));
    }
  }
  EXPECT_THAT(dealer.Placed(addresses, /*moves=*/true),
              ElementsAre("a0", "a1", "b1", "b0", "b3", "b2", "a2", "a3"));
}

TEST_F(DealerOfStagesTest, ServersStayAtTheirStageWhereLittleIsToBeGained) {
  EXPECT_FALSE(Train({0.45, 0.5, 0.45, 0.5}));
  EXPECT_EQ(dealer_.Placed(addresses_, /*moves=*/true), addresses_);
}

TEST_F(DealerOfStagesTest, AStageWithMoreWorkIsNoReasonToGo) {
  Dealer dealer(4, {0.25, 0.75});
  dealer.Begin(addresses_, {2, 2});
  for (int i = 0; i <= 8; ++i) {
    for (int server = 0; server < 4; ++server) {
      EXPECT_FALSE(
          dealer.Add(server, static_cast<uint64_t>(i), i * (server % 2 == 0 ? 0.25 : 0.75), At(i)));
    }
  }
}

TEST(DealerOfThreePipelinesTest, NoStageIsLeftToServersWithoutItsState) {
  Dealer dealer(6, {0.5, 0.5});
  const std::vector<std::string> addresses = {"a0", "a1", "b0", "b1", "c0", "c1"};
  dealer.Begin(addresses, {2, 2, 2});
  const double busy[] = {0.1, 0.9, 0.1, 0.9, 0.2, 0.8};
  for (int i = 0; i <= 8; ++i) {
    for (int server = 0; server < 6; ++server) {
      dealer.Add(server, static_cast<uint64_t>(i), i * busy[server], At(i));
    }
  }
  const std::vector<std::string> placed = dealer.Placed(addresses, /*moves=*/true);
  bool stays[] = {false, false};
  for (size_t i = 0; i < placed.size(); ++i) {
    const auto was = std::find(addresses.begin(), addresses.end(), placed[i]) - addresses.begin();
    if (static_cast<size_t>(was) % 2 == i % 2) stays[i % 2] = true;
  }
  EXPECT_NE(placed, addresses);
  EXPECT_TRUE(stays[0] && stays[1]);
}

}  // namespace
}  // namespace thinwire
