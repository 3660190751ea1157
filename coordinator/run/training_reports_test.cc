#include "coordinator/run/training_reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "coordinator/run/run_testing.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

StageEvent Sent(uint64_t wire_bytes) {
  StageEvent event;
  BoundaryReport* end = event.mutable_stage()->add_boundaries();
  end->set_boundary("layer1");
  end->set_sender(true);
  end->set_wire_bytes(wire_bytes);
  return event;
}

// Two stages that are never called.
class TrainingReportsTest : public ::testing::Test {
 protected:
  RecordingObserver observer_;
  Summary summary_;
  Fleet fleet_{{"unix:first", "unix:last"}, "run", FleetOptions()};
  TrainingReports reports_{{"layer1"}, {2}, std::nullopt, &observer_, &summary_};
};

TEST_F(TrainingReportsTest, StepsOfTheLastStageAndBytesOfAllMakeAnEpoch) {
  reports_.ContinueFrom({}, 0, {2}, {});
  reports_.BeginPart();
  ASSERT_TRUE(reports_.Take(0, Sent(50), &fleet_).ok());
  ASSERT_TRUE(reports_.Take(1, Step(1, /*loss=*/2, /*correct=*/1, /*samples=*/3), &fleet_).ok());
  ASSERT_TRUE(reports_.Take(1, Step(2, /*loss=*/6, /*correct=*/1, /*samples=*/1), &fleet_).ok());
  reports_.EndPart();
  ASSERT_TRUE(reports_.CheckPart(/*epoch=*/1, /*last_step=*/2, /*samples=*/4).ok());
  EXPECT_EQ(observer_.steps.size(), 2u);
  EXPECT_EQ(summary_.boundaries(0).activations().wire_bytes(), 50u);
  const EpochRecord epoch = reports_.EpochSoFar(1);
  EXPECT_EQ(epoch.train().loss(), 3.0);  // (3 x 2 + 1 x 6) / 4
  EXPECT_EQ(reports_.step(), 2u);
}

// Two carriers of a pipeline of one stage.
TEST_F(TrainingReportsTest, WhatCarriersReportIsPutTogether) {
  TrainingReports reports({"layer1"}, {/*stages=*/1, /*grid=*/{2, 1}}, std::nullopt, &observer_,
                          &summary_);
  reports.BeginPart();
  const auto step = [](double loss, uint32_t correct) {
    StageEvent event = Step(1, /*loss=*/0, correct, /*samples=*/4);
    event.mutable_step()->add_replica_losses(loss);
    event.mutable_step()->set_labels(2);  // of the samples that it carries
    return event;
  };
  ASSERT_TRUE(reports.Take(1, step(3, 1), &fleet_).ok());
  EXPECT_EQ(observer_.steps.size(), 0u);
  ASSERT_TRUE(reports.Take(0, step(5, 2), &fleet_).ok());
  ASSERT_EQ(observer_.steps.size(), 1u);
  EXPECT_EQ(observer_.steps[0].loss(), 2.0);  // (5 + 3) / 4
  EXPECT_EQ(observer_.steps[0].accuracy(), 0.75);
  ASSERT_TRUE(reports.Take(0, Sent(50), &fleet_).ok());
  ASSERT_TRUE(reports.Take(1, Sent(20), &fleet_).ok());
  reports.EndPart();
  ASSERT_TRUE(reports.CheckPart(/*epoch=*/1, /*last_step=*/1, /*samples=*/4).ok());
  EXPECT_EQ(summary_.boundaries(0).activations().wire_bytes(), 70u);
  EXPECT_EQ(summary_.compute_size(), 1);
}

TEST_F(TrainingReportsTest, APartThatLacksStepsOrSamplesIsAnError) {
  reports_.ContinueFrom({}, 0, {2}, {});
  reports_.BeginPart();
  ASSERT_TRUE(reports_.Take(1, Step(1, 2, 1, /*samples=*/3), &fleet_).ok());
  reports_.EndPart();
  EXPECT_THAT(std::string(reports_.CheckPart(1, 2, 3).message()),
              HasSubstr("epoch 1: the last stage reported 3 trained samples of 3"));
  EXPECT_FALSE(reports_.CheckPart(1, 1, 4).ok());
}

TEST_F(TrainingReportsTest, WhatIsSavedIsWhereTheNextGenerationContinues) {
  reports_.ContinueFrom({}, 0, {2}, {});
  reports_.BeginPart();
  ASSERT_TRUE(reports_.Take(1, Step(1, 2, 1, 3), &fleet_).ok());
  reports_.EndPart();
  RunProgress saved;
  reports_.Save(&saved);
  ASSERT_TRUE(reports_.Take(1, Step(2, 100, 0, 1), &fleet_).ok());  // is lost
  summary_.add_events();
  reports_.ContinueFrom(saved, 1, {2}, SteadyTime::Now());
  EXPECT_EQ(reports_.step(), 1u);
  ASSERT_TRUE(reports_.Take(1, Step(2, 6, 1, 1), &fleet_).ok());
  EXPECT_EQ(reports_.EpochSoFar(1).train().loss(), 3.0);
  EXPECT_TRUE(summary_.events(0).has_seconds());  // until the first step behind the loss
}

TEST_F(TrainingReportsTest, AnObserversErrorIsTheCoordinatorsAndFailsTheFleet) {
  observer_.on_step = absl::ResourceExhaustedError("the disk is full");
  EXPECT_TRUE(absl::IsCancelled(reports_.Take(1, Step(1, 2, 1, 3), &fleet_)));
  const std::optional<Failure> cause = fleet_.cause();
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->stage, Failure::kCoordinator);
  EXPECT_EQ(cause->status.message(), "the disk is full");
}

}  // namespace
}  // namespace thinwire
