#include "coordinator/session/members.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

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
  members.Arrive("a1");
  EXPECT_TRUE(members.CanGrow());
  members.Grow();
  EXPECT_EQ(members.carriers(), 3);
  EXPECT_THAT(members.carrying(), ElementsAre("a0", "c1", "b0", "b1", "c0", "a1"));
  members.Arrive("a1");
  EXPECT_FALSE(members.CanGrow()) << "there are as many as there were";
  EXPECT_THAT(members.idle(), IsEmpty()) << "a server is there once";
}

TEST(MembersTest, GuestsMakePipelinesUpToTheMost) {
  Members members = Three();
  members.Arrive("x");
  members.Arrive("y");
  EXPECT_FALSE(members.CanGrow());
  members.set_most(4);
  EXPECT_TRUE(members.CanGrow());
  members.Grow();
  EXPECT_THAT(members.carrying(), ElementsAre("a0", "a1", "b0", "b1", "c0", "c1", "x", "y"));
}

TEST(MembersTest, FreshServersTakePlacesWithoutAPause) {
  Members members({"a0", "a1", "b0", "b1", "c0", "c1", "d0", "d1"}, /*carriers=*/4, /*least=*/1,
                  {"x"});
  members.Lose({1}, /*fresh=*/true);
  EXPECT_THAT(members.carrying(), ElementsAre("a0", "d1", "b0", "b1", "c0", "c1"))
      << "the idle server would have to fetch the stage's state";
  EXPECT_THAT(members.idle(), ElementsAre("x", "d0"));
  members.Lose({2}, /*fresh=*/true);
  EXPECT_THAT(members.carrying(), ElementsAre("a0", "d1", "c0", "b1"))
      << "d0 has missed the steps since then";
  members.Lose({0});
  EXPECT_THAT(members.carrying(), ElementsAre("d0", "d1", "c0", "b1"));
  members.Lose({0, 2}, /*fresh=*/true);
  EXPECT_THAT(members.carrying(), ElementsAre("x", "d1"))
      << "at least one pipeline, whoever makes it";
}

TEST(MembersTest, APauseHasToEarnWhatItTakes) {
  Members members = Three();
  members.set_most(5);
  EXPECT_FALSE(members.PaysToGrow(absl::Hours(1), absl::ZeroDuration())) << "nobody has come";
  for (const char* guest : {"w", "x"}) members.Arrive(guest);
  EXPECT_TRUE(members.PaysToGrow(absl::ZeroDuration(), absl::ZeroDuration()));
  EXPECT_FALSE(members.PaysToGrow(absl::Seconds(5), absl::Seconds(2)));
  EXPECT_TRUE(members.PaysToGrow(absl::Seconds(6), absl::Seconds(2)))
      << "a fourth pipeline does a third of what three do";
  EXPECT_FALSE(members.PaysToFill(absl::Seconds(5), absl::Seconds(2)));
  EXPECT_TRUE(members.PaysToFill(absl::Seconds(6), absl::Seconds(2)));
  for (const char* guest : {"y", "z"}) members.Arrive(guest);
  EXPECT_TRUE(members.PaysToGrow(absl::Seconds(3), absl::Seconds(2))) << "two do twice as much";
}

TEST(MembersTest, ServersChangePlacesAndAPipelineWithoutGuestsIsTheFirst) {
  Members members = Three();
  members.Arrive("x");
  members.Lose({1});
  members.Place({"b0", "x", "c0", "b1", "a0", "c1"});
  EXPECT_THAT(members.carrying(), ElementsAre("c0", "b1", "b0", "x", "a0", "c1"));
  members.Arrive("y");
  members.Arrive("z");
  members.Lose({0, 4});
  members.Place({"y", "b1", "b0", "x", "z", "c1"});
  EXPECT_THAT(members.carrying(), ElementsAre("y", "b1", "b0", "x", "z", "c1"))
      << "all have guests";
}

TEST(MembersTest, AnIdleServerThatIsGoneIsAway) {
  Members members = Three();
  members.Lose({1});
  ASSERT_THAT(members.idle(), ElementsAre("c0"));
  members.LoseIdle("c0");
  members.LoseIdle("nobody");
  EXPECT_THAT(members.idle(), IsEmpty());
  EXPECT_THAT(members.away(), ElementsAre("a1", "c0"));
}

TEST(MembersTest, NothingIsKeptOfAGuestThatIsGone) {
  Members members = Three();
  members.Arrive("x");
  members.Arrive("y");
  members.DropGuests([](const std::string& address) { return address == "y"; });
  EXPECT_THAT(members.idle(), ElementsAre("y"));
  members.Lose({0});
  members.Lose({0});  // the guest, which had that place
  EXPECT_THAT(members.away(), ElementsAre("a0")) << "a guest comes by itself";
  EXPECT_EQ(members.carriers(), 2);
}

TEST(MembersTest, AThousandGuestsLeaveNothingBehind) {
  Members members = Three();
  for (int i = 0; i < 1000; ++i) {
    members.Arrive("x" + std::to_string(i));
    members.Lose({5});  // a server of the run first, which stays away; then each guest
    members.CountJoined();
  }
  EXPECT_THAT(members.away(), ElementsAre("c1"));
  EXPECT_THAT(members.idle(), IsEmpty());
  EXPECT_EQ(members.counts().joined, 1000);
  EXPECT_EQ(members.counts().lost, 1000);
}

TEST(MembersTest, CountsWhoCameAndWent) {
  Members members = Three();
  members.CountLeaving({1});
  members.Lose({1});
  members.Grow();
  members.CountJoined();
  EXPECT_EQ(members.counts().left, 1);
  EXPECT_EQ(members.counts().lost, 0);
  EXPECT_EQ(members.counts().joined, 0) << "those that stand by had a stage before";
  EXPECT_EQ(members.counts().carrying, 4);
  EXPECT_EQ(members.counts().idle, 1);
  EXPECT_EQ(members.counts().away, 1);
  members.Arrive("a1");
  members.Grow();
  members.CountJoined();
  EXPECT_EQ(members.counts().joined, 1) << "of the two that make the pipeline one was here";
  members.Lose({0});
  EXPECT_EQ(members.counts().lost, 1);
  members.Arrive("x");
  members.Grow();
  members.CountJoined();
  EXPECT_EQ(members.counts().joined, 2);
  EXPECT_EQ(members.carrying().back(), "x");
  members.Dismiss(5);
  members.Lose({5});
  EXPECT_EQ(members.counts().joined, 1) << "it could not do its work";
  EXPECT_EQ(members.counts().lost, 1);
}

TEST(MembersTest, ADismissedGuestIsNotWaitedForButWhoWasThereBefore) {
  Members members({"a0", "a1"}, /*carriers=*/1, /*least=*/1, {});
  members.Arrive("x");
  members.Lose({1});
  members.CountJoined();
  ASSERT_THAT(members.carrying(), ElementsAre("a0", "x"));
  members.Dismiss(1);
  members.Lose({1});
  members.CountJoined();
  EXPECT_THAT(members.carrying(), ElementsAre("a0", "a1"));
  EXPECT_FALSE(members.IsGuest("a1"));
  EXPECT_THAT(members.away(), IsEmpty());
  EXPECT_EQ(members.counts().joined, 0);
}

}  // namespace
}  // namespace thinwire
