// Tests of what replicas exchange, by the steps that it makes.
#include "schedule/stage_exchange.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/simulator.h"

namespace thinwire {
namespace {

using ::testing::DoubleNear;

constexpr double kForward = 2, kBackward = 3;    // seconds of a microbatch
constexpr double kContribution = 16, kSum = 64;  // bytes of a piece
constexpr double kPass = kForward + kBackward;

// Returns the carrier of each replica; the last has the most.
std::vector<int> Carriers(int replicas, int carriers) {
  std::vector<int> of;
  for (int carrier = 0; carrier < carriers; ++carrier) {
    of.resize(static_cast<size_t>((carrier + 1) * replicas / carriers), carrier);
  }
  return of;
}

// Returns replicas of one microbatch in equal stages. Links carry a byte a second.
Simulation Replicas(int replicas, int carriers, int stages) {
  Simulation simulation;
  simulation.chunks.assign(stages, {kForward, kBackward, /*update_seconds=*/0});
  simulation.activations.resize(stages - 1);
  simulation.gradients.resize(stages - 1);
  simulation.link.bits_per_second = 8;
  simulation.link.nic = Nic::kShared;
  simulation.exchange.carrier_of = Carriers(replicas, carriers);
  return simulation;
}

// Gives each stage a piece for each owner.
void SetPieces(const std::vector<int>& owners, Simulation* simulation, bool gathers = false) {
  const std::vector<TransferCost> contributions(simulation->exchange.replicas(),
                                                {0, 0, kContribution});
  std::vector<PieceCost> pieces;
  for (const int owner : owners) pieces.push_back({owner, contributions, {0, 0, kSum}, gathers});
  simulation->exchange.pieces.assign(simulation->stages(), pieces);
}

TEST(ExchangeTest, APieceGoesToItsOwnerAndTheSumComesBack) {
  Simulation simulation = Replicas(2, 2, 1);
  SetPieces({0}, &simulation);
  EXPECT_EQ(Simulate(simulation).seconds, kPass + kContribution + kSum);
  simulation.link.latency_seconds = 100;
  const Makespan makespan = Simulate(simulation);
  EXPECT_EQ(makespan.seconds, kPass + kContribution + kSum + 2 * 100);
  ASSERT_EQ(makespan.exchanges.size(), 1u);
  EXPECT_EQ(makespan.exchanges[0].begin_seconds, kPass);
  EXPECT_EQ(makespan.exchanges[0].end_seconds, makespan.seconds);
  EXPECT_EQ(SentBytes(simulation.exchange, /*stage=*/0, /*carrier=*/0), kSum);
  EXPECT_EQ(SentBytes(simulation.exchange, /*stage=*/0, /*carrier=*/1), kContribution);
}

TEST(ExchangeTest, OwnersShareTheWork) {
  for (const Nic nic : AllOf<Nic>()) {
    Simulation simulation = Replicas(4, 4, 1);
    simulation.link.nic = nic;
    SetPieces({0, 1, 2, 3}, &simulation);
    const double messages = nic == Nic::kShared ? 3 : 1;  // over one interface
    EXPECT_NEAR(Simulate(simulation).seconds, kPass + messages * (kContribution + kSum), 1e-9);
    for (int carrier = 0; carrier < 4; ++carrier) {
      EXPECT_EQ(SentBytes(simulation.exchange, 0, carrier), 3 * (kContribution + kSum));
    }
  }
}

TEST(ExchangeTest, WhoGathersSendsAllToAllAndNoSums) {
  Simulation simulation = Replicas(3, 3, 1);
  SetPieces({0, 0}, &simulation, /*gathers=*/true);
  EXPECT_NEAR(Simulate(simulation).seconds, kPass + 2 * 2 * kContribution, 1e-9);
  EXPECT_EQ(SentBytes(simulation.exchange, 0, 1), 2 * 2 * kContribution);
}

TEST(ExchangeTest, ACarrierRunsItsReplicasOneAfterAnother) {
  for (int carriers = 1; carriers <= 5; ++carriers) {
    const Simulation simulation = Replicas(5, carriers, 1);
    const Makespan makespan = Simulate(simulation);  // nothing is exchanged
    EXPECT_EQ(makespan.seconds, (5 + carriers - 1) / carriers * kPass);
    double busy = 0;
    for (const double seconds : makespan.busy_seconds) busy += seconds;
    EXPECT_EQ(busy, 5 * kPass);
    EXPECT_EQ(makespan.busy_seconds.size(), static_cast<size_t>(carriers));
  }
}

// The first carrier of five replicas has two.
TEST(ExchangeTest, OnlyWhatAnotherCarrierOwnsIsSent) {
  Simulation simulation = Replicas(5, 2, 1);
  SetPieces({1, 2}, &simulation);
  EXPECT_EQ(SentBytes(simulation.exchange, 0, 0), 2 * kContribution + kSum);
  EXPECT_EQ(SentBytes(simulation.exchange, 0, 1), 3 * kContribution + kSum);
  simulation.exchange.carrier_of = Carriers(5, 1);
  EXPECT_EQ(SentBytes(simulation.exchange, 0, 0), 0);
  EXPECT_EQ(Simulate(simulation).seconds, 5 * kPass);
}

// A machine of the last stage is done first, and its exchange hides behind the first's backward.
TEST(ExchangeTest, AStageExchangesBehindItsLastPass) {
  Simulation simulation = Replicas(2, 2, 2);
  SetPieces({0}, &simulation);
  simulation.exchange.pieces[0].clear();
  simulation.chunks[0].backward_seconds = 1000;
  EXPECT_EQ(Simulate(simulation).seconds, 2 * kForward + kBackward + 1000);
  SetPieces({0}, &simulation);
  EXPECT_EQ(Simulate(simulation).seconds, 2 * kForward + kBackward + 1000 + kContribution + kSum);
  for (const ExchangeSpan& span : Simulate(simulation).exchanges) {
    EXPECT_EQ(span.end_seconds - span.begin_seconds, kContribution + kSum);
  }
}

TEST(ExchangeTest, GradientsOfWeightsThatWaitHoldTheExchangeUp) {
  Simulation simulation = Replicas(2, 2, 1);
  simulation.schedule = ScheduleKind::kZeroBubble;
  simulation.chunks[0].weight_seconds = 1;
  SetPieces({0}, &simulation);
  EXPECT_EQ(Simulate(simulation).seconds, kPass + kContribution + kSum);
}

TEST(ExchangeTest, CutsAndReplicasShareAnInterface) {
  Simulation simulation = Replicas(2, 2, 2);
  simulation.gradients[0].wire_bytes = 10;
  const std::vector<TransferCost> contributions(2, {0, 0, 10});
  simulation.exchange.pieces = {{}, {{0, contributions, {}}, {1, contributions, {}}}};
  // The second stage sends a gradient and a contribution at once.
  EXPECT_NEAR(Simulate(simulation).seconds, 2 * kPass + 20, 1e-9);
  simulation.link.nic = Nic::kPrivate;
  EXPECT_NEAR(Simulate(simulation).seconds, 2 * kPass + 10, 1e-9);
}

TEST(ExchangeTest, EveryoneDecodesWhatItUses) {
  Simulation simulation = Replicas(2, 2, 1);
  const TransferCost contribution{/*encode_seconds=*/1, /*decode_seconds=*/2, 16};
  const TransferCost sum{/*encode_seconds=*/4, /*decode_seconds=*/8, 64};
  simulation.exchange.pieces = {{{0, {contribution, contribution}, sum}}};
  // The owner decodes its own contribution while that of the other crosses, and the sum while that
  // crosses back.
  EXPECT_EQ(Simulate(simulation).seconds, kPass + 1 + 16 + 2 + 4 + 64 + 8);
  PieceCost& piece = simulation.exchange.pieces[0][0];
  piece.gathers = true;
  EXPECT_EQ(Simulate(simulation).seconds, kPass + 1 + 16 + 2);
  simulation.exchange.carrier_of = {0, 0};
  EXPECT_EQ(Simulate(simulation).seconds, 2 * kPass + 2 * (1 + 2));
  piece.decodes_own = false;
  EXPECT_EQ(Simulate(simulation).seconds, 2 * kPass + 2 * 1);
  piece.gathers = false;
  EXPECT_EQ(Simulate(simulation).seconds, 2 * kPass + 2 * 1 + 4 + 8);
}

TEST(ExchangeTest, ASecondRoundFollowsTheFirstSum) {
  Simulation simulation = Replicas(2, 2, 1);
  const std::vector<TransferCost> first(2, {1, 2, 16}), second(2, {4, 8, 32});
  PieceCost piece{/*owner=*/0, first, /*sum=*/{16, 32, 64}};
  piece.decodes_own = false;
  piece.second_contributions = second;
  piece.second_sum = {64, 128, 100};
  simulation.exchange.pieces = {{piece}};
  const double once = 1 + 16 + 2 + 16 + 64, again = 32 + 4 + 32 + 8 + 64 + 100 + 128;
  EXPECT_EQ(Simulate(simulation).seconds, kPass + once + again);
  EXPECT_EQ(SentBytes(simulation.exchange, 0, 0), 64 + 100);
  EXPECT_EQ(SentBytes(simulation.exchange, 0, 1), 16 + 32);
  simulation.link.latency_seconds = 1000;
  EXPECT_EQ(Simulate(simulation).seconds, kPass + once + again + 4 * 1000);
  // One machine sends nothing and needs no sum but the last.
  simulation.exchange.carrier_of = {0, 0};
  EXPECT_EQ(Simulate(simulation).seconds, 2 * kPass + 2 * 1 + 16 + 2 * 4 + 64 + 128);
}

TEST(ExchangeTest, EndsOfItsMessagesTakeAProcessor) {
  Simulation simulation = Replicas(3, 3, 1);
  simulation.link.bits_per_second = 0;
  simulation.transport.seconds_per_message = 1;
  SetPieces({0}, &simulation);
  // The owner takes two contributions, sends two sums; the others take one.
  EXPECT_EQ(Simulate(simulation).seconds, kPass + 1 + 2 + 2 + 1);
  simulation.transport = {0, /*seconds_per_byte=*/0.25};
  EXPECT_EQ(Simulate(simulation).seconds, kPass + (kContribution + kSum) / 4);
}

TEST(ExchangeTest, HostsThatShareACoreDoOneThingAtATime) {
  Simulation simulation = Replicas(4, 4, 2);
  simulation.cores = 1;
  const std::vector<TransferCost> contributions(4, {1, 2, 0});
  simulation.exchange.pieces.assign(2, {{0, contributions, {4, 8, 0}}});
  EXPECT_EQ(Simulate(simulation).seconds, 4 * 2 * kPass + 2 * (4 * (1 + 2) + 4 + 4 * 8));
}

TEST(ExchangeTest, AReplicaByItselfIsAPipeline) {
  Simulation simulation = Replicas(1, 1, 3);
  simulation.gradients[1] = {1, 2, 30};
  const Makespan alone = Simulate(simulation);
  simulation.exchange.pieces.assign(3, {});
  EXPECT_EQ(Simulate(simulation).seconds, alone.seconds);
  // As many pipelines that exchange nothing take no longer.
  Simulation four = Replicas(4, 4, 3);
  four.gradients[1] = {1, 2, 30};
  EXPECT_THAT(Simulate(four).seconds, DoubleNear(alone.seconds, 1e-9));
  EXPECT_THAT(Simulate(four).bubble_ratio, DoubleNear(alone.bubble_ratio, 1e-12));
}

}  // namespace
}  // namespace thinwire
