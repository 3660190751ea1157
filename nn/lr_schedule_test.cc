#include "nn/lr_schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace thinwire {
namespace {

LrScheduleSpec Spec(LrScheduleSpec::Kind kind) {
  LrScheduleSpec spec = DefaultLrSchedule(kind);
  spec.lr = 1;
  spec.t_max = 10;
  spec.step_size = 3;
  return spec;
}

// Returns the rate at the first step of an epoch of 4 steps.
double AtEpoch(const LrScheduleSpec& spec, int64_t epoch) {
  return LearningRate(spec, epoch, (epoch - 1) * 4 + 1, 4);
}

TEST(LrScheduleTest, ConstantStaysConstant) {
  EXPECT_EQ(AtEpoch(Spec(LrScheduleSpec::Kind::kConstant), 99), 1);
}

TEST(LrScheduleTest, CosineFallsFromLrToMinLrOnceAnEpoch) {
  LrScheduleSpec spec = Spec(LrScheduleSpec::Kind::kCosine);
  spec.min_lr = 0.5;
  EXPECT_DOUBLE_EQ(AtEpoch(spec, 1), 1);
  EXPECT_DOUBLE_EQ(AtEpoch(spec, 6), 0.75);
  EXPECT_DOUBLE_EQ(AtEpoch(spec, 11), 0.5);
  EXPECT_EQ(LearningRate(spec, 6, 21, 4), LearningRate(spec, 6, 24, 4));
}

TEST(LrScheduleTest, ACosineOfTwiceTheEpochsEndsHalfway) {
  LrScheduleSpec spec = Spec(LrScheduleSpec::Kind::kCosine);
  spec.lr = 0.01;
  spec.t_max = 200;
  EXPECT_NEAR(AtEpoch(spec, 100), 0.00508, 5e-6);
}

TEST(LrScheduleTest, StepMultipliesByGammaEveryStepSizeEpochs) {
  const LrScheduleSpec spec = Spec(LrScheduleSpec::Kind::kStep);
  EXPECT_DOUBLE_EQ(AtEpoch(spec, 3), 1);
  EXPECT_DOUBLE_EQ(AtEpoch(spec, 4), 0.1);
  EXPECT_DOUBLE_EQ(AtEpoch(spec, 7), 0.01);
}

TEST(LrScheduleTest, LinearFallsEachStepAndStaysAtMinLr) {
  LrScheduleSpec spec = Spec(LrScheduleSpec::Kind::kLinear);
  spec.min_lr = 0.2;
  EXPECT_DOUBLE_EQ(LearningRate(spec, 1, 1, 4), 1);
  EXPECT_DOUBLE_EQ(LearningRate(spec, 6, 21, 4), 0.6);
  EXPECT_DOUBLE_EQ(LearningRate(spec, 99, 400, 4), 0.2);
}

TEST(LrScheduleTest, ACosineByStepFallsWithinTheEpochToo) {
  LrScheduleSpec spec = Spec(LrScheduleSpec::Kind::kCosine);
  spec.by = LrChange::kStep;
  spec.min_lr = 0.5;
  EXPECT_DOUBLE_EQ(LearningRate(spec, 1, 1, 4), 1);
  EXPECT_DOUBLE_EQ(LearningRate(spec, 6, 21, 4), 0.75);
  EXPECT_LT(LearningRate(spec, 6, 22, 4), 0.75);
  EXPECT_DOUBLE_EQ(LearningRate(spec, 6, 24, 4), 0.75 + 0.25 * std::cos(M_PI * 23 / 40));
  EXPECT_DOUBLE_EQ(LearningRate(spec, 11, 41, 4), 0.5);
}

TEST(LrScheduleTest, ByStepItMayEndWithinAnEpoch) {
  LrScheduleSpec spec = Spec(LrScheduleSpec::Kind::kLinear);
  spec.last_step = 10;
  EXPECT_DOUBLE_EQ(LearningRate(spec, 2, 6, 4), 0.5);
  EXPECT_DOUBLE_EQ(LearningRate(spec, 3, 11, 4), 0);
}

TEST(LrScheduleTest, LinearByEpochFallsOnceAnEpoch) {
  LrScheduleSpec spec = Spec(LrScheduleSpec::Kind::kLinear);
  spec.by = LrChange::kEpoch;
  EXPECT_DOUBLE_EQ(LearningRate(spec, 6, 21, 4), 0.5);
  EXPECT_DOUBLE_EQ(LearningRate(spec, 6, 24, 4), 0.5);
  EXPECT_DOUBLE_EQ(LearningRate(spec, 12, 45, 4), 0);
}

TEST(LrScheduleTest, WarmUpGrowsLinearlyFromTheFirstStep) {
  LrScheduleSpec spec = Spec(LrScheduleSpec::Kind::kConstant);
  spec.warmup_steps = 4;
  EXPECT_DOUBLE_EQ(LearningRate(spec, 1, 1, 4), 0.25);
  EXPECT_DOUBLE_EQ(LearningRate(spec, 1, 4, 4), 1);
  EXPECT_DOUBLE_EQ(LearningRate(spec, 2, 5, 4), 1);
}

TEST(LrScheduleTest, NamesAreThoseOfExperimentFiles) {
  LrScheduleSpec::Kind kind{};
  ASSERT_TRUE(FromName("cosine", &kind).ok());
  EXPECT_EQ(kind, LrScheduleSpec::Kind::kCosine);
  const absl::Status unknown = FromName("cosin", &kind);
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(unknown.message().find("nearest is \"cosine\""), absl::string_view::npos);
}

}  // namespace
}  // namespace thinwire
