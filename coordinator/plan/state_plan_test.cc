#include "coordinator/plan/state_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/experiment.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// A sample of the message after layer1 is [8, 8, 16]: 1024 elements, 4096 bytes a row.
constexpr char kExperiment[] = R"(
name: state
model: {name: resnet8, width: 16}
data: {name: digits, batch_size: 10, limit: 100}
pipeline: {cuts: [layer1], microbatches: 3}
compression: {activations: {codec: topk, ratio: 0.1}, gradients: {codec: topk, ratio: 0.1}}
optimizer: {lr: 0.1}
epochs: 1
)";

StatePlan PlanOf(const std::vector<std::string>& overrides) {
  const auto experiment = ParseExperiment(kExperiment, "test", overrides);
  EXPECT_TRUE(experiment.ok()) << experiment.status();
  const auto plan = PlanState(*experiment);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *plan;
}

TEST(StatePlanTest, WithoutFeedbackNothingIsKept) {
  const StatePlan plan = PlanOf({});
  EXPECT_THAT(plan.directions, IsEmpty());
  EXPECT_THAT(plan.stage_memory_bytes, ElementsAre(0, 0));
  EXPECT_EQ(FormatState(plan), "");
}

TEST(StatePlanTest, PrincipalAxesAreAtBothEndsWithAndWithoutFeedback) {
  const std::string principal = "compression.activations={codec: ecsq, rotation: principal";
  const StatePlan plan = PlanOf({principal + "}"});
  ASSERT_THAT(plan.directions, SizeIs(1));
  EXPECT_EQ(plan.directions[0].axes_bytes, 16 * (4 + 16) + 8 * 16 * 16u);
  EXPECT_THAT(plan.stage_memory_bytes, ElementsAre(2368, 2368));
  EXPECT_THAT(FormatState(plan), HasSubstr("principal axes"));
  EXPECT_THAT(PlanOf({principal + ", feedback: ef}"}).stage_memory_bytes,
              ElementsAre(10 * 4096 + 2368, 2368));
}

TEST(StatePlanTest, EfKeepsRowsAtTheSenderOnly) {
  const StatePlan plan = PlanOf({"compression.gradients.feedback=ef"});
  ASSERT_THAT(plan.directions, SizeIs(1));
  EXPECT_EQ(plan.directions[0].rows, 10u);
  EXPECT_EQ(plan.directions[0].sender_stage, 1);
  EXPECT_THAT(plan.stage_memory_bytes, ElementsAre(0, 10 * 4096));
}

TEST(StatePlanTest, Ef21KeepsThemAtBothEnds) {
  EXPECT_THAT(PlanOf({"compression.activations.feedback=aq_sgd"}).stage_memory_bytes,
              ElementsAre(100 * 4096, 100 * 4096));
  EXPECT_THAT(
      PlanOf({"compression.activations.feedback=aq_sgd", "pipeline.stages=1"}).stage_memory_bytes,
      ElementsAre(2 * 100 * 4096));
}

TEST(StatePlanTest, AStreamHasAsManyRowsAsTheLargestMicrobatch) {
  EXPECT_EQ(PlanOf({"compression.gradients.feedback=lazy"}).directions[0].rows, 4u);
}

TEST(StatePlanTest, AllOfTheTrainingSetWithoutALimit) {
  EXPECT_EQ(PlanOf({"compression.gradients.feedback=aq_sgd", "data.limit=0"}).directions[0].rows,
            3823u);
}

TEST(StatePlanTest, WhatDoesNotFitIsRefusedAndNamed) {
  const StatePlan plan = PlanOf({"compression.activations.feedback=aq_sgd"});
  EXPECT_TRUE(CheckMemory(plan, 409600, /*one_machine=*/false).ok());
  EXPECT_TRUE(CheckMemory(plan, 819200, /*one_machine=*/true).ok());
  const absl::Status one = CheckMemory(plan, 819199, /*one_machine=*/true);
  EXPECT_EQ(one.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(one.message()),
              AllOf(HasSubstr("0.8 MB at all stages"), HasSubstr("activation at cut layer1"),
                    HasSubstr("100 rows")));
  EXPECT_THAT(std::string(CheckMemory(plan, 409599, /*one_machine=*/false).message()),
              HasSubstr("0.4 MB at stage 0"));
}

TEST(StatePlanTest, StateInAFileTakesNoMemory) {
  const StatePlan plan =
      PlanOf({"compression.activations.feedback={kind: aq_sgd, dir: /tmp, limit_bytes: 1000000}"});
  EXPECT_THAT(plan.stage_memory_bytes, ElementsAre(0, 0));
  EXPECT_THAT(FormatState(plan), HasSubstr("in a file"));
}

TEST(StatePlanTest, ALimitThatWouldEndTheRunIsRefused) {
  const auto with = [](const std::string& limit) {
    return PlanState(*ParseExperiment(
        kExperiment, "test", {"compression.activations.feedback={kind: aq_sgd, " + limit + "}"}));
  };
  EXPECT_TRUE(with("limit_bytes: 409600").ok());
  const absl::Status status = with("limit_bytes: 409599").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("compression.activations.feedback.limit_bytes: 409599"),
                    HasSubstr("at least 409600 for 100 rows at cut layer1")));
  const auto plain = with("limit_bytes: 409599, on_full: plain");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->directions[0].bytes.sender, 99u * 4096);
}

TEST(StatePlanTest, TheTableNamesBytesAndStages) {
  EXPECT_THAT(FormatState(PlanOf({"compression.gradients.feedback=aq_sgd"})),
              AllOf(HasSubstr("gradient"), HasSubstr("0.4 @1"), HasSubstr("0.4 @0"),
                    HasSubstr("stage 0 0.4 MB, stage 1 0.4 MB"), Not(HasSubstr("in a file"))));
}

}  // namespace
}  // namespace thinwire
