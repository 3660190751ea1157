#include "coordinator/plan/sum_costs.h"

#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "config/experiment.h"
#include "config/specs.h"
#include "config/stage_memory.h"
#include "coordinator/plan/plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/cost.h"
#include "models/parts.h"

namespace thinwire {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// Two blocks with two sums each, of 16 x 64 elements a sample; a microbatch has three samples.
constexpr char kExperiment[] = R"(
name: divided
model: {name: gpt2, layers: 2, heads: 4, width: 64}
data: {name: shakespeare, context: 16, batch_size: 6}
pipeline: {cuts: [h.0], microbatches: 2}
tensor: {parts: 4}
optimizer: {name: adamw, lr: 0.01}
epochs: 2
)";
constexpr int64_t kRawBytes = 4 * 3 * 16 * 64;  // of a partial sum

Experiment With(const std::vector<std::string>& overrides) {
  const auto experiment = ParseExperiment(kExperiment, "test", overrides);
  EXPECT_TRUE(experiment.ok()) << experiment.status();
  return *experiment;
}

Speeds SpeedsOf(const Experiment& experiment) {
  Speeds speeds;
  speeds.blocks = *BlocksAt(PartitionFrom(experiment)->model, /*gflops=*/10);
  speeds.others = *CodingAt(/*gigabytes_per_second=*/2);
  return speeds;
}

absl::StatusOr<Plan> TriedPlan(const std::vector<std::string>& overrides, int carriers,
                               double bits_per_second, double rtt_ms = 0) {
  const Experiment experiment = With(overrides);
  PlanAssumptions assumptions;
  assumptions.carriers = carriers;
  assumptions.bits_per_second = {bits_per_second};
  assumptions.rtt_ms = rtt_ms;
  return MakePlan(experiment, assumptions, SpeedsOf(experiment));
}

