#include "coordinator/plan/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "config/experiment.h"
#include "config/specs.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kText[] = R"(
name: planned
model: {name: gpt2, layers: 4, heads: 2, width: 32, tied: false}
data: {name: shakespeare, context: 64, batch_size: 320}
pipeline: {cuts: [h.1], microbatches: 8}
optimizer: {lr: 0.1}
epochs: 1
)";

Experiment TextWith(const std::vector<std::string>& overrides) {
  const auto experiment = ParseExperiment(kText, "test", overrides);
  EXPECT_TRUE(experiment.ok()) << experiment.status();
  return experiment.ok() ? *experiment : Experiment();
}

Plan PlanOf(const Experiment& experiment) {
  return *MakePlan(experiment, PlanAssumptions(), *AssumedSpeeds(experiment));
}

absl::StatusOr<FittedExperiment> FittedTo(const Experiment& experiment,
                                          const std::vector<int64_t>& limits,
                                          PlanAssumptions assumptions = {}) {
  return FitMemory(experiment, assumptions, *AssumedSpeeds(experiment), limits);
}

// Returns what each block does, by its name.
std::map<std::string, std::string> Does(const FittedExperiment& fitted) {
  std::map<std::string, std::string> does;
  for (const BlockMemory& block : fitted.memory.blocks()) does[block.block()] = block.does();
  return does;
}

TEST(MemoryPlanTest, AStageThatHasRoomKeepsAll) {
  const Experiment experiment = TextWith({});
  const FittedExperiment fitted = *FittedTo(experiment, {1 << 30, 1 << 30});
  for (const auto& [block, does] : Does(fitted)) EXPECT_EQ(does, "keep") << block;
  EXPECT_EQ(fitted.memory.step_seconds(), fitted.memory.plain_step_seconds());
  EXPECT_EQ(fitted.experiment.pipeline().keep().size(), 6u);
}

TEST(MemoryPlanTest, StagesFitIntoTheirLimits) {
  const Experiment experiment = TextWith({});
  const Plan plain = PlanOf(experiment);
  const int64_t first = plain.stages[0].memory_bytes, second = plain.stages[1].memory_bytes;
  const int64_t limit = first * 3 / 4;
  ASSERT_LT(second, first);
  const FittedExperiment fitted = *FittedTo(experiment, {limit, second});
  const Plan plan = PlanOf(fitted.experiment);
  EXPECT_LE(plan.stages[0].memory_bytes, limit);
  EXPECT_EQ(plan.stages[1].memory_bytes, second);
  EXPECT_GT(fitted.memory.step_seconds(), fitted.memory.plain_step_seconds());
  const auto does = Does(fitted);
  EXPECT_EQ(does.at("h.0"), "recompute");
  EXPECT_EQ(does.at("h.2"), "keep");
  const BlockMemory& block = fitted.memory.blocks(1);
  EXPECT_EQ(block.block(), "h.0");
  EXPECT_EQ(block.bytes(), 40u * 64 * 32 * 4);
  EXPECT_GT(block.kept_bytes(), 10 * block.bytes());
  EXPECT_GT(block.seconds(), 0);
}

TEST(MemoryPlanTest, AStashAndASwapAreUsedOnlyIfTheExperimentSaysHow) {
  const std::string stash = "pipeline.stash={codec: uniform, bits: 4}";
  const Experiment experiment = TextWith({});
  const int64_t limit = PlanOf(experiment).stages[0].memory_bytes * 5 / 8;
  const auto uses = [&](const Experiment& e, const std::string& what) {
    const auto fitted = FittedTo(e, {limit, limit});
    EXPECT_TRUE(fitted.ok()) << fitted.status();
    if (!fitted.ok()) return false;
    for (const BlockMemory& block : fitted->memory.blocks()) {
      if (block.does() == what) return true;
    }
    return false;
  };
  EXPECT_TRUE(uses(experiment, "recompute"));
  EXPECT_FALSE(uses(experiment, "stash"));
  EXPECT_FALSE(uses(experiment, "swap"));
  const std::string slow = "pipeline.keep={h.0: keep, h.1: keep}";
  EXPECT_FALSE(FittedTo(TextWith({slow}), {limit, limit}).ok());
  EXPECT_TRUE(uses(TextWith({stash, "pipeline.keep={h.0: stash}"}), "stash"));
}

