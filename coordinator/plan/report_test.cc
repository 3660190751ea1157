#include "coordinator/plan/report.h"

#include <limits>

#include "config/experiment.h"
#include "config/specs.h"
#include "coordinator/files/json.h"
#include "coordinator/plan/layouts.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

TEST(ReportTest, SaysWhatPlanAndChoicesSay) {
  const Experiment experiment = *ParseExperiment(R"(
name: planned
model: {name: resnet8, width: 16}
data: {name: digits, batch_size: 64}
pipeline: {cuts: [layer1, layer2], microbatches: 2}
compression: {activations: {codec: uniform, bits: 4, feedback: ef}}
optimizer: {lr: 0.1}
epochs: 1
)",
                                                 "test", {});
  PlanAssumptions assumptions;
  assumptions.bits_per_second = {20e6, std::numeric_limits<double>::infinity()};
  assumptions.rtt_ms = 7;
  assumptions.cores = 2;
  Speeds speeds;
  speeds.blocks = *BlocksAt(PartitionFrom(experiment)->model, 10);
  speeds.others = *CodingAt(1);
  speeds.compute_source = "10 GFLOP/s";
  const Plan plan = *MakePlan(experiment, assumptions, speeds);
  const auto candidates = CandidatesFor(experiment, {});
  const auto choices = *RankedChoices(candidates->all, assumptions, speeds);
  LayoutOptions options;
  options.machines = 2;
  options.memory_bytes = 1e12;
  const auto layouts =
      *RankedLayouts(LayoutsFor(experiment, options)->all, options, assumptions, speeds);
  const PlanReport report = ReportOf("planned", plan, choices, layouts, {"left out: one"});
  const auto json = ToJson(report);

  EXPECT_EQ(json["name"], "planned");
  EXPECT_EQ(json["microbatches"], 2);
  EXPECT_EQ(json["batch_norm"], true);
  EXPECT_EQ(json["assumed"]["nic"], "shared");
  EXPECT_EQ(json["assumed"]["rtt_ms"], 7.0);
  EXPECT_EQ(json["assumed"]["cores"], 2);
  EXPECT_EQ(json["assumed"]["compute"], "10 GFLOP/s");
  ASSERT_EQ(json["stages"].size(), 3u);
  EXPECT_EQ(json["stages"][0]["memory_bytes"], plan.stages[0].memory_bytes);
  EXPECT_EQ(json["stages"][0]["state_bytes"], plan.state.stage_memory_bytes[0]);
  EXPECT_GT(json["stages"][0]["state_bytes"], 0);
  EXPECT_EQ(json["stages"][1]["forward_seconds"], plan.stages[1].forward_seconds);
  ASSERT_EQ(json["boundaries"].size(), 2u);
  const auto& activations = json["boundaries"][0]["activations"];
  EXPECT_EQ(activations["most_wire_bytes"], plan.boundaries[0].activations.wire_bytes);
  EXPECT_EQ(activations["encode_seconds"], plan.boundaries[0].activations.encode_seconds);
  EXPECT_TRUE(json["boundaries"][0]["gradients"]["break_even_bits_per_second"].is_null());
  EXPECT_EQ(json["steps"][0]["bits_per_second"], 20e6);
  EXPECT_TRUE(json["steps"][1]["bits_per_second"].is_null());
  EXPECT_EQ(json["steps"][0]["seconds"], plan.steps[0].seconds());
  ASSERT_EQ(json["choices"].size(), choices.size());
  EXPECT_EQ(json["choices"][0]["codec"], choices[0].codec());
  EXPECT_EQ(json["choices"][0]["step_seconds"], choices[0].step_seconds());
  EXPECT_TRUE(json["exchange"].is_null());
  EXPECT_EQ(json["compute_seconds"], plan.compute_seconds);
  ASSERT_EQ(json["layouts"].size(), layouts.size());
  EXPECT_EQ(json["layouts"][0]["replicas"], layouts[0].replicas());
  EXPECT_EQ(json["layouts"][0]["step_seconds"], layouts[0].step_seconds());
  EXPECT_TRUE(json["layouts"][0]["epoch_cost"].is_null());
  EXPECT_EQ(json["notes"].back(), "left out: one");
}

TEST(ReportTest, SaysWhatReplicasExchange) {
  const Experiment experiment = *ParseExperiment(R"(
model: {name: resnet8, width: 16}
data: {name: digits, batch_size: 64}
pipeline: {cuts: [layer1], microbatches: 2}
replicas: {count: 4, contributions: {codec: uniform, bits: 4, feedback: ef}}
optimizer: {lr: 0.1}
epochs: 1
)",
                                                 "test", {});
  Speeds speeds;
  speeds.blocks = *BlocksAt(PartitionFrom(experiment)->model, 10);
  PlanAssumptions assumptions;
  assumptions.carriers = 2;
  const Plan plan = *MakePlan(experiment, assumptions, speeds);
  const auto json = ToJson(ReportOf("planned", plan, {}, {}, {}));
  EXPECT_EQ(json["batch_size"], 64);
  const auto& exchange = json["exchange"];
  EXPECT_EQ(exchange["replicas"], 4);
  EXPECT_EQ(exchange["carriers"], 2);
  EXPECT_EQ(exchange["way"], "reduce");
  EXPECT_EQ(exchange["every"], 1);
  EXPECT_EQ(exchange["contributions"]["most_wire_bytes"], plan.exchange.contributions.wire_bytes);
  EXPECT_EQ(exchange["average"]["codec"], "none");
  EXPECT_EQ(json["steps"][0]["exchange_seconds"], plan.steps[0].exchange_seconds());
  EXPECT_GT(json["steps"][0]["exposed_seconds"], 0);
}

TEST(ReportTest, SaysWhatPartsAddUp) {
  const Experiment experiment = *ParseExperiment(R"(
model: {name: gpt2, layers: 2, heads: 4, width: 64}
data: {name: shakespeare, context: 16, batch_size: 6}
pipeline: {cuts: [h.0], microbatches: 2}
tensor: {parts: 4}
compression: {sums: {gradients: {codec: fp16}}}
replicas: {count: 2}
optimizer: {lr: 0.1}
epochs: 1
)",
                                                 "test", {});
  Speeds speeds;
  speeds.blocks = *BlocksAt(PartitionFrom(experiment)->model, 10);
  PlanAssumptions assumptions;
  assumptions.carriers = 4;
  const Plan plan = *MakePlan(experiment, assumptions, speeds);
  const auto json = ToJson(ReportOf("planned", plan, {}, {}, {}));
  EXPECT_EQ(json["parts"], 4);
  EXPECT_EQ(json["carriers"], 4);
  EXPECT_EQ(json["exchange"]["carriers"], 4);
  const auto& sums = json["boundaries"].back();
  EXPECT_EQ(sums["name"], "sums");
  EXPECT_EQ(sums["upstream_stage"], 0);
  EXPECT_EQ(sums["downstream_stage"], 1);
  EXPECT_EQ(sums["in_memory"], false);
  EXPECT_EQ(sums["gradients"]["codec"], "fp16");
  EXPECT_EQ(sums["gradients"]["wire_bytes"], plan.sums->gradients.likely_wire_bytes);
  EXPECT_EQ(json["steps"][0]["sums_seconds"], plan.steps[0].sums_seconds());
  EXPECT_GT(json["steps"][0]["sums_seconds"], 0);
}

}  // namespace
}  // namespace thinwire
