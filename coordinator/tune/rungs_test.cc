#include "coordinator/tune/rungs.h"

#include "config/experiment.h"
#include "config/specs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

constexpr char kImages[] = R"(
model: {name: resnet8, width: 4}
data: {name: digits, batch_size: 64, limit: 1280}
pipeline: {cuts: [layer1, layer2], microbatches: 2}
compression: {warmup_epochs: 2, activations: {codec: fp16}}
optimizer: {lr: 0.1}
lr_schedule: {name: cosine, warmup_steps: 40}
epochs: 10
device: [cpu, cpu, cpu]
)";

Experiment With(const std::vector<std::string>& overrides = {}) {
  const auto experiment = ParseExperiment(kImages, "test", overrides);
  EXPECT_TRUE(experiment.ok()) << experiment.status();
  return *experiment;
}

Experiment ShrunkTo(uint64_t steps, const std::vector<std::string>& overrides = {}) {
  const auto experiment = Shrunk(With(overrides), steps);
  EXPECT_TRUE(experiment.ok()) << experiment.status();
  return *experiment;
}

uint64_t CostOf(const RungBudget& budget) {
  uint64_t steps = 0;
  for (const Rung& rung : budget.rungs) {
    steps += (rung.candidates + 1) * static_cast<uint64_t>(rung.seeds) * rung.steps;
  }
  return steps;
}

TEST(PlanRungsTest, HalvesEightToTwoWithLongerRunsAndMoreSeeds) {
  const auto budget = PlanRungs(8, 3, 2500, 42);
  ASSERT_TRUE(budget.ok()) << budget.status();
  EXPECT_EQ(budget->exhaustive_steps, 9u * 3 * 2500);
  EXPECT_EQ(budget->budget_steps, 13500u);
  ASSERT_EQ(budget->rungs.size(), 3u);
  const size_t candidates[] = {8, 4, 2};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(budget->rungs[i].candidates, candidates[i]);
    EXPECT_EQ(budget->rungs[i].seeds, i + 1);
  }
  // 9 · 1 + 5 · 2 · 1.5 + 3 · 3 · 2.25 = 44.25 times the first length.
  EXPECT_EQ(budget->rungs[0].steps, 304u);
  EXPECT_EQ(budget->rungs[1].steps, 456u);
  EXPECT_EQ(budget->rungs[2].steps, 684u);
}

TEST(PlanRungsTest, NeverCostsMoreThanItsBudgetAndAlwaysHasTwoLengths) {
  for (size_t candidates = 1; candidates <= 64; ++candidates) {
    for (const int seeds : {1, 2, 3, 7}) {
      const auto budget = PlanRungs(candidates, seeds, 5000, 100);
      ASSERT_TRUE(budget.ok()) << budget.status();
      EXPECT_LE(CostOf(*budget) + 100, budget->budget_steps);
      EXPECT_GE(budget->rungs.size(), 2u);
      EXPECT_LE(budget->rungs.back().candidates, 2u);
      EXPECT_EQ(budget->rungs.back().seeds, seeds);
      EXPECT_LE(budget->rungs.back().steps, 5000u);
      EXPECT_LT(budget->rungs.front().steps, budget->rungs.back().steps);
    }
  }
}

TEST(PlanRungsTest, RefusesAnExperimentThatIsTooShort) {
  EXPECT_THAT(
      std::string(PlanRungs(8, 3, 20, 0).status().message()),
      HasSubstr("has 20 steps, of which a fifth for each of 8 candidates leaves runs of 2"));
  EXPECT_FALSE(PlanRungs(2, 3, 1000, 100000).ok());
}

TEST(ShrunkTest, LessThanAnEpochIsOneOfFewerSamplesWithAScheduleOfItsOwn) {
  const Experiment e = ShrunkTo(10);
  EXPECT_EQ(e.epochs(), 1u);
  EXPECT_EQ(e.data().limit(), 640u);
  EXPECT_EQ(e.lr_schedule().t_max(), 1u);
  EXPECT_EQ(e.lr_schedule().by(), "step");
  EXPECT_EQ(e.lr_schedule().warmup_steps(), 2u);
  EXPECT_EQ(e.compression().warmup_epochs(), 0u);
  EXPECT_EQ(e.pipeline().stages(), 1u);
  EXPECT_EQ(e.device_size(), 1);
  EXPECT_EQ(e.pipeline().microbatches(), 2u);
  EXPECT_EQ(e.evaluation().every(), 0u);
  EXPECT_EQ(e.evaluation().every_steps(), 0u);
}

TEST(ShrunkTest, MoreThanAnEpochIsWholeEpochsOfEquallyManyBatches) {
  const Experiment e = ShrunkTo(51, {"lr_schedule={name: step, step_size: 4}"});
  EXPECT_EQ(e.epochs(), 3u);
  EXPECT_EQ(e.data().limit(), 17u * 64);
  EXPECT_EQ(*TrainingSteps(e), 51u);
  EXPECT_EQ(e.lr_schedule().step_size(), 1u);
  EXPECT_EQ(e.compression().warmup_epochs(), 1u);
}

TEST(ShrunkTest, WindowsAreWhatMakesAnEpochOfText) {
  const auto text = ParseExperiment(R"(
model: {name: gpt2, layers: 4, heads: 4, width: 128}
data: {name: shakespeare, context: 64, windows: 3000, batch_size: 12}
pipeline: {cuts: [h.0, h.1, h.2]}
optimizer: {name: adamw, lr: 0.001}
lr_schedule: {name: cosine, by: step, warmup_steps: 100}
epochs: 8
)",
                                    "test", {});
  ASSERT_TRUE(text.ok()) << text.status();
  const auto e = Shrunk(*text, 600);
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->epochs(), 3u);
  EXPECT_EQ(e->data().windows(), 2400u);
  EXPECT_EQ(*TrainingSteps(*e), 600u);
  EXPECT_EQ(e->lr_schedule().warmup_steps(), 30u);
}

TEST(ShrunkTest, TheWholeLengthLeavesDataAlone) {
  const Experiment e = ShrunkTo(1000);
  EXPECT_EQ(e.epochs(), 10u);
  EXPECT_EQ(e.data().limit(), 1280u);
  EXPECT_EQ(e.lr_schedule().t_max(), 10u);
}

}  // namespace
}  // namespace thinwire
