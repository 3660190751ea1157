#include "coordinator/plan/plan.h"

#include <algorithm>
#include <limits>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "compress/codecs/plugin.h"
#include "config/experiment.h"
#include "config/specs.h"
#include "config/stage_memory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/cost.h"

namespace thinwire {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kExperiment[] = R"(
name: planned
model: {name: resnet8, width: 16}
data: {name: digits, batch_size: 64}
pipeline: {cuts: [layer1, layer2, layer3], microbatches: 2}
compression: {activations: {codec: topk, ratio: 0.1}}
optimizer: {lr: 0.1, momentum: 0.9}
epochs: 1
)";

// Speeds of 10 GFLOP/s and 2 GB/s.
Speeds SomeSpeeds(const Experiment& experiment) {
  Speeds speeds;
  speeds.blocks = *BlocksAt(PartitionFrom(experiment)->model, /*gflops=*/10);
  speeds.others = *CodingAt(/*gigabytes_per_second=*/2);
  speeds.compute_source = "10 GFLOP/s";
  speeds.codec_source = "2 GB/s";
  return speeds;
}

Plan PlanOf(const std::vector<std::string>& overrides, const PlanAssumptions& assumptions = {}) {
  const auto experiment = ParseExperiment(kExperiment, "test", overrides);
  EXPECT_TRUE(experiment.ok()) << experiment.status();
  auto plan = MakePlan(*experiment, assumptions, SomeSpeeds(*experiment));
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

TEST(PlanTest, StagesHoldTheWholeModelBetweenThem) {
  const Plan plan = PlanOf({});
  const Plan whole = PlanOf({"pipeline.cuts=none"});
  ASSERT_EQ(plan.stages.size(), 4u);
  ASSERT_EQ(whole.stages.size(), 1u);
  int64_t parameters = 0;
  double flops = 0;
  for (const PlannedStage& stage : plan.stages) {
    parameters += stage.parameters;
    flops += stage.forward_flops;
  }
  EXPECT_EQ(parameters, whole.stages[0].parameters);
  EXPECT_EQ(flops, whole.stages[0].forward_flops);
  EXPECT_EQ(plan.stages[1].chunks.front().first_block, "layer2.0");
}

TEST(PlanTest, RawBytesAreElementsTimesBatchTimesFour) {
  const PlannedBoundary boundary = PlanOf({}).boundaries[0];
  EXPECT_GT(boundary.elements, 0);
  EXPECT_EQ(boundary.activations.raw_bytes, boundary.elements * 64 * 4);
}

TEST(PlanTest, UncompressedWireBytesAreRawBytesAndAHeaderPerMicrobatch) {
  const PlannedDirection gradients = PlanOf({}).boundaries[0].gradients;
  const int64_t overhead = gradients.wire_bytes - gradients.raw_bytes;
  EXPECT_GT(overhead, 2 * 50);
  EXPECT_LT(overhead, 2 * 150);
  EXPECT_EQ(gradients.break_even_bits_per_second, 0.0);
}

TEST(PlanTest, BreakEvenIsBitsSavedPerSecondOfCodecWork) {
  const PlannedDirection d = PlanOf({}).boundaries[0].activations;
  EXPECT_DOUBLE_EQ(d.encode_seconds, d.raw_bytes / 2e9);
  const double codec_seconds = 2 * d.raw_bytes / 2e9;
  EXPECT_DOUBLE_EQ(d.break_even_bits_per_second,
                   8.0 * (d.raw_bytes - d.wire_bytes) / codec_seconds);
}

TEST(PlanTest, AStepOfOneStageIsThreeForwardsOfTheBatch) {
  const Plan plan = PlanOf({"pipeline.stages=1"});
  EXPECT_NEAR(plan.steps.back().seconds(), 3 * 64 * plan.stages[0].forward_flops / 10e9, 1e-9);
  EXPECT_TRUE(plan.boundaries[0].in_memory);
  EXPECT_EQ(plan.steps.front().seconds(), plan.steps.back().seconds());  // links make no difference
}

TEST(PlanTest, BlocksThatRunAgainTakeTimeAndSaveMemory) {
  const Plan kept = PlanOf({"pipeline.stages=1"});
  const Plan again = PlanOf({"pipeline.stages=1", "pipeline.recompute=blocks"});
  const PlannedStage& stage = again.stages[0];
  EXPECT_EQ(kept.stages[0].recomputed_flops, 0.0);
  EXPECT_GT(stage.recomputed_flops, 0.9 * stage.forward_flops);
  EXPECT_NEAR(again.steps.back().seconds(),
              64 * (3 * stage.forward_flops + stage.recomputed_flops) / 10e9, 1e-9);
  EXPECT_LT(stage.memory_bytes, kept.stages[0].memory_bytes);
}

TEST(PlanTest, ASlowLinkTakesAtLeastItsBytes) {
  const Plan plan = PlanOf({});
  const StepEstimate slowest = plan.steps.front();
  EXPECT_EQ(slowest.bits_per_second(), 10e6);
  EXPECT_GT(slowest.seconds(),
            8.0 * plan.boundaries[0].gradients.wire_bytes / (kPayloadShare * 10e6));
  EXPECT_GT(slowest.uncompressed_seconds(), slowest.seconds());
  EXPECT_GT(slowest.seconds(), plan.steps.back().seconds());
}

TEST(PlanTest, LatencyDelaysEveryRate) {
  PlanAssumptions assumptions;
  assumptions.rtt_ms = 100;
  const double more =
      PlanOf({}, assumptions).steps.back().seconds() - PlanOf({}).steps.back().seconds();
  // Three links, both ways, half a round trip each; a part is hidden by the second microbatch.
  EXPECT_NEAR(more, 6 * 0.050, 0.005);
}

TEST(PlanTest, ASharedInterfaceIsSlowerThanALinkForEachBoundary) {
  PlanAssumptions shared, own;
  shared.bits_per_second = own.bits_per_second = {100e6};
  own.nic = Nic::kPrivate;
  const std::vector<std::string> plain = {"compression.activations={codec: none}",
                                          "pipeline.microbatches=8"};
  EXPECT_GT(PlanOf(plain, shared).steps[0].seconds(), 1.1 * PlanOf(plain, own).steps[0].seconds());
  const std::vector<std::string> two = {"pipeline.stages=2"};
  EXPECT_EQ(PlanOf(two, shared).steps[0].seconds(), PlanOf(two, own).steps[0].seconds());
}

TEST(PlanTest, StagesOfOneHostShareItsCores) {
  PlanAssumptions one;
  one.cores = 1;
  const Plan plan = PlanOf({"compression.activations={codec: none}"}, one);
  double work = 0;
  for (const PlannedStage& stage : plan.stages) {
    work += 2 * (stage.forward_seconds + stage.backward_seconds) + stage.update_seconds;
  }
  EXPECT_NEAR(plan.steps.back().seconds(), work, 1e-12);
}

TEST(PlanTest, ZeroBubbleIsFasterThan1F1BAndKeepsWhatItsWeightPartsNeed) {
  PlanAssumptions free;
  free.bits_per_second = {std::numeric_limits<double>::infinity()};
  const std::vector<std::string> four = {"pipeline.microbatches=4",
                                         "compression.activations={codec: none}",
                                         "compression.gradients={codec: none}"};
  std::vector<std::string> split = four;
  split.push_back("pipeline.schedule=zero_bubble");
  const Plan plain = PlanOf(four, free), zero = PlanOf(split, free);
  EXPECT_LT(zero.steps[0].seconds(), plain.steps[0].seconds());
  EXPECT_LT(zero.steps[0].bubble_ratio(), plain.steps[0].bubble_ratio());
  const Partition partition = *PartitionFrom(*ParseExperiment(kExperiment, "test", split));
  const auto costs = SegmentCosts(partition.model, partition.cuts);
  for (size_t s = 0; s < zero.stages.size(); ++s) {
    // Four microbatches in four stages: beside those in flight s of them wait, or one more waits
    // and one less is in flight.
    const int64_t more = costs[s].waiting_elements * static_cast<int64_t>(s);
    const int64_t instead =
        more + costs[s].waiting_elements - costs[s].kept_elements - costs[s].result_elements;
    EXPECT_EQ(zero.stages[s].memory_bytes - plain.stages[s].memory_bytes,
              4 * zero.microbatch_size * std::max(more, instead));
    // With convolutions and one linear layer, half of the backward pass is for weights.
    EXPECT_NEAR(zero.stages[s].chunks[0].weight_seconds, zero.stages[s].backward_seconds / 2,
                1e-12);
  }
}

TEST(PlanTest, StagesThatTakeTurnsAreARingAndKeepWhatTheirSegmentsNeed) {
  PlanAssumptions free;
  free.bits_per_second = {std::numeric_limits<double>::infinity()};
  const std::vector<std::string> two = {"pipeline.microbatches=8", "pipeline.stages=2",
                                        "compression.activations={codec: none}",
                                        "pipeline.schedule=interleaved"};
  const Plan turns = PlanOf(two, free);
  for (int cut = 0; cut < 3; ++cut) {
    const PlannedBoundary& boundary = turns.boundaries[cut];
    EXPECT_FALSE(boundary.in_memory);
    EXPECT_EQ(boundary.upstream_stage, cut % 2);
    EXPECT_EQ(boundary.downstream_stage, (cut + 1) % 2);
  }
  // The first stage has three or four of its five passes in flight in its first segment.
  const Partition partition = *PartitionFrom(*ParseExperiment(kExperiment, "test", two));
  const auto costs = SegmentCosts(partition.model, partition.cuts);
  const auto bytes = [&](int segment, int64_t in_flight) {
    TrainingMemory memory;
    memory.microbatch_samples = turns.microbatch_size;
    memory.samples_in_flight = in_flight * turns.microbatch_size;
    return TrainingBytes(costs[segment], memory);
  };
  const int64_t kept = std::max(bytes(0, 3) + bytes(2, 2), bytes(0, 4) + bytes(2, 1));
  const int64_t layouts = 2 * 4 * (costs[0].convolution_elements + costs[2].convolution_elements);
  const int64_t work =
      4 * turns.microbatch_size * std::max(costs[0].work_elements, costs[2].work_elements);
  int64_t sent = 0;  // elements of a microbatch at all cuts
  for (const Cut& cut : partition.cuts) {
    sent += turns.microbatch_size * partition.model.blocks[cut.block].out.elements();
  }
  EXPECT_EQ(turns.stages[0].memory_bytes,
            kept + layouts + work + kProgramBytes + kMessagesAtCut * 4 * sent);
  EXPECT_EQ(turns.stages[0].chunks.size(), 2u);
  EXPECT_THAT(FormatPlan(turns), HasSubstr("stem to layer1.0; layer3.0"));
}

constexpr char kText[] = R"(
name: planned
model: {name: gpt2, layers: 3, heads: 2, width: 32, tied: false}
data: {name: shakespeare, context: 64, batch_size: 8}
pipeline: {cuts: [h.0, h.1], microbatches: 2}
compression: {activations: {codec: uniform, bits: 4}}
optimizer: {lr: 0.1}
epochs: 1
)";

