#include "schedule/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr ScheduleKind kGPipe = ScheduleKind::kGPipe;
constexpr ScheduleKind k1F1B = ScheduleKind::kOneForwardOneBackward;

TEST(GPipeTest, RunsAllForwardsThenAllBackwards) {
  EXPECT_EQ(Spelled(StageActions(kGPipe, /*stage=*/1, /*stages=*/3, /*microbatches=*/3)),
            "F0 F1 F2 B0 B1 B2");
}

TEST(OneForwardOneBackwardTest, FirstOfThreeStagesRunsTwoAhead) {
  EXPECT_EQ(Spelled(StageActions(k1F1B, /*stage=*/0, /*stages=*/3, /*microbatches=*/4)),
            "F0 F1 F2 B0 F3 B1 B2 B3");
}

TEST(OneForwardOneBackwardTest, MiddleStageRunsOneAhead) {
  EXPECT_EQ(Spelled(StageActions(k1F1B, /*stage=*/1, /*stages=*/3, /*microbatches=*/4)),
            "F0 F1 B0 F2 B1 F3 B2 B3");
}

TEST(OneForwardOneBackwardTest, LastStageAlternates) {
  EXPECT_EQ(Spelled(StageActions(k1F1B, /*stage=*/2, /*stages=*/3, /*microbatches=*/4)),
            "F0 B0 F1 B1 F2 B2 F3 B3");
}

TEST(OneForwardOneBackwardTest, FewerMicrobatchesThanStagesOnlyWarmUpAndDrain) {
  EXPECT_EQ(Spelled(StageActions(k1F1B, /*stage=*/0, /*stages=*/8, /*microbatches=*/2)),
            "F0 F1 B0 B1");
}

TEST(StageActionsTest, RunsEachMicrobatchOnceEachWayInAscendingOrderWithinTheInFlightBound) {
  for (ScheduleKind kind : {kGPipe, k1F1B}) {
    for (int stages = 1; stages <= 8; ++stages) {
      for (int microbatches = 1; microbatches <= 16; ++microbatches) {
        for (int stage = 0; stage < stages; ++stage) {
          SCOPED_TRACE(testing::Message() << Name(kind) << " stage " << stage << " of " << stages
                                          << ", microbatches " << microbatches);
          int forward = 0, backward = 0, most = 0;
          for (const Action& action : StageActions(kind, stage, stages, microbatches)) {
            int& next = action.kind == Action::Kind::kForward ? forward : backward;
            ASSERT_EQ(action.microbatch, next++);
            ASSERT_LE(backward, forward);
            most = std::max(most, forward - backward);
          }
          ASSERT_EQ(forward, microbatches);
          ASSERT_EQ(backward, microbatches);
          ASSERT_EQ(most, MaxInFlight(kind, stage, stages, microbatches));
        }
      }
    }
  }
}

TEST(MaxInFlightTest, GPipeHoldsAllMicrobatchesAnd1F1BOnlyThoseStillOnTheirWay) {
  EXPECT_EQ(MaxInFlight(kGPipe, /*stage=*/3, /*stages=*/4, /*microbatches=*/16), 16);
  EXPECT_EQ(MaxInFlight(k1F1B, /*stage=*/0, /*stages=*/4, /*microbatches=*/16), 4);
  EXPECT_EQ(MaxInFlight(k1F1B, /*stage=*/3, /*stages=*/4, /*microbatches=*/16), 1);
  EXPECT_EQ(MaxInFlight(k1F1B, /*stage=*/0, /*stages=*/4, /*microbatches=*/2), 2);
}

// Three stages with four microbatches do: F0 F1 F2 B0 F3 B1 | B2 B3, F0 F1 B0 F2 B1 F3 B2 | B3 and
// F0 B0 F1 B1 F2 B2 F3 B3.
TEST(CoolDownTest, IsWhatFollowsTheLastPairOfForwardAndBackward) {
  const auto cool = [](int stage, int stages, int microbatches) {
    std::vector<int> cool;
    for (int m = 0; m < microbatches; ++m) {
      if (InCoolDown(stage, stages, microbatches, m)) cool.push_back(m);
    }
    return cool;
  };
  EXPECT_THAT(cool(/*stage=*/0, /*stages=*/3, /*microbatches=*/4), ElementsAre(2, 3));
  EXPECT_THAT(cool(1, 3, 4), ElementsAre(3));
  EXPECT_THAT(cool(2, 3, 4), IsEmpty());
  EXPECT_THAT(cool(0, 4, 2), ElementsAre(0, 1));  // no pair at all: too few microbatches
  EXPECT_THAT(cool(0, 1, 5), IsEmpty());
}

TEST(CoolDownTest, NoForwardIsLeftInIt) {
  for (int stages = 1; stages <= 8; ++stages) {
    for (int microbatches = 1; microbatches <= 16; ++microbatches) {
      for (int stage = 0; stage < stages; ++stage) {
        int forwards = 0;
        for (const Action& action : StageActions(k1F1B, stage, stages, microbatches)) {
          forwards += action.kind == Action::Kind::kForward;
          if (action.kind == Action::Kind::kBackward &&
              InCoolDown(stage, stages, microbatches, action.microbatch)) {
            ASSERT_EQ(forwards, microbatches) << stage << " of " << stages;
          }
        }
      }
    }
  }
}

TEST(ScheduleNamesTest, KnowsItsNamesAndRefusesOthers) {
  ScheduleKind back;
  for (ScheduleKind kind : {kGPipe, k1F1B}) {
    ASSERT_TRUE(FromName(Name(kind), &back).ok());
    EXPECT_EQ(back, kind);
  }
  const absl::Status status = FromName("2f1b", &back);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "schedule: unknown \"2f1b\", nearest is \"1f1b\" (want one of gpipe, 1f1b)");
}

}  // namespace
}  // namespace thinwire
