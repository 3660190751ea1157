#include "schedule/simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace thinwire {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

constexpr double kForward = 2, kBackward = 3;  // seconds; exact in binary, so are their sums

// Equal stages without update, over links and codecs that take no time.
Simulation Pipeline(ScheduleKind kind, int stages, int microbatches) {
  Simulation simulation;
  simulation.schedule = kind;
  simulation.microbatches = microbatches;
  simulation.stages.assign(stages, {kForward, kBackward, /*update_seconds=*/0});
  simulation.activations.resize(stages - 1);
  simulation.gradients.resize(stages - 1);
  return simulation;
}

// Every message takes these times; the link carries a byte a second.
void SetTransfers(const TransferCost& cost, Simulation* simulation) {
  for (TransferCost& activation : simulation->activations) activation = cost;
  for (TransferCost& gradient : simulation->gradients) gradient = cost;
  simulation->link.bits_per_second = 8;
}

TEST(SimulateTest, EqualStagesTakeOneSlotPerMicrobatchAndOnePerFurtherStage) {
  for (ScheduleKind kind : AllSchedules()) {
    for (int stages = 1; stages <= 8; ++stages) {
      for (int microbatches = 1; microbatches <= 16; ++microbatches) {
        const Makespan makespan = Simulate(Pipeline(kind, stages, microbatches));
        EXPECT_EQ(makespan.seconds, (microbatches + stages - 1) * (kForward + kBackward))
            << Name(kind) << ", stages " << stages << ", microbatches " << microbatches;
        EXPECT_NEAR(makespan.bubble_ratio, (stages - 1.0) / (microbatches + stages - 1), 1e-12);
      }
    }
  }
}

TEST(SimulateTest, OneStageIsBusyAllTheTime) {
  Simulation simulation = Pipeline(ScheduleKind::kOneForwardOneBackward, 1, 4);
  simulation.stages[0].update_seconds = 1;
  const Makespan makespan = Simulate(simulation);
  EXPECT_EQ(makespan.seconds, 4 * (kForward + kBackward) + 1);
  EXPECT_THAT(makespan.busy_seconds, ElementsAre(DoubleEq(makespan.seconds)));
  EXPECT_EQ(makespan.bubble_ratio, 0);
}

TEST(SimulateTest, TheSlowestStageSetsThePace) {
  const auto with_slow_middle = [](ScheduleKind kind) {
    Simulation simulation = Pipeline(kind, 3, 8);
    simulation.stages[1] = {20, 30, 0};
    return Simulate(simulation).seconds;
  };
  // The fast stages only fill and drain the pipeline; GPipe also waits for the turn at the end.
  const double paced = kForward + 8 * (20 + 30) + kBackward;
  EXPECT_EQ(with_slow_middle(ScheduleKind::kOneForwardOneBackward), paced);
  EXPECT_EQ(with_slow_middle(ScheduleKind::kGPipe), paced + kForward + kBackward);
}

TEST(SimulateTest, AnUpdateRunsBesideTheBackwardsOfTheOtherStages) {
  Simulation simulation = Pipeline(ScheduleKind::kGPipe, 2, 1);
  simulation.stages[0].update_seconds = 1;
  simulation.stages[1].update_seconds = 4;  // starts kBackward before the other
  EXPECT_EQ(Simulate(simulation).seconds, 2 * (kForward + kBackward) + 1);
}

TEST(SimulateTest, OneMicrobatchPaysEveryPartOfEveryTransfer) {
  for (ScheduleKind kind : AllSchedules()) {
    Simulation simulation = Pipeline(kind, 3, 1);
    SetTransfers({/*encode_seconds=*/0.5, /*decode_seconds=*/0.25, /*wire_bytes=*/7}, &simulation);
    simulation.link.latency_seconds = 11;
    EXPECT_EQ(Simulate(simulation).seconds, 3 * (kForward + kBackward) + 4 * (0.5 + 7 + 11 + 0.25));
  }
}

TEST(SimulateTest, OverASlowLinkMessagesFollowOneAnotherAndLatencyCountsOncePerDirection) {
  constexpr int kMicrobatches = 5;
  Simulation simulation = Pipeline(ScheduleKind::kGPipe, 2, kMicrobatches);
  SetTransfers({0, 0, /*wire_bytes=*/100}, &simulation);
  simulation.link.latency_seconds = 1000;
  // One forward, all activations, the last forward, a backward, all gradients, the last backward.
  EXPECT_EQ(Simulate(simulation).seconds,
            2 * (kForward + kBackward) + 2 * (kMicrobatches * 100 + 1000));
}