TEST(PlanTest, SlicesFillThePipelineSoonerAndKeepKeysAndValues) {
  PlanAssumptions free;
  free.bits_per_second = {std::numeric_limits<double>::infinity()};
  const auto plan_of = [&](const std::vector<std::string>& overrides) {
    const Experiment experiment = *ParseExperiment(kText, "test", overrides);
    return *MakePlan(experiment, free, SomeSpeeds(experiment));
  };
  const Plan whole = plan_of({});
  const Plan slices = plan_of({"pipeline.schedule=terapipe", "pipeline.slices=4"});
  EXPECT_LT(slices.steps[0].seconds(), whole.steps[0].seconds());
  EXPECT_EQ(slices.boundaries[0].activations.raw_bytes, whole.boundaries[0].activations.raw_bytes);
  // Four messages have four headers where one had one.
  EXPECT_GT(slices.boundaries[0].activations.wire_bytes,
            whole.boundaries[0].activations.wire_bytes);
  // The second stage has a block, with one or two microbatches of four sequences in flight: keys
  // and values of 64 positions, 32 features each, and the gradients of both.
  // The largest layer makes 4 x 32 features of 32, and works on a sequence of four at a time.
  // Messages of a quarter of the positions cross two cuts.
  EXPECT_EQ(slices.stages[1].memory_bytes - whole.stages[1].memory_bytes,
            2 * 4 * (2 * 64 * 32) * 8 - 3 * (64 * (32 + 4 * 32 + 32)) * 4 -
                2 * kMessagesAtCut * 3 * (64 * 32) * 4);
}

