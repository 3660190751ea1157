#include "coordinator/session/members.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Three pipelines of two stages.
Members Three(int least = 1, std::vector<std::string> idle = {}) {
  return Members({"a0", "a1", "b0", "b1", "c0", "c1"}, 3, least, std::move(idle));
}

TEST(MembersTest, AnIdleServerTakesThePlaceOfALostOne) {
  Members members = Three(1, {"x"});
  members.Lose({3});
  EXPECT_THAT(members.carrying(), ElementsAre("a0", "a1", "b0", "x", "c0", "c1"));
  EXPECT_THAT(members.idle(), IsEmpty());
  EXPECT_THAT(members.away(), ElementsAre("b1"));
}

TEST(MembersTest, OtherwiseThePipelineThatIsLeastMissedGivesOne) {
  Members members = Three();
  members.Lose({1});
  EXPECT_THAT(members.carrying(), ElementsAre("a0", "c1", "b0", "b1"));
  EXPECT_THAT(members.idle(), ElementsAre("c0"));
  EXPECT_THAT(members.away(), ElementsAre("a1"));
  EXPECT_EQ(members.carriers(), 2);
  members.Lose({3});  // the next loss finds one that is idle
  EXPECT_THAT(members.carrying(), ElementsAre("a0", "c1", "b0", "c0"));
  EXPECT_THAT(members.away(), ElementsAre("a1", "b1"));
}

TEST(MembersTest, TwoBrokenPipelinesMakeAWholeOne) {
  Members members = Three();
  members.Lose({2, 5});
  EXPECT_THAT(members.carrying(), ElementsAre("a0", "a1", "c0", "b1"));
  EXPECT_THAT(members.idle(), IsEmpty());
  EXPECT_THAT(members.away(), UnorderedElementsAre("b0", "c1"));
}

TEST(MembersTest, WhoWouldLeaveTooFewKeepsItsPlace) {
  Members members = Three(/*least=*/3);
  members.Lose({1});
  EXPECT_EQ(members.carriers(), 3);
  EXPECT_EQ(members.carrying()[1], "a1");
  EXPECT_THAT(members.away(), IsEmpty());
  Members all = Three();
  all.Lose({0, 2, 4});
  EXPECT_EQ(all.carriers(), 1) << "of the stage that is wholly lost one is waited for";
}

TEST(MembersTest, WhoReturnsMakesAnotherPipelineWithOthersThatAreIdle) {
  Members members = Three();
  members.Lose({1});
  EXPECT_FALSE(members.CanGrow());
  members.Return("nobody");
  members.Return("a1");
  EXPECT_TRUE(members.CanGrow());
  members.Grow();
  EXPECT_EQ(members.carriers(), 3);
  EXPECT_THAT(members.carrying(), ElementsAre("a0", "c1", "b0", "b1", "c0", "a1"));
  members.Return("a1");
  EXPECT_FALSE(members.CanGrow()) << "there are as many as there were";
}

}  // namespace
}  // namespace thinwire
