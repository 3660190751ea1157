// Runs whose length is given in optimizer steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/resolve_testing.h"
#include "config/specs.h"
#include "nn/lr_schedule.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

// Epochs of 10 steps.
constexpr char kSteps[] = R"(
model: {name: resnet8}
data: {name: digits, batch_size: 10, limit: 95}
optimizer: {lr: 0.1}
steps: 25
)";

TEST(StepsTest, TakeAsManyEpochsAsHoldThem) {
  const Experiment e = With({}, kSteps);
  EXPECT_EQ(e.steps(), 25u);
  EXPECT_EQ(e.epochs(), 3u);
  EXPECT_EQ(*TrainingSteps(e), 25u);
  EXPECT_EQ(With({"steps=30"}, kSteps).epochs(), 3u);
  EXPECT_EQ(With({"steps=31"}, kSteps).epochs(), 4u);
}

TEST(StepsTest, AndEpochsReplaceEachOther) {
  const Experiment by_epochs = With({"epochs=2"}, kSteps);
  EXPECT_FALSE(by_epochs.has_steps());
  EXPECT_EQ(*TrainingSteps(by_epochs), 20u);
  const Experiment by_steps = With({"data={name: digits, batch_size: 10, limit: 95}", "steps=7"});
  EXPECT_EQ(by_steps.epochs(), 1u);
  EXPECT_EQ(*TrainingSteps(by_steps), 7u);
  const std::string recorded = ToYaml(With({}, kSteps));
  EXPECT_EQ(With({}, recorded).epochs(), 3u);
  EXPECT_EQ(With({"steps=45"}, recorded).epochs(), 5u);
  EXPECT_FALSE(With({"epochs=4"}, recorded).has_steps());
}

TEST(StepsTest, RefuseWhatContradictsThem) {
  EXPECT_THAT(ErrorWith({"steps=0"}, kSteps), HasSubstr("steps: 0, want at least 1"));
  EXPECT_THAT(ErrorWith({}, std::string(kSteps) + "epochs: 2\n"),
              HasSubstr("epochs: 2, want 3, which steps: 25 take, or one of the two"));
  EXPECT_THAT(ErrorWith({"replicas={count: 2, sync: local, every: 5}"}, kSteps),
              HasSubstr("steps: 25, want a multiple of 10, the steps of an epoch, with"));
}

// Returns the rate of the run's step, which begins at 1.
double RateOf(const Experiment& e, int64_t step) {
  return LearningRate(*LrScheduleFrom(e), (step - 1) / 10 + 1, step, 10);
}

TEST(StepsTest, AScheduleEndsWithThem) {
  for (const char* const name : {"cosine", "linear"}) {
    SCOPED_TRACE(name);
    const Experiment e = With({std::string("lr_schedule.name=") + name}, kSteps);
    EXPECT_EQ(e.lr_schedule().by(), "step");
    EXPECT_FALSE(e.lr_schedule().has_t_max());
    EXPECT_DOUBLE_EQ(RateOf(e, 1), 0.1);
    EXPECT_NEAR(RateOf(e, 26), 0, 1e-12);
    EXPECT_GT(RateOf(e, 25), 0);
  }
}

TEST(StepsTest, AScheduleOfItsOwnLengthKeepsIt) {
  const Experiment e = With({"lr_schedule={name: linear, t_max: 1}"}, kSteps);
  EXPECT_DOUBLE_EQ(RateOf(e, 11), 0);
  const Experiment by_epoch = With({"lr_schedule={name: cosine, by: epoch}"}, kSteps);
  EXPECT_EQ(by_epoch.lr_schedule().t_max(), 3u);
  EXPECT_DOUBLE_EQ(RateOf(by_epoch, 1), RateOf(by_epoch, 10));
}

}  // namespace
}  // namespace thinwire