TEST(MemoryPlanTest, WhatMovesBesideTheComputationIsSwapped) {
  // Four blocks of a microbatch stay here, so a stage has more of them.
  const Experiment experiment =
      TextWith({"model.layers=12", "pipeline.cuts=[h.5]", "pipeline.swap=disk"});
  const int64_t limit =
      PlanOf(TextWith({"model.layers=12", "pipeline.cuts=[h.5]"})).stages[0].memory_bytes * 3 / 4;
  PlanAssumptions fast;
  fast.swap_bytes_per_second = 1e12;
  const auto swapped = FittedTo(experiment, {limit, limit}, fast);
  ASSERT_TRUE(swapped.ok()) << swapped.status();
  EXPECT_EQ(swapped->memory.step_seconds(), swapped->memory.plain_step_seconds());
  EXPECT_THAT(KeepingText(swapped->memory), HasSubstr("swap h."));
}

TEST(MemoryPlanTest, WhatAUserHasChosenStays) {
  const Experiment experiment = TextWith({"pipeline.keep={h.0: keep}"});
  const int64_t limit = PlanOf(experiment).stages[0].memory_bytes * 9 / 10;
  const FittedExperiment fitted = *FittedTo(experiment, {limit, limit});
  EXPECT_EQ(Does(fitted).at("h.0"), "keep");
  EXPECT_EQ(Does(fitted).at("h.1"), "recompute");
}

TEST(MemoryPlanTest, WhatCannotFitIsRefusedWithTheLeast) {
  const Experiment experiment = TextWith({"pipeline.memory=100KiB"});
  const auto refused = FittedTo(experiment, *LimitsOf(experiment, {1e9, 1e9}));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  const std::string message(refused.status().message());
  EXPECT_THAT(message, HasSubstr("pipeline.memory: 100KiB: stage 0 needs at least "));
  EXPECT_THAT(message, HasSubstr(" of it for parameters, gradients and what is remembered, and has "
                                 "100 KiB; stage 1 needs at least "));
  EXPECT_THAT(message, HasSubstr(", or pipeline.swap, or pipeline.stash"));
}

TEST(MemoryPlanTest, TheLeastCanBeHad) {
  const Experiment experiment = TextWith({});
  const FittedExperiment roomy = *FittedTo(experiment, {1 << 30, 1 << 30});
  const auto least = static_cast<int64_t>(roomy.memory.least_bytes());
  EXPECT_TRUE(FittedTo(experiment, {least, least}).ok());
  EXPECT_FALSE(FittedTo(experiment, {least - 1, least - 1}).ok());
}

TEST(MemoryPlanTest, LimitsAreASizeOrTheMachinesLessAMargin) {
  EXPECT_TRUE(LimitsOf(TextWith({}), {1e9, 1e9})->empty());
  EXPECT_THAT(*LimitsOf(TextWith({"pipeline.memory=2GB"}), {1e9, 1e9}),
              ElementsAre(2000000000, 2000000000));
  EXPECT_THAT(*LimitsOf(TextWith({"pipeline.memory=auto"}), {1e9, 2e9}),
              ElementsAre(850000000, 1700000000));
}

TEST(MemoryPlanTest, TheTableHasBlocksPeaksAndTheStep) {
  const Experiment experiment = TextWith({});
  const int64_t limit = PlanOf(experiment).stages[0].memory_bytes * 3 / 4;
  const FittedExperiment fitted = *FittedTo(experiment, {limit, limit});
  const std::string table = FormatMemory(fitted.memory, PlanOf(fitted.experiment));
  EXPECT_THAT(table, HasSubstr("block                stage  does         keeps MB planned MB"));
  EXPECT_THAT(table, HasSubstr("h.0                      0  recompute "));
  EXPECT_THAT(table, HasSubstr("Swap: 0.5 GB/s (--swap_gbps)."));
}

}  // namespace
}  // namespace thinwire
