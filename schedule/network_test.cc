#include "schedule/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace thinwire {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(FairRatesTest, OneMessageHasTheLesserOfItsCapacities) {
  EXPECT_THAT(FairRates({{0, 1}}, {10, 4}), ElementsAre(4));
  EXPECT_THAT(FairRates({}, {10, 4}), IsEmpty());
}

TEST(FairRatesTest, MessagesOfOneInterfaceShareIt) {
  EXPECT_THAT(FairRates({{0, 1}, {0, 2}}, {10, 10, 10}), ElementsAre(5, 5));
}

TEST(FairRatesTest, WhatOneCannotUseTheOthersHave) {
  // The receiver holds the first at 1; the two others divide the rest of the sender's 10.
  EXPECT_THAT(FairRates({{0, 1}, {0, 2}, {0, 3}}, {10, 1, 10, 10}), ElementsAre(1, 4.5, 4.5));
}

TEST(FairRatesTest, AMiddleStageSharesWhatItSendsToBothSides) {
  // Three hosts of 8 each way: 0 sends to 1, 1 to 2 and back to 0. Egress of host i is 2i.
  const std::vector<Route> routes = {{0, 3}, {2, 5}, {2, 1}};
  EXPECT_THAT(FairRates(routes, {8, 8, 8, 8, 8, 8}), ElementsAre(8, 4, 4));
}

// Rates are max-min fair iff they are feasible and each message crosses a capacity that is used up
// and where none has a higher rate (Bertsekas and Gallager, 6.5.2).
TEST(FairRatesTest, EveryMessageHasABottleneckWhereNoneHasMore) {
  RandomStream random(RandomKey(1, "fair"));
  for (int round = 0; round < 2000; ++round) {
    const int hosts = 2 + static_cast<int>(random.Below(6));
    std::vector<double> capacities;
    for (int i = 0; i < 2 * hosts; ++i) capacities.push_back(1 + random.Below(5));
    std::vector<Route> routes;
    for (uint32_t m = random.Below(12); m-- > 0;) {
      routes.push_back({static_cast<int>(2 * random.Below(hosts)),
                        static_cast<int>(2 * random.Below(hosts) + 1)});
    }
    const std::vector<double> rates = FairRates(routes, capacities);
    std::vector<double> used(capacities.size(), 0), most(capacities.size(), 0);
    for (size_t m = 0; m < routes.size(); ++m) {
      for (const int i : {routes[m].egress, routes[m].ingress}) {
        used[i] += rates[m];
        most[i] = std::max(most[i], rates[m]);
      }
    }
    for (size_t i = 0; i < capacities.size(); ++i) EXPECT_LE(used[i], capacities[i] + 1e-9);
    for (size_t m = 0; m < routes.size(); ++m) {
      const auto is_bottleneck = [&](int i) {
        return used[i] >= capacities[i] - 1e-9 && rates[m] >= most[i] - 1e-9;
      };
      EXPECT_GT(rates[m], 0);
      EXPECT_TRUE(is_bottleneck(routes[m].egress) || is_bottleneck(routes[m].ingress)) << round;
    }
  }
}

TEST(FairRatesTest, TheOrderOfMessagesDoesNotMatter) {
  const std::vector<double> capacities = {7, 3, 5, 2, 4, 6};
  std::vector<Route> routes = {{0, 1}, {0, 3}, {2, 3}, {4, 1}, {4, 5}, {2, 5}};
  std::vector<double> rates = FairRates(routes, capacities);
  std::reverse(routes.begin(), routes.end());
  std::reverse(rates.begin(), rates.end());
  EXPECT_EQ(FairRates(routes, capacities), rates);
}

TEST(NetworkTest, TheSecondSlowsTheFirstWhileBothAreUnderWay) {
  Network network({10, 10, 10});
  network.Start(7, /*bits=*/100, {0, 1}, /*now=*/0);
  network.Share(0);
  EXPECT_EQ(network.NextEnd(), 10);
  network.Start(8, /*bits=*/20, {0, 2}, /*now=*/4);
  network.Share(4);
  EXPECT_EQ(network.NextEnd(), 8);  // at 5 bits a second each
  EXPECT_THAT(network.TakeEnded(), ElementsAre(8));
  network.Share(8);
  EXPECT_EQ(network.NextEnd(), 12);  // 40 in 4 s, 20 in 4 s, the rest at full rate
  EXPECT_THAT(network.TakeEnded(), ElementsAre(7));
  EXPECT_TRUE(network.empty());
}

TEST(NetworkTest, MessagesThatEndTogetherAreTakenTogether) {
  Network network({10, 10, 10});
  network.Start(2, 50, {0, 1}, 1);
  network.Start(1, 50, {0, 2}, 1);
  network.Start(3, 0, {0, 2}, 1);
  network.Share(1);
  EXPECT_EQ(network.NextEnd(), 1);  // a message of 0 bits takes no time
  EXPECT_THAT(network.TakeEnded(), ElementsAre(3));
  network.Share(1);
  EXPECT_THAT(network.NextEnd(), DoubleEq(11));
  EXPECT_THAT(network.TakeEnded(), ElementsAre(2, 1));
}

}  // namespace
}  // namespace thinwire
