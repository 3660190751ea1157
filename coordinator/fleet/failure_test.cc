#include "coordinator/fleet/failure.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using Kind = Failure::Kind;

std::string Cause(std::vector<Failure> failures) {
  return std::string(RootCause(std::move(failures)).message());
}

TEST(RootCauseTest, ADeadStageComesBeforeWhatItsNeighboursSay) {
  EXPECT_EQ(Cause({{0, Kind::kError, absl::DataLossError("stage 0: broken frame")},
                   {1, Kind::kDead, absl::UnavailableError("stage 1 died")}}),
            "stage 1 died\n  also: stage 0: broken frame");
}

TEST(RootCauseTest, ASilentStageComesBeforeErrors) {
  EXPECT_EQ(Cause({{2, Kind::kError, absl::DeadlineExceededError("stage 2 waited")},
                   {1, Kind::kSilent, absl::UnavailableError("stage 1 is silent")}}),
            "stage 1 is silent\n  also: stage 2 waited");
}

TEST(RootCauseTest, AnErrorOfItsOwnComesBeforeALostNeighbour) {
  EXPECT_EQ(Cause({{0, Kind::kError, absl::UnavailableError("stage 0: peer gone")},
                   {1, Kind::kError, absl::DeadlineExceededError("stage 1: waited")},
                   {2, Kind::kError, absl::InvalidArgumentError("stage 2: loss is nan")}}),
            "stage 2: loss is nan\n  also: stage 1: waited\n  also: stage 0: peer gone");
}

TEST(RootCauseTest, OfEqualsTheFirstWins) {
  EXPECT_EQ(Cause({{3, Kind::kError, absl::InternalError("first")},
                   {0, Kind::kError, absl::InternalError("second")}}),
            "first\n  also: second");
}

TEST(RootCauseTest, CancelledCallsAndASecondWordOfAStageAreLeftOut) {
  EXPECT_EQ(Cause({{1, Kind::kError, absl::UnavailableError("stage 1: call failed")},
                   {1, Kind::kDead, absl::UnavailableError("stage 1 died")},
                   {0, Kind::kError, absl::CancelledError("stage 0: cancelled")}}),
            "stage 1 died");
}

TEST(RootCauseTest, TheCoordinatorsOwnFailureStandsAlone) {
  EXPECT_EQ(Cause({{Failure::kCoordinator, Kind::kError, absl::InternalError("disk is full")},
                   {1, Kind::kError, absl::UnavailableError("stage 1: the peer is gone")}}),
            "disk is full");
}

TEST(FailureTest, WhatIsGoneOrOutOfReachIsALossAndAnErrorOfTheWorkIsNot) {
  using Kind = Failure::Kind;
  EXPECT_TRUE(IsLoss({1, Kind::kDead, absl::UnavailableError("died")}));
  EXPECT_TRUE(IsLoss({1, Kind::kSilent, absl::UnavailableError("silent")}));
  EXPECT_TRUE(IsLoss({1, Kind::kError, absl::DeadlineExceededError("no message")}));
  EXPECT_FALSE(IsLoss({1, Kind::kError, absl::InvalidArgumentError("bad")}));
  EXPECT_FALSE(IsLoss({Failure::kCoordinator, Kind::kError, absl::UnavailableError("disk")}));
}

}  // namespace
}  // namespace thinwire