TEST(PlanTest, AStashAndPayloadsTakeLessMemory) {
  const auto bytes = [](const std::vector<std::string>& overrides, int stage) {
    const Experiment experiment = *ParseExperiment(kText, "test", overrides);
    return MakePlan(experiment, PlanAssumptions(), SomeSpeeds(experiment))
        ->stages[stage]
        .memory_bytes;
  };
  const std::string more = "data.batch_size=32", eight = "pipeline.microbatches=8",
                    whole = "compression.activations.scope=tensor";
  const std::string decoded = "pipeline.received=decoded";
  // The last stage has one microbatch in flight, the first receives nothing. In the second there
  // are two of four sequences: their inputs take 4 bits an element, and one is there as it is.
  for (const int stage : {0, 2}) {
    EXPECT_EQ(bytes({more, eight}, stage), bytes({more, eight, decoded}, stage));
  }
  const int64_t input = 4 * 64 * 32;
  EXPECT_NEAR(bytes({more, eight, whole, decoded}, 1) - bytes({more, eight, whole}, 1),
              2 * input * 4 - 2 * input / 2 - input * 4, 0.05 * input * 4);
  const std::string stash =
      "pipeline.stash={codec: uniform, bits: 4, scope: group, group: 64, rounding: stochastic}";
  EXPECT_LT(bytes({more, eight, stash}, 0), bytes({more, eight}, 0));
}

// Messages cross two cuts and come back, one at a time; with clipping, sums follow them.
TEST(PlanTest, EndsOfMessagesCount) {
  const Experiment experiment = *ParseExperiment(
      kText, "test", {"pipeline.microbatches=1", "model.tied=true", "optimizer.clip_norm=1"});
  PlanAssumptions free;
  free.bits_per_second = {std::numeric_limits<double>::infinity()};
  Speeds speeds = SomeSpeeds(experiment);
  const double without = MakePlan(experiment, free, speeds)->steps[0].seconds();
  speeds.transport.seconds_per_message = 10;
  const Plan with = *MakePlan(experiment, free, speeds);
  EXPECT_EQ(with.transport.seconds_per_message, 10);
  // Each crossing has two ends. There are two activations, two gradients, the tied weight's and
  // four sums.
  EXPECT_NEAR(with.steps[0].seconds() - without, 2 * 10 * (2 + 2 + 1 + 4), 1e-6);
  EXPECT_THAT(FormatPlan(with), HasSubstr("Each end of a message takes 10000000 us"));
}

