#include "schedule/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr ScheduleKind kGPipe = ScheduleKind::kGPipe;
constexpr ScheduleKind k1F1B = ScheduleKind::kOneForwardOneBackward;
constexpr ScheduleKind kZeroBubble = ScheduleKind::kZeroBubble;
constexpr ScheduleKind kInterleaved = ScheduleKind::kInterleaved;
constexpr ScheduleKind kTeraPipe = ScheduleKind::kTeraPipe;

// Returns the most passes of a stage, through all its chunks, that are forward and not yet
// backward.
int MostInFlight(ScheduleKind kind, int stage, int stages, int microbatches, int chunks = 1,
                 int slices = 1) {
  int most = 0;
  for (const std::vector<Held>& state :
       FullestStates(kind, stage, stages, microbatches, chunks, slices)) {
    int passes = 0;
    for (const Held& held : state) passes += held.in_flight;
    most = std::max(most, passes);
  }
  return most;
}

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

// Two stages with two chunks each: of the four segments stage 0 has the first and the third.
TEST(InterleavedTest, StagesTakeTurnsOnTheirChunks) {
  EXPECT_EQ(Spelled(StageActions(kInterleaved, /*stage=*/0, /*stages=*/2, /*microbatches=*/4,
                                 /*chunks=*/2)),
            "F0 F1 F0.1 F1.1 F2 B0.1 F3 B1.1 F2.1 B0 F3.1 B1 B2.1 B3.1 B2 B3");
  EXPECT_EQ(Spelled(StageActions(kInterleaved, /*stage=*/1, /*stages=*/2, /*microbatches=*/4,
                                 /*chunks=*/2)),
            "F0 F1 F0.1 B0.1 F1.1 B1.1 F2 B0 F3 B1 F2.1 B2.1 F3.1 B3.1 B2 B3");
}

TEST(InterleavedTest, MicrobatchesThatFillNoGroupAreLeftOut) {
  EXPECT_EQ(Spelled(StageActions(kInterleaved, /*stage=*/1, /*stages=*/2, /*microbatches=*/3,
                                 /*chunks=*/2)),
            "F0 F1 F0.1 B0.1 F1.1 B1.1 F2 B0 B1 F2.1 B2.1 B2");
}

TEST(InterleavedTest, WithOneChunkItIsOneForwardOneBackward) {
  EXPECT_EQ(StageActions(kInterleaved, /*stage=*/1, /*stages=*/3, /*microbatches=*/4),
            StageActions(k1F1B, /*stage=*/1, /*stages=*/3, /*microbatches=*/4));
}

TEST(InterleavedTest, TheFirstStageHoldsLittleMoreThanThatOf1F1B) {
  // 4 stages with at least 8 microbatches; a chunk is half of a stage.
  EXPECT_EQ(MostInFlight(k1F1B, /*stage=*/0, /*stages=*/4, /*microbatches=*/8), 4);
  EXPECT_EQ(MostInFlight(kInterleaved, /*stage=*/0, /*stages=*/4, /*microbatches=*/8, /*chunks=*/2),
            11);
  EXPECT_EQ(MostInFlight(kInterleaved, /*stage=*/3, /*stages=*/4, /*microbatches=*/8, /*chunks=*/2),
            5);
}

// Three stages with two microbatches of three slices.
TEST(TeraPipeTest, SlicesTakeTheirMicrobatchesPlaceAndGoBackwardTheOtherWay) {
  const auto spelled = [](int stage) {
    return Spelled(StageActions(kTeraPipe, stage, /*stages=*/3, /*microbatches=*/2, /*chunks=*/1,
                                /*slices=*/3));
  };
  EXPECT_EQ(spelled(0), "F0 F1 F2 F3 F4 F5 B2 B1 B0 B5 B4 B3");
  EXPECT_EQ(spelled(2), "F0 F1 F2 B2 B1 B0 F3 F4 F5 B5 B4 B3");
}

TEST(TeraPipeTest, WithOneSliceItIsOneForwardOneBackward) {
  EXPECT_EQ(StageActions(kTeraPipe, /*stage=*/1, /*stages=*/3, /*microbatches=*/4),
            StageActions(k1F1B, /*stage=*/1, /*stages=*/3, /*microbatches=*/4));
}

struct Size {
  int stages, microbatches, chunks, slices;
};