Plan PlanOf(const std::vector<std::string>& overrides, int carriers = 0,
            double bits_per_second = std::numeric_limits<double>::infinity(), double rtt_ms = 0) {
  auto plan = TriedPlan(overrides, carriers, bits_per_second, rtt_ms);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

const std::vector<std::string> kCoded = {
    "compression.sums={activations: {codec: uniform, bits: 8}, gradients: {codec: fp16}}"};

TEST(SumCostsTest, EachPartialSumGoesToAllOtherParts) {
  const Plan plan = PlanOf({});
  ASSERT_TRUE(plan.sums.has_value());
  EXPECT_EQ(plan.sums->name, "sums");
  EXPECT_EQ(plan.sums->elements, 4 * 16 * 64);
  for (const PlannedDirection& sums : {plan.sums->activations, plan.sums->gradients}) {
    EXPECT_EQ(sums.raw_bytes, 4 * 4 * 3 * 2 * kRawBytes);  // sums, parts, receivers, microbatches
    EXPECT_GT(sums.wire_bytes, sums.raw_bytes);
    EXPECT_LT(sums.wire_bytes, 1.02 * sums.raw_bytes);
    EXPECT_EQ(sums.encode_seconds + sums.decode_seconds, 0);
  }
  EXPECT_FALSE(PlanOf({"tensor.parts=1"}).sums.has_value());
}

TEST(SumCostsTest, MachinesOfARowSendThePartsThatTheyCarry) {
  const auto sent = [](int carriers) {
    int64_t bytes = 0;
    for (const SentByMachine& machine : PlanOf(kCoded, carriers).sent) bytes += machine.in_sums;
    return bytes;
  };
  const Plan plan = PlanOf(kCoded);
  EXPECT_EQ(plan.sent.size(), 4u * 2);
  const int64_t all = plan.sums->activations.likely_wire_bytes + plan.sums->gradients.wire_bytes;
  EXPECT_EQ(sent(4), all);
  EXPECT_EQ(sent(2), all / 3);
  EXPECT_EQ(sent(1), 0);
  EXPECT_TRUE(PlanOf(kCoded, 1).sums->in_memory);
  EXPECT_EQ(StepWireBytes(plan) - StepWireBytes(PlanOf({}, 1)) * 4, all);
}

TEST(SumCostsTest, PartsThatMachinesDoNotShareEquallyAreThoseOfTheLast) {
  const std::vector<std::string> three = {"model.heads=6", "model.width=96", "tensor.parts=3",
                                          "pipeline.stages=1"};
  const Plan plan = PlanOf(three, 2, 1e6);
  EXPECT_NEAR(plan.sent[1].in_sums, 2 * plan.sent[0].in_sums, 100);  // headers have numbers
  EXPECT_NEAR(plan.steps[0].sums_seconds(),
              8 * static_cast<double>(plan.sent[1].in_sums) / (1e6 * kPayloadShare),
              1e-3 * plan.steps[0].sums_seconds());
  EXPECT_GT(plan.compute_seconds, PlanOf(three, 3).compute_seconds);
}

TEST(SumCostsTest, LinksOfTheirOwnCarryEachCopyAtTheFullRate) {
  const Experiment experiment = With({"pipeline.stages=1"});
  PlanAssumptions assumptions;
  assumptions.bits_per_second = {1e6};
  assumptions.nic = Nic::kPrivate;
  const Plan plan = *MakePlan(experiment, assumptions, SpeedsOf(experiment));
  EXPECT_NEAR(3 * plan.steps[0].sums_seconds(),
              PlanOf({"pipeline.stages=1"}, 4, 1e6).steps[0].sums_seconds(), 1e-9);
}

TEST(SumCostsTest, WaitingForSumsIsABubble) {
  const Plan plan = PlanOf({"pipeline.stages=1"}, 4, 1e6);
  EXPECT_NEAR(1 - plan.steps[0].bubble_ratio(), plan.compute_seconds / plan.steps[0].seconds(),
              1e-9);
}

TEST(SumCostsTest, ComputeDividesAndWholeLayersDoNot) {
  const Model model = PartitionFrom(With({}))->model;
  Model here = model;
  KeepParts(0, 1, &here.blocks);
  double flops = 0, all = 0;
  for (const BlockSpec& block : here.blocks) flops += ForwardFlops(block);
  for (const BlockSpec& block : model.blocks) all += ForwardFlops(block);
  EXPECT_GT(flops, all / 4);  // the head is whole
  const Plan four = PlanOf({"pipeline.stages=1"});
  EXPECT_NEAR(four.compute_seconds, 3 * 6 * flops / 10e9, 1e-12);
  EXPECT_EQ(four.stages[0].forward_flops, all);
  EXPECT_NEAR(PlanOf({"pipeline.stages=1"}, 1).compute_seconds, 3 * 6 * all / 10e9, 1e-12);
}

TEST(SumCostsTest, AMachineHasMemoryForThePartsThatItCarries) {
  const Partition partition = *PartitionFrom(With({}));
  Model here = partition.model;
  KeepParts(2, 4, &here.blocks);
  const SegmentCost cost = SegmentCosts(here, partition.cuts).back();
  TrainingMemory memory;
  memory.microbatch_samples = memory.samples_in_flight = 3;
  memory.optimizer_buffers = memory.hidden_buffers = 2;
  const int64_t sent = here.blocks[partition.cuts[0].block].out.elements();
  const int64_t besides =
      3 * 4 * (cost.work_elements + cost.result_elements + kMessagesAtCut * sent) + kProgramBytes;
  EXPECT_EQ(PlanOf({}, 2).stages[1].memory_bytes, TrainingBytes(cost, memory) + besides);
  EXPECT_LT(PlanOf({}, 4).stages[1].memory_bytes, PlanOf({}, 2).stages[1].memory_bytes);
  EXPECT_EQ(PlanOf({}, 4).stages[1].parameters, PlanOf({}, 1).stages[1].parameters);
}

TEST(SumCostsTest, LayersWaitForBytesLatencyAndCodecs) {
  const std::vector<std::string> one = {"pipeline.stages=1"};
  // Two microbatches, four sums, two directions, of which each machine sends three copies.
  const Plan slow = PlanOf(one, 4, 1e6);
  const double bytes =
      static_cast<double>(slow.sums->activations.wire_bytes + slow.sums->gradients.wire_bytes) / 4;
  EXPECT_NEAR(slow.steps[0].sums_seconds(), 8 * bytes / (1e6 * kPayloadShare),
              1e-3 * slow.steps[0].sums_seconds());
  EXPECT_NEAR(slow.steps[0].seconds(), slow.compute_seconds + slow.steps[0].sums_seconds(), 1e-9);
  const double latency = PlanOf(one, 4, 1e6, /*rtt_ms=*/10).steps[0].sums_seconds();
  EXPECT_NEAR(latency - slow.steps[0].sums_seconds(), 16 * 0.005, 1e-9);
  // On one machine only codecs take time: every part is encoded and decoded.
  std::vector<std::string> coded = kCoded;
  coded.push_back(one[0]);
  EXPECT_EQ(PlanOf(one, 1, 1e6).steps[0].sums_seconds(), 0);
  EXPECT_NEAR(PlanOf(coded, 1, 1e6).steps[0].sums_seconds(), 16 * 8 * kRawBytes / 2e9, 1e-9);
  EXPECT_NEAR(PlanOf(coded, 4).steps[0].sums_seconds(), 16 * 5 * kRawBytes / 2e9, 1e-9);
  EXPECT_LT(PlanOf(coded, 4, 1e6).steps[0].seconds(),
            PlanOf(coded, 4, 1e6).steps[0].uncompressed_seconds());
}

TEST(SumCostsTest, SumsBeforeFromLayerAreExact) {
  std::vector<std::string> half = kCoded;
  half.push_back("compression.sums.from_layer=half");
  const auto bytes = [](const Plan& plan) {
    return static_cast<double>(plan.sums->activations.wire_bytes);
  };
  EXPECT_NEAR(bytes(PlanOf(half)), (bytes(PlanOf(kCoded)) + bytes(PlanOf({}))) / 2, 100);
  EXPECT_NEAR(PlanOf(half).sums->activations.encode_seconds,
              PlanOf(kCoded).sums->activations.encode_seconds / 2, 1e-12);
}

const std::vector<std::string> kSliced = {"tensor.sequence=true"};

// Each of four sums is gathered and scattered, and in each of two segments slices begin and end.
// Three others get each of a tensor's quarters.
TEST(SumCostsTest, SlicesTakeBytesOfOneTensorForEachOtherPart) {
  const Plan plan = PlanOf(kSliced);
  EXPECT_EQ(plan.sums->elements, 4 * 16 * 64);
  EXPECT_EQ(plan.sums->activations.raw_bytes, (4 * 2 + 2) * 3 * 2 * kRawBytes);
  // In a step each part also sends the gradients of two scales, two shifts and two biases.
  EXPECT_EQ(plan.sums->gradients.raw_bytes,
            plan.sums->activations.raw_bytes + 2 * 4 * 3 * (6 * 64 * 4));
  EXPECT_LT(plan.sums->activations.raw_bytes, PlanOf({}).sums->activations.raw_bytes);
}

TEST(SumCostsTest, MachinesOfSlicesKeepAndSendLess) {
  std::vector<std::string> sliced = kCoded;
  sliced.push_back(kSliced[0]);
  for (const int carriers : {2, 4}) {
    const Plan slices = PlanOf(sliced, carriers, 1e6), whole = PlanOf(kCoded, carriers, 1e6);
    for (int stage = 0; stage < 2; ++stage) {
      EXPECT_LT(slices.stages[stage].memory_bytes, whole.stages[stage].memory_bytes);
    }
  }
  const Plan plan = PlanOf(sliced);
  EXPECT_LT(plan.steps[0].sums_seconds(), PlanOf(kCoded).steps[0].sums_seconds());
  int64_t sent = 0;
  for (const SentByMachine& machine : plan.sent) sent += machine.in_sums;
  EXPECT_EQ(sent, plan.sums->activations.likely_wire_bytes + plan.sums->gradients.wire_bytes);
  EXPECT_LT(PlanOf(sliced, 2).sent[0].in_sums, 2 * plan.sent[0].in_sums);
  EXPECT_EQ(PlanOf(sliced, 1).sent[0].in_sums, 0);
}

TEST(SumCostsTest, LayersWaitForBytesOfSlices) {
  const Plan slow = PlanOf({kSliced[0], "pipeline.stages=1", "pipeline.cuts=[]"}, 4, 1e6);
  // The gradients of twelve vectors, which go to three others, take no time.
  const double bytes = static_cast<double>(slow.sent[0].in_sums - 3 * 12 * 64 * 4);
  EXPECT_NEAR(slow.steps[0].sums_seconds(), 8 * bytes / (1e6 * kPayloadShare),
              5e-3 * slow.steps[0].sums_seconds());
  const Plan far = PlanOf({kSliced[0], "pipeline.stages=1", "pipeline.cuts=[]"}, 4, 1e6, 10);
  // Nine rounds in each direction of two microbatches.
  EXPECT_NEAR(far.steps[0].sums_seconds() - slow.steps[0].sums_seconds(), 2 * 2 * 9 * 0.005, 1e-9);
}

TEST(SumCostsTest, ReplicasExchangeWhatTheirMachinesHave) {
  const std::vector<std::string> two = {"replicas={count: 2}"};
  const Plan plan = PlanOf(two), alone = PlanOf(two, 2);
  EXPECT_EQ(plan.grid.replicas, 2);
  EXPECT_EQ(plan.grid.parts, 4);
  EXPECT_EQ(plan.sent.size(), 2u * 4 * 2);
  EXPECT_EQ(plan.exchange.contributions.raw_bytes, alone.exchange.contributions.raw_bytes);
  for (size_t machine = 0; machine < plan.sent.size(); ++machine) {
    EXPECT_GT(plan.sent[machine].in_exchange, 0) << machine;
    EXPECT_LT(plan.sent[machine].in_exchange, alone.sent[machine % 4].in_exchange) << machine;
  }
}

TEST(SumCostsTest, CarriersThatMakeNoGridAreRefused) {
  EXPECT_THAT(
      std::string(TriedPlan({"replicas={count: 2}"}, 3, 1e6).status().message()),
      HasSubstr("--carriers 3: want at most 2, the experiment's replicas.count, or a multiple"));
}

TEST(SumCostsTest, TheTablesTellOfSums) {
  const std::string text = FormatPlan(PlanOf(kCoded, 2, 1e6));
  EXPECT_THAT(text, HasSubstr("2 stages, 4 parts; "));
  EXPECT_THAT(text, ContainsRegex("\nsums +row +activation +4096 "));
  EXPECT_THAT(text, HasSubstr("2 machines of\na row carry them"));
  EXPECT_THAT(text, ContainsRegex("\nlink rate +sums ms +share of step\n1 Mbit/s "));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_THAT(FormatPlan(PlanOf(kCoded, 1, 1e6)), ContainsRegex("\nsums +memory "));
  EXPECT_THAT(FormatPlan(PlanOf({"tensor.parts=1"})), Not(HasSubstr("sums")));
}

}  // namespace
}  // namespace thinwire