TEST(PlanTest, SpeedsOfBlocksAndCodingsCount) {
  const Experiment experiment = *ParseExperiment(kExperiment, "test", {});
  Speeds speeds = SomeSpeeds(experiment);
  for (BlockSeconds& block : speeds.blocks) block = {1, 2, 3};
  speeds.layer_seconds = 5;
  const PlannedDirection before = PlanOf({}).boundaries[0].activations;
  CodingSpeed& speed = speeds.codings[{"layer1", false, CodecText(before.codec), "none"}];
  speed = {1e-6, 2e-6, before.wire_bytes * 0.5 / before.raw_bytes};
  const Plan plan = *MakePlan(experiment, PlanAssumptions(), speeds);
  // stem and layer1.0 are two blocks; microbatches have 32 samples.
  const std::vector<BlockSpec> blocks = PartitionFrom(experiment)->model.blocks;
  const auto layers = static_cast<double>(CountLayers(blocks[0]) + CountLayers(blocks[1]));
  EXPECT_DOUBLE_EQ(plan.stages[0].forward_seconds, 2 * 32 * 1 + 5 * layers);
  EXPECT_DOUBLE_EQ(plan.stages[0].backward_seconds, 2 * 32 * 2 + 2 * 5 * layers);
  EXPECT_DOUBLE_EQ(plan.stages[0].update_seconds, 2 * 3);
  const PlannedDirection& after = plan.boundaries[0].activations;
  EXPECT_EQ(after.wire_bytes, before.wire_bytes);  // the upper bound does not change
  EXPECT_NEAR(after.likely_wire_bytes, 0.5 * before.wire_bytes, 300);
  EXPECT_DOUBLE_EQ(after.encode_seconds, after.raw_bytes * 1e-6);
  EXPECT_DOUBLE_EQ(after.decode_seconds, after.raw_bytes * 2e-6);
  EXPECT_EQ(plan.boundaries[1].activations.encode_seconds,
            PlanOf({}).boundaries[1].activations.encode_seconds);
}

TEST(PlanTest, FrozenStagesGoForwardOnly) {
  const Plan whole = PlanOf({}), plan = PlanOf({"freeze=[stem, layer1, layer3]"});
  EXPECT_EQ(plan.stages[0].backward_seconds, 0);
  EXPECT_EQ(plan.stages[0].parameters, 0);
  EXPECT_LT(plan.stages[0].memory_bytes - kProgramBytes,
            (whole.stages[0].memory_bytes - kProgramBytes) / 2);
  EXPECT_EQ(plan.stages[1].backward_seconds, whole.stages[1].backward_seconds);
  EXPECT_DOUBLE_EQ(plan.stages[2].backward_seconds, whole.stages[2].backward_seconds / 2);
  EXPECT_EQ(plan.boundaries[0].gradients.wire_bytes, 0);
  EXPECT_EQ(plan.boundaries[1].gradients.wire_bytes, whole.boundaries[1].gradients.wire_bytes);
  EXPECT_LT(plan.steps[0].seconds(), whole.steps[0].seconds());
  EXPECT_THAT(FormatPlan(plan), Not(HasSubstr("nan")));
}

TEST(FormatPlanTest, WarnsOfBatchNormOnlyWithSeveralMicrobatches) {
  EXPECT_THAT(FormatPlan(PlanOf({})), HasSubstr("each microbatch of 32 samples"));
  EXPECT_THAT(FormatPlan(PlanOf({"pipeline.microbatches=1"})), Not(HasSubstr("Note:")));
}

TEST(FormatPlanTest, TellsLinksRatesAndAssumptions) {
  const std::string text = FormatPlan(PlanOf({"pipeline.stages=2"}));
  EXPECT_THAT(text, HasSubstr(" memory "));
  EXPECT_THAT(text, HasSubstr(" 0-1 "));
  EXPECT_THAT(text, HasSubstr("100 Mbit/s"));
  EXPECT_THAT(text, HasSubstr("Compute: 10 GFLOP/s."));
  EXPECT_THAT(text, HasSubstr("Codecs: 2 GB/s."));
  EXPECT_THAT(text, HasSubstr("(--nic\nshared)"));
  EXPECT_THAT(text, ContainsRegex("(--rtt_ms)"));
}

