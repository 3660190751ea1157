#include "schedule/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr ScheduleKind kGPipe = ScheduleKind::kGPipe;
constexpr ScheduleKind k1F1B = ScheduleKind::kOneForwardOneBackward;
constexpr ScheduleKind kZeroBubble = ScheduleKind::kZeroBubble;

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

TEST(ZeroBubbleTest, TheFirstStagePutsNoWeightsOff) {
  EXPECT_EQ(Spelled(StageActions(kZeroBubble, /*stage=*/0, /*stages=*/3, /*microbatches=*/4)),
            "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3");
}

TEST(ZeroBubbleTest, EachFurtherStagePutsThemOffByOneMicrobatchMore) {
  EXPECT_EQ(Spelled(StageActions(kZeroBubble, /*stage=*/1, /*stages=*/3, /*microbatches=*/4)),
            "F0 F1 B0 F2 B1 W0 F3 B2 W1 B3 W2 W3");
  EXPECT_EQ(Spelled(StageActions(kZeroBubble, /*stage=*/2, /*stages=*/3, /*microbatches=*/4)),
            "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3");
}

TEST(ZeroBubbleTest, FewMicrobatchesPutAllWeightsOff) {
  EXPECT_EQ(Spelled(StageActions(kZeroBubble, /*stage=*/3, /*stages=*/4, /*microbatches=*/2)),
            "F0 B0 F1 B1 W0 W1");
}

template <typename Check>
void ForEveryStage(const Check& check) {
  for (ScheduleKind kind : AllSchedules()) {
    for (int stages = 1; stages <= 8; ++stages) {
      for (int microbatches = 1; microbatches <= 16; ++microbatches) {
        for (int stage = 0; stage < stages; ++stage) {
          SCOPED_TRACE(testing::Message() << Name(kind) << " stage " << stage << " of " << stages
                                          << ", microbatches " << microbatches);
          check(kind, stage, stages, microbatches);
        }
      }
    }
  }
}

// How many microbatches are through each part.
struct Through {
  int forward = 0, backward = 0, weights = 0;
  int* of(Action::Kind kind) {
    if (kind == Action::Kind::kForward) return &forward;
    return kind == Action::Kind::kBackwardWeight ? &weights : &backward;
  }
};

TEST(StageActionsTest, RunsEachMicrobatchOnceEachWayInAscendingOrderWithinTheInFlightBound) {
  ForEveryStage([](ScheduleKind kind, int stage, int stages, int microbatches) {
    Through through;
    int most = 0;
    for (const Action& action : StageActions(kind, stage, stages, microbatches)) {
      ASSERT_EQ(action.kind == Action::Kind::kBackward,
                action.kind != Action::Kind::kForward && !SplitsBackward(kind));
      ASSERT_EQ(action.microbatch, (*through.of(action.kind))++);
      ASSERT_LE(through.backward, through.forward);
      ASSERT_LE(through.weights, through.backward);
      most = std::max(most, through.forward - through.backward);
    }
    ASSERT_EQ(through.forward, microbatches);
    ASSERT_EQ(through.backward, microbatches);
    ASSERT_EQ(most, MaxInFlight(kind, stage, stages, microbatches));
    ASSERT_EQ(through.weights, SplitsBackward(kind) ? microbatches : 0);
  });
}

TEST(FullestStatesTest, NothingTakesMoreAtAnyTimeWhateverAMicrobatchTakes) {
  ForEveryStage([](ScheduleKind kind, int stage, int stages, int microbatches) {
    // Of a microbatch in flight and of one that waits.
    const std::pair<int, int> costs[] = {{1, 0}, {0, 1}, {1, 1}, {3, 2}, {2, 3}, {1, 9}};
    for (const auto& [of_flight, of_waiting] : costs) {
      int most = 0, fullest = 0;
      Through through;
      for (const Action& action : StageActions(kind, stage, stages, microbatches)) {
        ++*through.of(action.kind);
        const int waiting = SplitsBackward(kind) ? through.backward - through.weights : 0;
        most =
            std::max(most, of_flight * (through.forward - through.backward) + of_waiting * waiting);
      }
      for (const Held& held : FullestStates(kind, stage, stages, microbatches)) {
        fullest = std::max(fullest, of_flight * held.in_flight + of_waiting * held.waiting);
      }
      ASSERT_EQ(fullest, most) << of_flight << ", " << of_waiting;
    }
  });
}

TEST(ZeroBubbleTest, NoStageHoldsMoreThanTheFirstOf1F1B) {
  ForEveryStage([](ScheduleKind kind, int stage, int stages, int microbatches) {
    if (kind != kZeroBubble) return;
    Through through;
    for (const Action& action : StageActions(kind, stage, stages, microbatches)) {
      ++*through.of(action.kind);
      ASSERT_LE(through.forward - through.weights,
                MaxInFlight(k1F1B, /*stage=*/0, stages, microbatches));
    }
  });
}

TEST(ZeroBubbleTest, IsOneForwardOneBackwardWithWeightsInBetween) {
  ForEveryStage([](ScheduleKind kind, int stage, int stages, int microbatches) {
    if (kind != kZeroBubble) return;
    std::vector<Action> exchanging;
    for (const Action& action : StageActions(kind, stage, stages, microbatches)) {
      if (action.kind == Action::Kind::kBackwardWeight) continue;
      const bool is_forward = action.kind == Action::Kind::kForward;
      exchanging.push_back({is_forward ? action.kind : Action::Kind::kBackward, action.microbatch});
    }
    ASSERT_EQ(exchanging, StageActions(k1F1B, stage, stages, microbatches));
  });
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
  ForEveryStage([](ScheduleKind kind, int stage, int stages, int microbatches) {
    if (kind == kGPipe) return;
    int forwards = 0;
    for (const Action& action : StageActions(kind, stage, stages, microbatches)) {
      forwards += action.kind == Action::Kind::kForward;
      if (action.kind != Action::Kind::kForward && action.kind != Action::Kind::kBackwardWeight &&
          InCoolDown(stage, stages, microbatches, action.microbatch)) {
        ASSERT_EQ(forwards, microbatches);
      }
    }
  });
}

TEST(ScheduleNamesTest, KnowsItsNamesAndRefusesOthers) {
  ScheduleKind back;
  for (ScheduleKind kind : {kGPipe, k1F1B, kZeroBubble}) {
    ASSERT_TRUE(FromName(Name(kind), &back).ok());
    EXPECT_EQ(back, kind);
  }
  const absl::Status status = FromName("2f1b", &back);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      status.message(),
      "schedule: unknown \"2f1b\", nearest is \"1f1b\" (want one of gpipe, 1f1b, zero_bubble)");
}

TEST(ActionNamesTest, SayWhichPartOfABackwardItIs) {
  EXPECT_STREQ(Name(Action::Kind::kForward), "forward");
  EXPECT_STREQ(Name(Action::Kind::kBackward), "backward");
  EXPECT_STREQ(Name(Action::Kind::kBackwardInput), "backward_input");
  EXPECT_STREQ(Name(Action::Kind::kBackwardWeight), "backward_weight");
}

}  // namespace
}  // namespace thinwire