TEST(SimulateTest, ALinkWithoutARateIsInfinitelyFast) {
  Simulation simulation = Pipeline(ScheduleKind::kOneForwardOneBackward, 4, 6);
  SetTransfers({0, 0, /*wire_bytes=*/1e12}, &simulation);
  simulation.link.bits_per_second = 0;
  EXPECT_EQ(Simulate(simulation).seconds, (6 + 4 - 1) * (kForward + kBackward));
}

TEST(SimulateTest, CodecsHideBehindComputeButForTheFirstAndTheLastMessage) {
  Simulation simulation = Pipeline(ScheduleKind::kGPipe, 2, 8);
  SetTransfers({/*encode_seconds=*/1, /*decode_seconds=*/0.5, /*wire_bytes=*/0}, &simulation);
  EXPECT_EQ(Simulate(simulation).seconds, (8 + 2 - 1) * (kForward + kBackward) + 2 * (1 + 0.5));
}

TEST(SimulateTest, ACodecSlowerThanComputeSetsThePace) {
  Simulation simulation = Pipeline(ScheduleKind::kGPipe, 2, 8);
  simulation.activations[0].encode_seconds = 10;
  EXPECT_EQ(Simulate(simulation).seconds, kForward + 8 * 10 + kForward + (8 + 1) * kBackward);
}

TEST(SimulateTest, OneCoreDoesAllWorkOneAfterAnother) {
  for (ScheduleKind kind : AllSchedules()) {
    Simulation simulation = Pipeline(kind, 4, 6);
    SetTransfers({/*encode_seconds=*/1, /*decode_seconds=*/0.5, /*wire_bytes=*/0}, &simulation);
    simulation.stages[2].update_seconds = 8;
    simulation.cores = 1;
    EXPECT_EQ(Simulate(simulation).seconds,
              4 * 6 * (kForward + kBackward) + 2 * 3 * 6 * (1 + 0.5) + 8);
  }
}

TEST(SimulateTest, OneCoreIsFreeWhileMessagesAreOnTheLink) {
  Simulation simulation = Pipeline(ScheduleKind::kGPipe, 2, 2);
  SetTransfers({0, 0, /*wire_bytes=*/kForward}, &simulation);
  simulation.cores = 1;
  // Each message travels while the sender works on its second microbatch, so the core never idles.
  const double work = 4 * (kForward + kBackward);
  EXPECT_EQ(Simulate(simulation).seconds, work);
}

TEST(SimulateTest, AsManyCoresAsTasksAreNoLimit) {
  for (ScheduleKind kind : AllSchedules()) {
    Simulation simulation = Pipeline(kind, 3, 7);
    SetTransfers({1, 0.5, 4}, &simulation);
    const double free = Simulate(simulation).seconds;
    simulation.cores = 3 + 4 * 2;  // computes, and two codec workers per boundary and direction
    EXPECT_EQ(Simulate(simulation).seconds, free);
  }
}

TEST(SimulateTest, TwoCoresNeverBeatHalfTheWork) {
  for (int stages = 1; stages <= 4; ++stages) {
    Simulation simulation = Pipeline(ScheduleKind::kOneForwardOneBackward, stages, 8);
    simulation.cores = 2;
    const double work = stages * 8 * (kForward + kBackward);
    const double least = stages == 1 ? work : work / 2;
    const double seconds = Simulate(simulation).seconds;
    EXPECT_GE(seconds, least) << stages;
    EXPECT_LE(seconds, work) << stages;
  }
}

TEST(SimulateTest, ACostThatIsNoNumberEndsToo) {
  for (ScheduleKind kind : AllSchedules()) {
    Simulation simulation = Pipeline(kind, 3, 4);
    simulation.stages[1].forward_seconds = std::nan("");
    simulation.cores = 2;
    EXPECT_TRUE(std::isnan(Simulate(simulation).busy_seconds[1]));
  }
}

TEST(SimulateTest, NoCostsTakeNoTime) {
  Simulation simulation;
  simulation.stages.resize(1);
  const Makespan makespan = Simulate(simulation);
  EXPECT_EQ(makespan.seconds, 0);
  EXPECT_EQ(makespan.bubble_ratio, 0);
}

}  // namespace
}  // namespace thinwire
