#include "coordinator/fleet/stage_addresses.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;

// Returns the addresses for `stages` stages, or the error as the only entry.
std::vector<std::string> For(int stages, const std::vector<std::string>& texts) {
  const auto parsed = StageAddresses::Parse(texts);
  if (!parsed.ok()) return {std::string(parsed.status().message())};
  const auto addresses = parsed->For({1, stages});
  if (!addresses.ok()) return {std::string(addresses.status().message())};
  return *addresses;
}

TEST(StageAddressesTest, AddressesStandAsTheyAre) {
  EXPECT_THAT(For(3, {"a:4700", "unix:/run/b", "[::1]:4701"}),
              ElementsAre("a:4700", "unix:/run/b", "[::1]:4701"));
  EXPECT_TRUE(StageAddresses::Parse({})->empty());
}

TEST(StageAddressesTest, ARangeNamesBothItsEnds) {
  EXPECT_THAT(For(3, {"stage-{0..2}.stages:4700"}),
              ElementsAre("stage-0.stages:4700", "stage-1.stages:4700", "stage-2.stages:4700"));
  EXPECT_THAT(For(3, {"a:{4700..4701}", "b:4700"}), ElementsAre("a:4700", "a:4701", "b:4700"));
  EXPECT_THAT(For(2, {"unix:/run/s{9..10}"}), ElementsAre("unix:/run/s9", "unix:/run/s10"));
  EXPECT_EQ(StageAddresses::Parse({"a{0..9}:1", "b:1"})->count(), 11);
}

TEST(StageAddressesTest, ARangeIsPaddedAsItsFirstNumberIs) {
  EXPECT_THAT(For(3, {"node{08..10}:1"}), ElementsAre("node08:1", "node09:1", "node10:1"));
  EXPECT_THAT(For(2, {"node{0..1}:1"}), ElementsAre("node0:1", "node1:1"));
}

TEST(StageAddressesTest, AnOpenRangeGoesOnForAsManyStagesAsThereAre) {
  EXPECT_THAT(For(2, {"s{0..}:1"}), ElementsAre("s0:1", "s1:1"));
  EXPECT_THAT(For(3, {"a:1", "s{4..}:1"}), ElementsAre("a:1", "s4:1", "s5:1"));
  EXPECT_EQ(StageAddresses::Parse({"s{0..}:1"})->count(), std::nullopt);
  EXPECT_FALSE(StageAddresses::Parse({"s{0..}:1"})->empty());
}

TEST(StageAddressesTest, AnotherNumberThanThePipelinesIsRefused) {
  const char* kWanted = " addresses, want 2, the experiment's pipeline.stages";
  EXPECT_THAT(For(2, {"a:1"}), ElementsAre(std::string("1") + kWanted));
  EXPECT_THAT(For(2, {"a{0..2}:1"}), ElementsAre(std::string("3") + kWanted));
  EXPECT_THAT(For(2, {"a{0..2}:1", "b{0..}:1"}), ElementsAre(std::string("3") + kWanted));
}

TEST(StageAddressesTest, RefusalsQuoteWhatWasMet) {
  const auto refused = [](const std::vector<std::string>& texts) { return For(2, texts)[0]; };
  const std::string range = ", want one range like {0..3}, or {0..} for all stages from there on";
  for (const char* text : {"s{0:1", "s}0..1{:1", "s{0-1}:1", "s{}:1"}) {
    EXPECT_EQ(refused({text}), "\"" + std::string(text) + "\"" + range);
  }
  for (const char* text : {"s{..}:1", "s{a..b}:1", "s{-1..1}:1", "s{0..65536}:1", "s{0...3}:1"}) {
    EXPECT_EQ(refused({text}),
              "\"" + std::string(text) + "\", want numbers below 65536 as ends of its range");
  }
  EXPECT_EQ(refused({"s{2..1}:1"}),
            "\"s{2..1}:1\", want a range that does not end before it begins");
  EXPECT_EQ(refused({"s{0..}:1", "a:1"}),
            "\"s{0..}:1\", want an end of its range, as other addresses follow");
  EXPECT_EQ(refused({"s{0..1}"}), "\"s0\", want host:port with a port of at most 65535");
  EXPECT_EQ(refused({"a:0"}), "\"a:0\", want the port that the stage listens at");
  EXPECT_EQ(refused({"*:1"}), "\"*:1\", want the address of one server");
}

TEST(StageAddressesTest, MoreThanThereAreStagesMayBeSpares) {
  const auto addresses = StageAddresses::Parse({"a{0..3}:1"});
  std::vector<std::string> spares;
  EXPECT_THAT(*addresses->For({1, 2}, &spares), ElementsAre("a0:1", "a1:1"));
  EXPECT_THAT(spares, ElementsAre("a2:1", "a3:1"));
  EXPECT_FALSE(addresses->For({1, 5}, &spares).ok());
}

TEST(StageAddressesTest, TwoRangesNameTheCarriersAndTheStagesOfEach) {
  const auto addresses = StageAddresses::Parse({"r{1..2}s{08..09}:1", "x:1"});
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  ASSERT_TRUE(addresses->grid());
  EXPECT_EQ(addresses->grid()->carriers, 2);
  EXPECT_EQ(addresses->grid()->stages, 2);
  std::vector<std::string> spares;
  EXPECT_THAT(*addresses->For({2, 2}, &spares),
              ElementsAre("r1s08:1", "r1s09:1", "r2s08:1", "r2s09:1"));
  EXPECT_THAT(spares, ElementsAre("x:1"));
  EXPECT_EQ(addresses->For({2, 3}).status().message(),
            "5 addresses, want 6, the experiment's pipeline.stages for each of 2 carriers");
  EXPECT_FALSE(StageAddresses::Parse({"a{0..1}:1"})->grid());
  for (const std::vector<std::string>& texts :
       {std::vector<std::string>{"x:1", "r{0..1}s{0..1}:1"}, {"r{0..}s{0..1}:1"}}) {
    EXPECT_THAT(std::string(StageAddresses::Parse(texts).status().message()),
                ::testing::HasSubstr("two ranges in the first address only, with an end of both"));
  }
  EXPECT_FALSE(StageAddresses::Parse({"r{0..1}s{0..}:1"}).ok());
  EXPECT_FALSE(StageAddresses::Parse({"r{0..1}s{0..1}"}).ok());
}

TEST(StageAddressesTest, AServerThatComesTwiceIsNamed) {
  EXPECT_EQ(StageAddresses::Parse({"a{0..1}:1", "a1:1"})->For({1, 3}).status().message(),
            "\"a1:1\" comes twice, want a server of its own for each stage");
  EXPECT_EQ(StagesOfGroups({"a:1,b:1", "c:1,a:1"}).status().message(),
            "--stages: \"a:1\" comes twice, want a server of its own for each stage");
}

TEST(StageAddressesTest, GroupsHaveEquallyManyStages) {
  EXPECT_EQ(*StagesOfGroups({}), 0);
  EXPECT_EQ(*StagesOfGroups({"a:1,b:1", "c{1..2}:1"}), 2);
  EXPECT_EQ(*StagesOfGroups({"a{1..}:1"}), 0);
  EXPECT_EQ(*StagesOfGroups({"a:1,b{1..}:1"}), 0);
  EXPECT_EQ(std::string(StagesOfGroups({"a:1,b:1", "c:1"}).status().message()),
            "--stages c:1: names 1 servers, want 2 as the first group has");
  EXPECT_EQ(std::string(StagesOfGroups({"foo"}).status().message()).rfind("--stages: \"foo\"", 0),
            0u);
}

}  // namespace
}  // namespace thinwire