template <typename Check>
void ForEveryStage(const Check& check) {
  for (ScheduleKind kind : AllOf<ScheduleKind>()) {
    // A schedule has chunks or slices or neither.
    const int most_parts = Interleaves(kind) || Slices(kind) ? 4 : 1;
    for (int parts = 1; parts <= most_parts; ++parts) {
      const int chunks = Interleaves(kind) ? parts : 1, slices = Slices(kind) ? parts : 1;
      for (int stages = 1; stages <= 8; ++stages) {
        for (int microbatches = 1; microbatches <= 16; ++microbatches) {
          for (int stage = 0; stage < stages; ++stage) {
            SCOPED_TRACE(testing::Message() << Name(kind) << " stage " << stage << " of " << stages
                                            << ", microbatches " << microbatches << ", chunks "
                                            << chunks << ", slices " << slices);
            check(kind, stage, Size{stages, microbatches, chunks, slices});
          }
        }
      }
    }
  }
}

// Numbers of microbatches that are through each part of a chunk.
struct Through {
  int forward = 0, backward = 0, weights = 0;
  int* of(Action::Kind kind) {
    if (kind == Action::Kind::kForward) return &forward;
    return kind == Action::Kind::kBackwardWeight ? &weights : &backward;
  }
};

TEST(StageActionsTest, RunsEachMicrobatchOnceEachWayInAscendingOrderWithinTheInFlightBound) {
  ForEveryStage([](ScheduleKind kind, int stage, const Size& size) {
    const auto& [stages, microbatches, chunks, slices] = size;
    std::vector<Through> through(chunks);
    int most = 0, in_flight = 0;
    for (const Action& action : StageActions(kind, stage, stages, microbatches, chunks, slices)) {
      ASSERT_EQ(action.kind == Action::Kind::kBackward,
                action.kind != Action::Kind::kForward && !SplitsBackward(kind));
      Through& at = through[action.chunk];
      const int place = (*at.of(action.kind))++;
      const bool forward = action.kind == Action::Kind::kForward;
      ASSERT_EQ(action.microbatch, forward ? place : UnitOfBackward(place, slices));
      ASSERT_LE(at.backward, at.forward);
      ASSERT_LE(at.weights, at.backward);
      if (action.kind != Action::Kind::kBackwardWeight) {
        in_flight += action.kind == Action::Kind::kForward ? 1 : -1;
      }
      most = std::max(most, in_flight);
    }
    for (const Through& at : through) {
      ASSERT_EQ(at.forward, microbatches * slices);
      ASSERT_EQ(at.backward, microbatches * slices);
      ASSERT_EQ(at.weights, SplitsBackward(kind) ? microbatches : 0);
    }
    ASSERT_EQ(most, MostInFlight(kind, stage, stages, microbatches, chunks, slices));
    if (kind == kGPipe) {
      ASSERT_EQ(most, microbatches);
    } else if (chunks == 1) {
      ASSERT_EQ(most, slices * std::min(stages - stage, microbatches));
    } else {
      const int bound = (chunks - 1) * stages + 2 * (stages - 1 - stage) + 1;
      ASSERT_LE(most, std::min(bound, chunks * microbatches));
      if (microbatches % stages == 0) {
        ASSERT_EQ(most, std::min(bound, chunks * microbatches));
      }
    }
  });
}

TEST(FullestStatesTest, NothingTakesMoreAtAnyTimeWhateverAMicrobatchTakes) {
  ForEveryStage([](ScheduleKind kind, int stage, const Size& size) {
    const auto& [stages, microbatches, chunks, slices] = size;
    // Cost of a microbatch in flight, cost of one that waits, and increase for each further chunk.
    const std::tuple<int, int, int> costs[] = {{1, 0, 0}, {0, 1, 0}, {1, 1, 5},
                                               {3, 2, 1}, {2, 3, 0}, {9, 9, -3}};
    for (const auto& [of_flight, of_waiting, more] : costs) {
      int most = 0, fullest = 0;
      std::vector<Through> through(chunks);
      for (const Action& action : StageActions(kind, stage, stages, microbatches, chunks, slices)) {
        ++*through[action.chunk].of(action.kind);
        int now = 0;
        for (int c = 0; c < chunks; ++c) {
          const Through& at = through[c];
          const int waiting = SplitsBackward(kind) ? at.backward - at.weights : 0;
          now += (of_flight + c * more) * (at.forward - at.backward) +
                 (of_waiting + c * more) * waiting;
        }
        most = std::max(most, now);
      }
      for (const std::vector<Held>& state :
           FullestStates(kind, stage, stages, microbatches, chunks, slices)) {
        int bytes = 0;
        for (int c = 0; c < chunks; ++c) {
          bytes += (of_flight + c * more) * state[c].in_flight +
                   (of_waiting + c * more) * state[c].waiting;
        }
        fullest = std::max(fullest, bytes);
      }
      ASSERT_EQ(fullest, most) << of_flight << ", " << of_waiting << ", " << more;
    }
  });
}

