#include "schedule/simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace thinwire {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

constexpr double kForward = 2, kBackward = 3;  // seconds; exact in binary, and so are their sums

// Returns equal stages without update, with links and codecs that take no time.
Simulation Pipeline(ScheduleKind kind, int stages, int microbatches) {
  Simulation simulation;
  simulation.schedule = kind;
  simulation.microbatches = microbatches;
  simulation.chunks.assign(stages, {kForward, kBackward, /*update_seconds=*/0});
  simulation.activations.resize(stages - 1);
  simulation.gradients.resize(stages - 1);
  return simulation;
}

// Gives every message these times; the link carries a byte a second.
void SetTransfers(const TransferCost& cost, Simulation* simulation) {
  for (TransferCost& activation : simulation->activations) activation = cost;
  for (TransferCost& gradient : simulation->gradients) gradient = cost;
  simulation->link.bits_per_second = 8;
}

TEST(SimulateTest, EqualStagesTakeOneSlotPerMicrobatchAndOnePerFurtherStage) {
  for (ScheduleKind kind : AllOf<ScheduleKind>()) {
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

// Narayanan et al., 2021, section 2.2.2: the bubble of equal chunks is that of 1F1B divided by
// their number.
TEST(SimulateTest, InterleavedIdlesAsManyTimesLessThan1F1BAsAStageHasChunks) {
  for (int chunks = 2; chunks <= 4; ++chunks) {
    for (int stages = 1; stages <= 8; ++stages) {
      for (int groups = 1; groups <= 3; ++groups) {
        Simulation simulation =
            Pipeline(ScheduleKind::kInterleaved, stages * chunks, groups * stages);
        simulation.chunks_per_stage = chunks;
        const Makespan makespan = Simulate(simulation);
        EXPECT_EQ(makespan.seconds,
                  (chunks * simulation.microbatches + stages - 1) * (kForward + kBackward))
            << "stages " << stages << ", chunks " << chunks << ", groups " << groups;
        EXPECT_EQ(makespan.busy_seconds.size(), static_cast<size_t>(stages));
      }
    }
  }
}

// Messages of the last stage enter the first stage's interface.
TEST(SimulateTest, ASliceMoreTakesASlotMoreAndAStageMoreTakesOneTooWhateverTheMicrobatches) {
  for (int slices : {1, 2, 4, 8}) {
    for (int stages = 1; stages <= 4; ++stages) {
      Simulation simulation = Pipeline(ScheduleKind::kTeraPipe, stages, /*microbatches=*/1);
      simulation.slices.assign(slices, 24);
      EXPECT_EQ(slices * Simulate(simulation).seconds,
                (slices + stages - 1) * (kForward + kBackward));
    }
  }
}

// Slices have a quarter and three quarters of the positions; the first has a sixteenth of the
// pairs.
TEST(SimulateTest, SlicesTakeWhatTheirPositionsDo) {
  Simulation simulation = Pipeline(ScheduleKind::kTeraPipe, /*stages=*/2, /*microbatches=*/1);
  simulation.slices = {16, 48};
  simulation.chunks.assign(2, {64, 128, /*update_seconds=*/0});
  // Forward takes 16 and 48 at the first stage and 48 at the second; backward 96 and 32, then 32.
  EXPECT_EQ(Simulate(simulation).seconds, 16 + 48 + 48 + 96 + 96 + 32);
  for (ChunkCost& cost : simulation.chunks) cost.attention_share = 1;
  EXPECT_EQ(Simulate(simulation).seconds, 4 + 60 + 60 + 120 + 120 + 8);
  // Messages have 10 and 30 bytes each way. That of 30 delays the second slice's forward and the
  // first backward; that of 10 only the end.
  SetTransfers({0, 0, 40}, &simulation);
  EXPECT_EQ(Simulate(simulation).seconds, 4 + 60 + 30 + 60 + 120 + 30 + 120 + 8);
  EXPECT_EQ(Simulate(simulation).busy_seconds[0], 64 + 128);
}

TEST(SimulateTest, EachSliceTakesWhatAPassTakes) {
  Simulation simulation = Pipeline(ScheduleKind::kTeraPipe, /*stages=*/2, /*microbatches=*/1);
  simulation.slices = {16, 48};
  simulation.chunks.assign(2, {64, 128, /*update_seconds=*/0});
  for (ChunkCost& cost : simulation.chunks) cost.pass_seconds = 8;
  // Forward: a quarter of 56 and 8, three quarters and 8. Backward: likewise with 112 and 16.
  EXPECT_EQ(Simulate(simulation).seconds, 22 + 50 + 50 + 100 + 100 + 44);
  EXPECT_EQ(Simulate(simulation).busy_seconds[0], 22 + 50 + 100 + 44);
  simulation.slices = {};
  simulation.schedule = ScheduleKind::kZeroBubble;
  const double whole = Simulate(simulation).seconds;
  for (ChunkCost& cost : simulation.chunks) cost.pass_seconds = 0;
  EXPECT_EQ(Simulate(simulation).seconds, whole);  // it was part of them
}

TEST(SimulateTest, InterleavedStagesAreARing) {
  Simulation simulation = Pipeline(ScheduleKind::kInterleaved, /*stages=*/4, /*microbatches=*/1);
  simulation.chunks_per_stage = 2;
  TransferCost cost;
  cost.wire_bytes = 10;
  SetTransfers(cost, &simulation);
  for (const Nic nic : AllOf<Nic>()) {
    simulation.link.nic = nic;
    EXPECT_EQ(Simulate(simulation).seconds, 4 * (kForward + kBackward) + 6 * 10);
  }
}

// From Qi et al., 2024, table 2, compared to 1F1B.
TEST(SimulateTest, ZeroBubbleIdlesTwoWeightPartsPerFurtherStageLessThan1F1B) {
  // No more than a forward or an input part, for which the table holds.
  constexpr double kWeights = 1.25;
  const auto seconds = [&](ScheduleKind kind, int stages, int microbatches) {
    Simulation simulation = Pipeline(kind, stages, microbatches);
    for (ChunkCost& stage : simulation.chunks) stage.weight_seconds = kWeights;
    return Simulate(simulation).seconds;
  };
  for (int stages = 1; stages <= 8; ++stages) {
    for (int microbatches = 1; microbatches <= 16; ++microbatches) {
      SCOPED_TRACE(testing::Message() << stages << " stages, " << microbatches << " microbatches");
      const double plain = seconds(ScheduleKind::kOneForwardOneBackward, stages, microbatches);
      const double zero = seconds(ScheduleKind::kZeroBubble, stages, microbatches);
      if (stages == 1) {
        EXPECT_EQ(zero, plain);
      } else if (microbatches >= stages) {
        EXPECT_EQ(zero, plain - 2 * (stages - 1) * kWeights);
      } else {
        EXPECT_LT(zero, plain);
      }
    }
  }
}

TEST(SimulateTest, OneStageIsBusyAllTheTime) {
  Simulation simulation = Pipeline(ScheduleKind::kOneForwardOneBackward, 1, 4);
  simulation.chunks[0].update_seconds = 1;
  const Makespan makespan = Simulate(simulation);
  EXPECT_EQ(makespan.seconds, 4 * (kForward + kBackward) + 1);
  EXPECT_THAT(makespan.busy_seconds, ElementsAre(DoubleEq(makespan.seconds)));
  EXPECT_EQ(makespan.bubble_ratio, 0);
}

TEST(SimulateTest, TheSlowestStageSetsThePace) {
  const auto with_slow_middle = [](ScheduleKind kind) {
    Simulation simulation = Pipeline(kind, 3, 8);
    simulation.chunks[1] = {20, 30, 0};
    return Simulate(simulation).seconds;
  };
  // The fast stages only fill and drain the pipeline; GPipe also waits once when it turns.
  const double paced = kForward + 8 * (20 + 30) + kBackward;
  EXPECT_EQ(with_slow_middle(ScheduleKind::kOneForwardOneBackward), paced);
  EXPECT_EQ(with_slow_middle(ScheduleKind::kGPipe), paced + kForward + kBackward);
}

TEST(SimulateTest, AnUpdateRunsBesideTheBackwardsOfTheOtherStages) {
  Simulation simulation = Pipeline(ScheduleKind::kGPipe, 2, 1);
  simulation.chunks[0].update_seconds = 1;
  simulation.chunks[1].update_seconds = 4;  // starts kBackward sooner than the other
  EXPECT_EQ(Simulate(simulation).seconds, 2 * (kForward + kBackward) + 1);
}

TEST(SimulateTest, OneMicrobatchPaysEveryPartOfEveryTransfer) {
  for (ScheduleKind kind : AllOf<ScheduleKind>()) {
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
  // In turn: one forward, all activations, the last forward, a backward, all gradients, the last
  // backward.
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
  for (ScheduleKind kind : AllOf<ScheduleKind>()) {
    Simulation simulation = Pipeline(kind, 4, 6);
    SetTransfers({/*encode_seconds=*/1, /*decode_seconds=*/0.5, /*wire_bytes=*/0}, &simulation);
    simulation.chunks[2].update_seconds = 8;
    simulation.cores = 1;
    EXPECT_EQ(Simulate(simulation).seconds,
              4 * 6 * (kForward + kBackward) + 2 * 3 * 6 * (1 + 0.5) + 8);
  }
}

TEST(SimulateTest, OneCoreIsFreeWhileMessagesAreOnTheLink) {
  Simulation simulation = Pipeline(ScheduleKind::kGPipe, 2, 2);
  SetTransfers({0, 0, /*wire_bytes=*/kForward}, &simulation);
  simulation.cores = 1;
  // Each message crosses while the sender works on its second microbatch, so the core is never
  // idle.
  const double work = 4 * (kForward + kBackward);
  EXPECT_EQ(Simulate(simulation).seconds, work);
}

TEST(SimulateTest, AsManyCoresAsTasksAreNoLimit) {
  for (ScheduleKind kind : AllOf<ScheduleKind>()) {
    Simulation simulation = Pipeline(kind, 3, 7);
    SetTransfers({1, 0.5, 4}, &simulation);
    const double free = Simulate(simulation).seconds;
    // Three stages, and two codec workers for each boundary and direction.
    simulation.cores = 3 + 4 * 2;
    EXPECT_EQ(Simulate(simulation).seconds, free);
  }
}

TEST(SimulateTest, EachMachineOfAStageTakesACore) {
  Simulation simulation = Pipeline(ScheduleKind::kGPipe, 2, 4);
  const double free = Simulate(simulation).seconds, work = 2 * 4 * (kForward + kBackward);
  simulation.machines = 2;
  EXPECT_EQ(Simulate(simulation).seconds, free);
  simulation.cores = 4;
  EXPECT_EQ(Simulate(simulation).seconds, free);
  simulation.cores = 2;
  EXPECT_EQ(Simulate(simulation).seconds, work);
  simulation.cores = 1;
  EXPECT_EQ(Simulate(simulation).seconds, 2 * work);
  simulation.cores = 3;  // two groups, each of one and a half
  EXPECT_DOUBLE_EQ(Simulate(simulation).seconds, free * 4 / 3);
}

TEST(SimulateTest, WhatAPassWaitsForTakesNoCore) {
  Simulation simulation = Pipeline(ScheduleKind::kGPipe, 2, 4);
  simulation.cores = 1;
  const double work = 2 * 4 * (kForward + kBackward);
  simulation.chunks[0].forward_wait_seconds = kForward;
  // Only the first wait is for nothing: behind it the other stage has a microbatch to compute.
  EXPECT_EQ(Simulate(simulation).seconds, work + kForward);
  simulation = Pipeline(ScheduleKind::kGPipe, 1, 4);
  simulation.chunks[0].forward_wait_seconds = 1;
  simulation.chunks[0].backward_wait_seconds = 10;
  EXPECT_EQ(Simulate(simulation).seconds, 4 * (kForward + kBackward + 11));
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

// Stages take no time; each message takes 10 s of the link.
Simulation LinksOnly(int stages, int microbatches, Nic nic) {
  Simulation simulation = Pipeline(ScheduleKind::kOneForwardOneBackward, stages, microbatches);
  for (ChunkCost& stage : simulation.chunks) stage = {};
  SetTransfers({0, 0, /*wire_bytes=*/10}, &simulation);
  simulation.link.nic = nic;
  return simulation;
}

TEST(SharedNicTest, AMiddleStageDividesWhatItSendsAndReceivesBetweenItsNeighbours) {
  // Three stages, three microbatches, links of their own: activations enter stage 1 until 30 and
  // stage 2 from 20 to 40. Each gradient follows its activation at once, and the last one ends at
  // 60.
  EXPECT_EQ(Simulate(LinksOnly(3, 3, Nic::kPrivate)).seconds, 60);
  // Stage 1 receives the third activation and the first gradient from 20 to 40, at half the rate,
  // and sends both on from 40 to 60. Then the third gradient goes back alone, from 60 to 70 and 70
  // to 80.
  EXPECT_EQ(Simulate(LinksOnly(3, 3, Nic::kShared)).seconds, 80);
}

TEST(SharedNicTest, OneMicrobatchHasTheLinkToItself) {
  for (int stages = 1; stages <= 5; ++stages) {
    EXPECT_EQ(Simulate(LinksOnly(stages, 1, Nic::kShared)).seconds, 20 * (stages - 1)) << stages;
  }
}

// Costs are small integers, sometimes 0.
Simulation RandomSimulation(RandomStream* random, int stages) {
  const auto draw = [&](uint32_t below) { return static_cast<double>(random->Below(below)); };
  Simulation simulation;
  const std::vector<ScheduleKind> kinds = AllOf<ScheduleKind>();
  simulation.schedule = kinds[random->Below(static_cast<uint32_t>(kinds.size()))];
  simulation.microbatches = 1 + static_cast<int>(random->Below(8));
  for (int s = 0; s < stages; ++s) {
    const double backward = draw(9);
    simulation.chunks.push_back({draw(5), backward, draw(3), backward / 2});
  }
  for (int b = 0; b + 1 < stages; ++b) {
    simulation.activations.push_back({draw(2), draw(2), draw(12)});
    simulation.gradients.push_back({draw(2), draw(2), draw(12)});
  }
  simulation.link.bits_per_second = 8.0 * (1 + random->Below(3));
  simulation.link.latency_seconds = draw(4);
  return simulation;
}

double SecondsWith(Simulation simulation, Nic nic) {
  simulation.link.nic = nic;
  return Simulate(simulation).seconds;
}

TEST(SharedNicTest, IsNeverFasterThanPrivateLinks) {
  RandomStream random(RandomKey(1, "simulations"));
  int slower = 0;
  for (int round = 0; round < 1000; ++round) {
    const Simulation simulation = RandomSimulation(&random, 1 + static_cast<int>(random.Below(6)));
    const double shared = SecondsWith(simulation, Nic::kShared);
    EXPECT_GE(shared, SecondsWith(simulation, Nic::kPrivate) - 1e-9) << round;
    EXPECT_EQ(shared, SecondsWith(simulation, Nic::kShared)) << round;
    slower += shared > SecondsWith(simulation, Nic::kPrivate) + 1e-9;
  }
  EXPECT_GT(slower, 100);
}

TEST(SharedNicTest, OneBoundaryHasBothInterfacesForItself) {
  RandomStream random(RandomKey(2, "simulations"));
  for (int round = 0; round < 300; ++round) {
    const Simulation simulation = RandomSimulation(&random, 2);
    EXPECT_EQ(SecondsWith(simulation, Nic::kShared), SecondsWith(simulation, Nic::kPrivate));
  }
}

// No interface carries more than its rate, and there is always a reason when all are idle.
TEST(SharedNicTest, TheStepIsBetweenTheBusiestInterfaceAndEverythingOneAfterAnother) {
  RandomStream random(RandomKey(3, "simulations"));
  for (int round = 0; round < 500; ++round) {
    const int stages = 2 + static_cast<int>(random.Below(5));
    const Simulation simulation = RandomSimulation(&random, stages);
    const double seconds_per_byte = 8 / simulation.link.bits_per_second;
    std::vector<double> sent(stages, 0), received(stages, 0);
    double all = 0;
    for (int b = 0; b + 1 < stages; ++b) {
      for (const bool gradient : {false, true}) {
        const TransferCost& cost = gradient ? simulation.gradients[b] : simulation.activations[b];
        const double link = simulation.microbatches * cost.wire_bytes * seconds_per_byte;
        sent[gradient ? b + 1 : b] += link;
        received[gradient ? b : b + 1] += link;
        all += link + simulation.microbatches * (cost.encode_seconds + cost.decode_seconds +
                                                 simulation.link.latency_seconds);
      }
    }
    for (const ChunkCost& stage : simulation.chunks) {
      all += simulation.microbatches * (stage.forward_seconds + stage.backward_seconds) +
             stage.update_seconds;
    }
    const double seconds = SecondsWith(simulation, Nic::kShared);
    EXPECT_GE(seconds, *std::max_element(sent.begin(), sent.end()) - 1e-9) << round;
    EXPECT_GE(seconds, *std::max_element(received.begin(), received.end()) - 1e-9) << round;
    EXPECT_LE(seconds, all + 1e-9) << round;
  }
}

TEST(SharedNicTest, NamesAreThoseOfTheFlag) {
  for (const Nic nic : AllOf<Nic>()) {
    Nic read = Nic::kPrivate;
    EXPECT_TRUE(FromName(Name(nic), &read).ok());
    EXPECT_EQ(read, nic);
  }
  Nic read = Nic::kPrivate;
  EXPECT_EQ(FromName("shard", &read).message(),
            "nic: unknown \"shard\", nearest is \"shared\" (want one of shared, private)");
}

TEST(SimulateTest, EndsOfMessagesTakeTheirProcessors) {
  Simulation simulation = Pipeline(ScheduleKind::kGPipe, 2, 1);
  SetTransfers({0, 0, 10}, &simulation);
  simulation.transport = {1, 0.5};
  // A second at each end; the five seconds for the bytes pass within the ten of the crossing.
  constexpr double kStages = 2 * (kForward + kBackward);
  EXPECT_EQ(Simulate(simulation).seconds, kStages + 2 * (1 + 10 + 1));
  simulation.link.bits_per_second = 0;
  EXPECT_EQ(Simulate(simulation).seconds, kStages + 2 * (1 + 5 + 1));
  simulation.cores = 1;  // both ends take turns on it
  EXPECT_EQ(Simulate(simulation).seconds, kStages + 2 * (1 + 5 + 5 + 1));
}

TEST(SimulateTest, ACostThatIsNoNumberEndsToo) {
  for (ScheduleKind kind : AllOf<ScheduleKind>()) {
    Simulation simulation = Pipeline(kind, 3, 4);
    simulation.chunks[1].forward_seconds = std::nan("");
    simulation.cores = 2;
    EXPECT_TRUE(std::isnan(Simulate(simulation).busy_seconds[1]));
    SetTransfers({std::nan(""), 1, std::nan("")}, &simulation);
    simulation.link.nic = Nic::kShared;
    EXPECT_TRUE(std::isnan(Simulate(simulation).busy_seconds[1]));
  }
}

TEST(SimulateTest, NoCostsTakeNoTime) {
  Simulation simulation;
  simulation.chunks.resize(1);
  const Makespan makespan = Simulate(simulation);
  EXPECT_EQ(makespan.seconds, 0);
  EXPECT_EQ(makespan.bubble_ratio, 0);
}

}  // namespace
}  // namespace thinwire