TEST(FormatPlanTest, FitsEightyColumns) {
  std::istringstream lines(FormatPlan(PlanOf(
      {"compression.gradients={codec: topk, ratio: 0.1, values: uniform, group: 64, feedback: "
       "{kind: aq_sgd, store: q8, limit_bytes: 100000000, on_full: plain}}"})));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST(FormatPlanTest, TellsPrecisionAndDevices) {
  const std::string text = FormatPlan(PlanOf(
      {"pipeline.stages=2", "device=[cuda:1, auto]", "precision=tf32", "deterministic=false"}));
  EXPECT_THAT(text, HasSubstr(", tf32 not deterministic\n"));
  EXPECT_THAT(text, HasSubstr("  cuda:1\n"));
  EXPECT_THAT(text, HasSubstr("  auto\n"));
}

TEST(FormatPlanTest, TheUncutModelHasNoBoundaryTable) {
  EXPECT_THAT(FormatPlan(PlanOf({"pipeline.cuts=none"})), Not(HasSubstr("wire kB")));
}

TEST(PlanTest, OutsideTheEpilogueGradientsGoExact) {
  const std::string topk = "compression.gradients={codec: topk, ratio: 0.1";
  const Plan always = PlanOf({topk + "}"}), epilogue = PlanOf({topk + ", epilogue_only: true}"});
  // There are two microbatches. The segment before layer3 receives the second in its cool-down;
  // those before it receive both.
  EXPECT_EQ(epilogue.boundaries[0].gradients.wire_bytes, always.boundaries[0].gradients.wire_bytes);
  EXPECT_EQ(epilogue.boundaries[2].gradients.exact_messages, 1);
  EXPECT_GT(epilogue.boundaries[2].gradients.wire_bytes,
            always.boundaries[2].gradients.wire_bytes * 3);
  EXPECT_GT(epilogue.steps[0].seconds(), always.steps[0].seconds());
}

TEST(PlanTest, ALevelScheduleIsPlannedAtItsEnd) {
  const Plan plan =
      PlanOf({"epochs=2",
              "compression.activations={codec: topk, ratio: 0.9, level: {by_epoch: {2: 0.1}}}"});
  EXPECT_EQ(plan.boundaries[0].activations.wire_bytes,
            PlanOf({}).boundaries[0].activations.wire_bytes);
  EXPECT_THAT(FormatPlan(plan), HasSubstr("level by_epoch(2: 0.1)"));
}

TEST(PlanTest, HalvesOfABudgetHaveTheirOwnHeaders) {
  const auto wire_bytes = [](const char* feedback) {
    return PlanOf({absl::StrCat(
                      "compression.gradients={codec: topk, ratio: 0.1, feedback: ", feedback, "}")})
        .boundaries[0]
        .gradients.wire_bytes;
  };
  EXPECT_EQ(wire_bytes("ef"), wire_bytes("none"));
  EXPECT_EQ(wire_bytes("aq_sgd"), wire_bytes("none"));
  EXPECT_GT(wire_bytes("ef_mixed_b"), wire_bytes("none") + 2 * (8 + 8));  // two microbatches
  EXPECT_LT(wire_bytes("ef_mixed_b"), 2 * wire_bytes("none"));
}

TEST(PlanTest, AssumptionsOutOfRangeAreRefusedByName) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto error = [](double mbit, double rtt_ms) {
    PlanAssumptions assumptions;
    assumptions.bits_per_second = {mbit * 1e6};
    assumptions.rtt_ms = rtt_ms;
    const Experiment experiment = *ParseExperiment(kExperiment, "test", {});
    return std::string(
        MakePlan(experiment, assumptions, SomeSpeeds(experiment)).status().message());
  };
  for (const double value : {kNaN, -kInfinity, -1.0}) {
    EXPECT_THAT(error(value, 0), HasSubstr("--link_mbit: ")) << value;
    EXPECT_THAT(error(10, value), HasSubstr("--rtt_ms: ")) << value;
  }
  EXPECT_EQ(error(0, 0), "--link_mbit: 0, want 1e-06 to 1e+12");
  EXPECT_EQ(error(10, kInfinity), "--rtt_ms: inf, want 0 to 1e+12");
  EXPECT_EQ(error(kInfinity, 0), "");  // infinitely fast
}

TEST(FormatPlanTest, WarnsOfACodecThatExpandsUnderFeedback) {
  const auto text = [](int bits) {
    return FormatPlan(PlanOf(
        {absl::StrCat("compression.gradients={codec: uniform, bits: ", bits, ", feedback: ef}")}));
  };
  EXPECT_THAT(text(1), HasSubstr("\nwarning: layer1, gradients: codec uniform(bits=1"));
  EXPECT_THAT(text(4), Not(HasSubstr("warning")));
}

TEST(PlanTest, TheStateOfFeedbackIsInTheTable) {
  EXPECT_THAT(FormatPlan(PlanOf({"compression.activations.feedback=ef21"})),
              HasSubstr("ef21(key=slot"));
  EXPECT_THAT(FormatPlan(PlanOf({})), Not(HasSubstr("State of feedback")));
}

constexpr char kLanguageModel[] = R"(
name: language
model: {name: gpt2, layers: 2, heads: 2, width: 16}
data: {name: shakespeare, context: 16, batch_size: 6}
pipeline: {cuts: [h.0, h.1], microbatches: 2}
optimizer: {name: adamw, lr: 0.01}
epochs: 2
)";

Plan LanguageModelPlan(const std::vector<std::string>& overrides) {
  const Experiment experiment = *ParseExperiment(kLanguageModel, "test", overrides);
  return *MakePlan(experiment, PlanAssumptions(), SomeSpeeds(experiment));
}

TEST(TiedPlanTest, TheWeightsGradientsCrossOnceAStepBetweenFirstAndLastStage) {
  const Plan plan = LanguageModelPlan({});
  ASSERT_EQ(plan.boundaries.size(), 3u);
  const PlannedBoundary& tied = plan.boundaries.back();
  EXPECT_EQ(tied.name, "tied");
  EXPECT_EQ(tied.upstream_stage, 0);
  EXPECT_EQ(tied.downstream_stage, 2);
  EXPECT_FALSE(tied.in_memory);
  EXPECT_EQ(tied.elements, 65 * 16);
  EXPECT_EQ(tied.activations.raw_bytes, 65 * 16 * 4);
  EXPECT_EQ(tied.gradients.raw_bytes, 65 * 16 * 4);
  EXPECT_THAT(FormatPlan(plan), HasSubstr("tied       0-2 "));
}