TEST(ZeroBubbleTest, NoStageHoldsMoreThanTheFirstOf1F1B) {
  ForEveryStage([](ScheduleKind kind, int stage, const Size& size) {
    if (kind != kZeroBubble) return;
    const auto& [stages, microbatches, chunks, slices] = size;
    Through through;
    for (const Action& action : StageActions(kind, stage, stages, microbatches)) {
      ++*through.of(action.kind);
      ASSERT_LE(through.forward - through.weights,
                MostInFlight(k1F1B, /*stage=*/0, stages, microbatches));
    }
  });
}

TEST(ZeroBubbleTest, IsOneForwardOneBackwardWithWeightsInBetween) {
  ForEveryStage([](ScheduleKind kind, int stage, const Size& size) {
    if (kind != kZeroBubble) return;
    const auto& [stages, microbatches, chunks, slices] = size;
    std::vector<Action> exchanging;
    for (const Action& action : StageActions(kind, stage, stages, microbatches)) {
      if (action.kind == Action::Kind::kBackwardWeight) continue;
      const bool is_forward = action.kind == Action::Kind::kForward;
      exchanging.push_back({is_forward ? action.kind : Action::Kind::kBackward, action.microbatch});
    }
    ASSERT_EQ(exchanging, StageActions(k1F1B, stage, stages, microbatches));
  });
}

TEST(InFlightTest, GPipeHoldsAllMicrobatchesAnd1F1BOnlyThoseStillOnTheirWay) {
  EXPECT_EQ(MostInFlight(kGPipe, /*stage=*/3, /*stages=*/4, /*microbatches=*/16), 16);
  EXPECT_EQ(MostInFlight(k1F1B, /*stage=*/0, /*stages=*/4, /*microbatches=*/16), 4);
  EXPECT_EQ(MostInFlight(k1F1B, /*stage=*/3, /*stages=*/4, /*microbatches=*/16), 1);
  EXPECT_EQ(MostInFlight(k1F1B, /*stage=*/0, /*stages=*/4, /*microbatches=*/2), 2);
}

// With three stages and four microbatches the stages do F0 F1 F2 B0 F3 B1 | B2 B3, F0 F1 B0 F2 B1
// F3 B2 | B3 and F0 B0 F1 B1 F2 B2 F3 B3.
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
  EXPECT_THAT(cool(0, 4, 2), ElementsAre(0, 1));  // no pair at all, as microbatches are too few
  EXPECT_THAT(cool(0, 1, 5), IsEmpty());
}

TEST(CoolDownTest, NoForwardIsLeftInIt) {
  ForEveryStage([](ScheduleKind kind, int stage, const Size& size) {
    const auto& [stages, microbatches, chunks, slices] = size;
    if (kind == kGPipe || chunks > 1 || slices > 1) return;
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
  ScheduleKind back{};
  for (ScheduleKind kind : AllOf<ScheduleKind>()) {
    ASSERT_TRUE(FromName(Name(kind), &back).ok());
    EXPECT_EQ(back, kind);
  }
  const absl::Status status = FromName("2f1b", &back);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "schedule: unknown \"2f1b\", nearest is \"1f1b\" (want one of gpipe, 1f1b, "
            "zero_bubble, interleaved, terapipe)");
}

TEST(ActionNamesTest, SayWhichPartOfABackwardItIs) {
  EXPECT_STREQ(Name(Action::Kind::kForward), "forward");
  EXPECT_STREQ(Name(Action::Kind::kBackward), "backward");
  EXPECT_STREQ(Name(Action::Kind::kBackwardInput), "backward_input");
  EXPECT_STREQ(Name(Action::Kind::kBackwardWeight), "backward_weight");
}

}  // namespace
}  // namespace thinwire