TEST(TiedPlanTest, TheWeightCountsOnceAndItsRowsHaveTheState) {
  const Plan whole = LanguageModelPlan({"pipeline.cuts=[]"});
  EXPECT_EQ(whole.boundaries.size(), 0u);
  const Plan plan = LanguageModelPlan(
      {"compression.boundaries.tied.gradients={codec: uniform, bits: 4, feedback: ef}"});
  int64_t parameters = 0;
  for (const PlannedStage& stage : plan.stages) parameters += stage.parameters;
  EXPECT_EQ(parameters, whole.stages[0].parameters);
  ASSERT_EQ(plan.state.directions.size(), 1u);
  EXPECT_EQ(plan.state.directions[0].boundary, "tied");
  EXPECT_EQ(plan.state.directions[0].rows, 65u);
  EXPECT_EQ(plan.state.directions[0].sender_stage, 2);
  EXPECT_EQ(plan.state.directions[0].receiver_stage, 0);
}

TEST(TiedPlanTest, WhatComesBehindThePassesTakesItsTime) {
  const Plan free = LanguageModelPlan({"model.tied=false"}), tied = LanguageModelPlan({});
  const Plan clipped = LanguageModelPlan({"model.tied=false", "optimizer.clip_norm=1"});
  // The first step is that of the slowest link.
  const double bits = free.steps[0].bits_per_second();
  EXPECT_NEAR(tied.steps[0].seconds() - free.steps[0].seconds(),
              8.0 * tied.boundaries.back().gradients.wire_bytes / bits, 1e-3);
  const double sum_bytes = static_cast<double>(clipped.boundaries[0].gradients.wire_bytes -
                                               free.boundaries[0].gradients.wire_bytes);
  EXPECT_GT(sum_bytes, 0);
  EXPECT_NEAR(clipped.steps[0].seconds() - free.steps[0].seconds(), 4 * 8 * sum_bytes / bits, 1e-5);
}

constexpr char kReplicated[] = R"(
name: replicated
model: {name: gpt2, layers: 2, heads: 2, width: 64, tied: false}
data: {name: shakespeare, context: 16, batch_size: 12}
pipeline: {cuts: [h.0], microbatches: 2}
replicas: {count: 3, contributions: {codec: uniform, bits: 8}}
optimizer: {name: adamw, lr: 0.01}
epochs: 2
)";

Plan ReplicatedPlan(const std::vector<std::string>& overrides, int carriers = 0,
                    double bits_per_second = 10e6) {
  const auto experiment = ParseExperiment(kReplicated, "test", overrides);
  EXPECT_TRUE(experiment.ok()) << experiment.status();
  PlanAssumptions assumptions;
  assumptions.carriers = carriers;
  assumptions.bits_per_second = {bits_per_second};
  auto plan = MakePlan(*experiment, assumptions, SomeSpeeds(*experiment));
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

TEST(ReplicasPlanTest, AReplicaHasItsShareOfABatch) {
  const Plan plan = ReplicatedPlan({"data.limit=300"});
  const Plan one = ReplicatedPlan({"replicas.count=1", "data.batch_size=4", "data.limit=100"});
  EXPECT_EQ(plan.batch_size, 12);
  EXPECT_EQ(plan.microbatches, 2);
  EXPECT_EQ(plan.microbatch_size, 2);
  EXPECT_EQ(plan.exchange.replicas, 3);
  EXPECT_EQ(plan.exchange.carriers, 3);
  EXPECT_EQ(plan.boundaries[0].activations.wire_bytes, one.boundaries[0].activations.wire_bytes);
  EXPECT_EQ(plan.compute_seconds, one.compute_seconds);
  EXPECT_DOUBLE_EQ(plan.steps[0].seconds(),
                   one.steps[0].seconds() + plan.steps[0].exposed_seconds());
  EXPECT_DOUBLE_EQ(plan.steps[0].samples_per_second(), 12 / plan.steps[0].seconds());
  EXPECT_EQ(one.steps[0].exchange_seconds(), 0);
}

TEST(ReplicasPlanTest, TheExchangeTakesAtLeastItsBytes) {
  const Plan plan = ReplicatedPlan({});
  const StepEstimate& step = plan.steps[0];
  EXPECT_GE(step.exchange_seconds(), step.exposed_seconds());
  EXPECT_GT(step.exposed_seconds(), 0);
  ASSERT_EQ(plan.sent.size(), 3u * 2u);
  for (const SentByMachine& sent : plan.sent) {
    EXPECT_GT(sent.at_cuts, 0);
    EXPECT_LE(8.0 * sent.in_exchange / (kPayloadShare * 10e6), step.exchange_seconds());
  }
  EXPECT_GT(step.uncompressed_seconds(), step.seconds());
}

TEST(ReplicasPlanTest, BytesAreThoseOfAllMachines) {
  const Plan plan = ReplicatedPlan({});
  int64_t cuts = 0;
  for (const PlannedBoundary& boundary : plan.boundaries) {
    cuts += boundary.activations.likely_wire_bytes + boundary.gradients.likely_wire_bytes;
  }
  const PlannedExchange& exchange = plan.exchange;
  EXPECT_EQ(StepWireBytes(plan), 3 * cuts + exchange.contributions.likely_wire_bytes +
                                     exchange.average.likely_wire_bytes);
  EXPECT_GT(MachineWireBytes(plan), StepWireBytes(plan) / 6);
  // The average goes as it is, a contribution with a quarter of the bytes.
  EXPECT_NEAR(4.0 * exchange.contributions.wire_bytes / exchange.average.wire_bytes, 1, 0.1);
}

TEST(ReplicasPlanTest, FewerCarriersComputeLongerAndSendLess) {
  const Plan three = ReplicatedPlan({}), two = ReplicatedPlan({}, 2), one = ReplicatedPlan({}, 1);
  EXPECT_DOUBLE_EQ(two.compute_seconds, 2 * three.compute_seconds);
  EXPECT_LT(StepWireBytes(two), StepWireBytes(three));
  EXPECT_EQ(one.exchange.contributions.wire_bytes, 0);
  EXPECT_EQ(one.sent.size(), 2u);
  // Nothing crosses, but all is encoded.
  EXPECT_EQ(one.exchange.contributions.encode_seconds, three.exchange.contributions.encode_seconds);
  EXPECT_GT(one.exchange.contributions.encode_seconds, 0);
}

TEST(ReplicasPlanTest, MoreBandwidthIsNeverSlower) {
  for (const char* exchange : {"reduce", "gather"}) {
    double before = std::numeric_limits<double>::infinity();
    for (double rate = 1e6; rate < 1e11; rate *= 1.7) {
      const double seconds = ReplicatedPlan({absl::StrCat("replicas.exchange=", exchange)}, 0, rate)
                                 .steps[0]
                                 .seconds();
      EXPECT_LE(seconds, before * (1 + 1e-9)) << exchange << " at " << rate;
      before = seconds;
    }
  }
}

TEST(ReplicasPlanTest, WhatIsExchangedTakesMemory) {
  const Plan none = ReplicatedPlan({"replicas.count=1", "data.batch_size=4"});
  const Plan plain = ReplicatedPlan({});
  const Plan feedback = ReplicatedPlan({"replicas.contributions.feedback=ef"});
  const std::string low_rank = "replicas.contributions={codec: low_rank, rank: 2, feedback: ";
  const Plan factors = ReplicatedPlan({low_rank + "none}"});
  const Plan factors_with_feedback = ReplicatedPlan({low_rank + "ef}"});
  for (size_t i = 0; i < none.stages.size(); ++i) {
    const int64_t bytes = 4 * none.stages[i].parameters;
    EXPECT_EQ(plain.stages[i].memory_bytes, none.stages[i].memory_bytes + bytes);
    EXPECT_EQ(feedback.stages[i].memory_bytes, none.stages[i].memory_bytes + 4 * bytes);
    EXPECT_EQ(factors.stages[i].memory_bytes, none.stages[i].memory_bytes + 2 * bytes);
    EXPECT_EQ(factors_with_feedback.stages[i].memory_bytes,
              none.stages[i].memory_bytes + 3 * bytes);
  }
}

// Epochs have 25 steps, and so the first exchange after 10, another after 20, and one at the end.
TEST(ReplicasPlanTest, LocalStepsShareTheirExchanges) {
  const std::vector<std::string> often = {"data.limit=300"};
  const std::vector<std::string> rare = {"data.limit=300", "replicas.sync=local",
                                         "replicas.every=10"};
  const Plan step = ReplicatedPlan(often), local = ReplicatedPlan(rare);
  EXPECT_EQ(local.exchange.every, 10);
  EXPECT_DOUBLE_EQ(local.exchange.per_step, 3.0 / 25);
  const StepEstimate &each = step.steps[0], &shared = local.steps[0];
  EXPECT_DOUBLE_EQ(shared.exposed_seconds(), each.exposed_seconds());
  EXPECT_NEAR(shared.seconds(),
              each.seconds() - each.exposed_seconds() + 3.0 / 25 * each.exposed_seconds(), 1e-9);
  EXPECT_EQ(local.sent[0].in_exchange, step.sent[0].in_exchange);
  EXPECT_LT(StepWireBytes(local), StepWireBytes(step));
  for (size_t i = 0; i < local.stages.size(); ++i) {
    // Shared values, or in their place the replica's own, and outer momentum.
    EXPECT_EQ(local.stages[i].memory_bytes,
              step.stages[i].memory_bytes + 2 * 4 * step.stages[i].parameters);
  }
  // One machine also has what Adam remembers of each of three replicas.
  const Plan one = ReplicatedPlan(rare, /*carriers=*/1);
  EXPECT_EQ(one.stages[0].memory_bytes,
            step.stages[0].memory_bytes + (2 + 3 * 3) * 4 * step.stages[0].parameters);
  EXPECT_THAT(FormatPlan(local), HasSubstr("every 10 steps"));
}

TEST(ReplicasPlanTest, TheOuterOptimizerTakesAsLongAsAnUpdate) {
  const auto exposed = [](const std::string& sync, double update_seconds) {
    const Experiment experiment = *ParseExperiment(kReplicated, "test", {"replicas=" + sync});
    PlanAssumptions assumptions;
    assumptions.bits_per_second = {10e6};
    Speeds speeds = SomeSpeeds(experiment);
    for (BlockSeconds& block : speeds.blocks) block.update = update_seconds;
    const Plan plan = *MakePlan(experiment, assumptions, speeds);
    double most = 0;
    for (const PlannedStage& stage : plan.stages) most = std::max(most, stage.update_seconds);
    return std::make_pair(plan.steps[0].exposed_seconds(), most);
  };
  const auto [none, no_update] = exposed("{sync: local, every: 10}", 0);
  const auto [with, update] = exposed("{sync: local, every: 10}", 0.25);
  EXPECT_EQ(no_update, 0);
  EXPECT_GE(update, 0.25);
  EXPECT_NEAR(with, none + update, 1e-9);
  EXPECT_NEAR(exposed("{sync: step}", 0.25).first, exposed("{sync: step}", 0).first, 1e-9);
}

// Steps that go on hide a fragment of the exchange, in part or as a whole.
TEST(ReplicasPlanTest, OverlapHidesAnExchange) {
  const auto exposed = [](int fragments, int overlap) {
    return ReplicatedPlan({"replicas.sync=local", "replicas.every=10",
                           absl::StrCat("replicas.fragments=", fragments),
                           absl::StrCat("replicas.overlap=", overlap)})
        .steps[0]
        .exposed_seconds();
  };
  const StepEstimate each = ReplicatedPlan({}).steps[0];
  const double without = each.seconds() - each.exposed_seconds();
  EXPECT_NEAR(exposed(2, 0), each.exposed_seconds(), 1e-9);
  EXPECT_NEAR(exposed(2, 1), each.exposed_seconds() - 2 * without, 1e-9);
  EXPECT_GT(exposed(2, 1), 0);
  EXPECT_EQ(exposed(1, 9), 0);
}

TEST(ReplicasPlanTest, MoreCarriersThanReplicasAreRefused) {
  const Experiment experiment = *ParseExperiment(kReplicated, "test", {});
  PlanAssumptions assumptions;
  assumptions.carriers = 4;
  EXPECT_EQ(MakePlan(experiment, assumptions, SomeSpeeds(experiment)).status().message(),
            "--carriers 4: want at most 3, the experiment's replicas.count");
}

TEST(ReplicasPlanTest, TheTablesTellWhatIsExchangedAndWhatItTakes) {
  const std::string text = FormatPlan(ReplicatedPlan({"replicas.contributions.feedback=ef"}));
  EXPECT_THAT(text, HasSubstr("batches of 12 in 3 replicas of 2\nmicrobatches"));
  EXPECT_THAT(text, HasSubstr("\ncontributions"));
  EXPECT_THAT(text, HasSubstr("\naverage "));
  EXPECT_THAT(text, HasSubstr("feedback ef(key=slot"));
  EXPECT_THAT(text, HasSubstr("of it exposed ms"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  const std::string gathered = FormatPlan(ReplicatedPlan({"replicas.exchange=gather"}));
  EXPECT_THAT(gathered, Not(HasSubstr("\naverage ")));
  EXPECT_THAT(gathered, HasSubstr("exchange gather"));
  EXPECT_THAT(FormatPlan(LanguageModelPlan({})), Not(HasSubstr("contributions")));
}

TEST(PlanTest, AdamWRemembersTwoNumbersOfEachParameter) {
  const Plan sgd = LanguageModelPlan({"optimizer.name=sgd"}), adamw = LanguageModelPlan({});
  const Plan momentum = LanguageModelPlan({"optimizer={name: sgd, momentum: 0.9}"});
  for (size_t i = 0; i < sgd.stages.size(); ++i) {
    const int64_t buffer = momentum.stages[i].memory_bytes - sgd.stages[i].memory_bytes;
    EXPECT_GT(buffer, 0);
    EXPECT_EQ(adamw.stages[i].memory_bytes, sgd.stages[i].memory_bytes + 2 * buffer);
  }
}

TEST(PlanTest, AGpuRecordsPassesThatDrawNoNumbers) {
  const auto bytes = [](const char* device, const char* dropout) {
    return LanguageModelPlan(
               {absl::StrCat("device=", device), absl::StrCat("model.dropout=", dropout)})
        .stages[1]
        .memory_bytes;
  };
  EXPECT_GT(bytes("cuda", "0") - bytes("cuda", "0.1"), bytes("cpu", "0") - bytes("cpu", "0.1"));
}

TEST(PlanTest, CodesTakeAQuarterAndMeansOnTheHostNothingOfAGpu) {
  const Plan sgd = LanguageModelPlan({"optimizer.name=sgd"}), adamw = LanguageModelPlan({});
  const Plan coded = LanguageModelPlan({"optimizer.moments=int8"});
  const Plan on_host = LanguageModelPlan({"optimizer.place=host"});
  const Plan on_gpu = LanguageModelPlan({"optimizer.place=host", "device=cuda"});
  const Plan sgd_on_gpu = LanguageModelPlan({"optimizer.name=sgd", "device=cuda"});
  for (size_t i = 0; i < sgd.stages.size(); ++i) {
    const bool has_hidden = i < 2;  // the last one has the head
    EXPECT_EQ(coded.stages[i].memory_bytes < adamw.stages[i].memory_bytes, has_hidden);
    EXPECT_GT(coded.stages[i].memory_bytes, sgd.stages[i].memory_bytes);
    EXPECT_EQ(on_host.stages[i].memory_bytes, adamw.stages[i].memory_bytes);
    EXPECT_EQ(on_gpu.stages[i].memory_bytes, sgd_on_gpu.stages[i].memory_bytes);
  }
}

}  // namespace
}  // namespace thinwire
