#include "coordinator/run/tally.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thinwire {
namespace {

StepReport Step(uint64_t step, double loss, uint64_t samples, uint64_t correct) {
  StepReport report;
  report.set_step(step);
  report.set_loss(loss);
  report.set_samples(samples);
  report.set_correct(correct);
  report.set_labels(samples);
  report.set_learning_rate(0.1 / static_cast<double>(step));
  return report;
}

// Stage 0 of two, which has sent that much at the cut and was busy that long.
StageReport Sent(uint64_t wire_bytes, double busy) {
  StageReport report;
  (*report.mutable_activity_seconds())["forward"] = busy;
  BoundaryReport* sender = report.add_boundaries();
  sender->set_boundary("cut");
  sender->set_sender(true);
  sender->set_wire_bytes(wire_bytes);
  return report;
}

TEST(TallyTest, AnEpochIsTheMeanOverItsSamples) {
  Tally tally({"cut"}, {2});
  tally.Add(Step(1, 2.0, 10, 4));
  tally.Add(Step(2, 1.0, 30, 18));
  tally.AddSeconds(8);
  EXPECT_EQ(tally.step(), 2u);
  EXPECT_EQ(tally.epoch_samples(), 40u);
  const EpochRecord epoch = tally.EpochOf(1);
  EXPECT_DOUBLE_EQ(epoch.train().loss(), 1.25);
  EXPECT_DOUBLE_EQ(epoch.train().accuracy(), 0.55);
  EXPECT_DOUBLE_EQ(epoch.lr(), 0.05);
  EXPECT_DOUBLE_EQ(epoch.seconds(), 8);
  EXPECT_DOUBLE_EQ(epoch.samples_per_second(), 5);
  tally.EndEpoch();
  EXPECT_EQ(tally.epoch_samples(), 0u);
  EXPECT_EQ(tally.step(), 2u);
}

TEST(TallyTest, ComputeIsOfTheStepsWithTheseStages) {
  RunProgress progress;
  Tally tally({"cut"}, {2}, progress, /*step=*/7);
  tally.Add(Step(8, 2.0, 10, 4));
  tally.Add(Step(9, 1.0, 30, 18));
  StageReport report = Sent(1000, 3);
  (*report.mutable_activity_seconds())["backward"] = 6;
  (*report.mutable_activity_seconds())["optimizer"] = 0.5;
  (*report.mutable_activity_seconds())["core_wait"] = 2;
  SegmentSeconds* segment = report.add_segments();
  segment->set_segment(4);
  segment->set_forward(2.5);
  segment->set_backward(5);
  segment->set_optimizer(0.25);
  tally.Add(report);
  const std::vector<ComputeRecord> compute = tally.Compute();
  ASSERT_EQ(compute.size(), 2u);
  EXPECT_EQ(compute[0].steps(), 2u);
  EXPECT_EQ(compute[0].samples(), 40u);
  EXPECT_EQ(compute[0].forward_seconds(), 3);
  EXPECT_EQ(compute[0].backward_seconds(), 6);
  EXPECT_EQ(compute[0].optimizer_seconds(), 0.5);
  EXPECT_EQ(compute[0].core_wait_seconds(), 2);
  EXPECT_EQ(compute[1].samples(), 40u);
  EXPECT_EQ(compute[1].forward_seconds(), 0);
  ASSERT_EQ(compute[0].segments_size(), 1);
  EXPECT_EQ(compute[0].segments(0).segment(), 4u);
  EXPECT_EQ(compute[0].segments(0).forward_seconds(), 2.5);
  EXPECT_EQ(compute[0].segments(0).backward_seconds(), 5);
  EXPECT_EQ(compute[0].segments(0).optimizer_seconds(), 0.25);
}

TEST(TallyTest, TokensAreLabels) {
  Tally tally({"cut"}, {2});
  StepReport step = Step(1, 2.0, 10, 40);
  step.set_labels(80);
  tally.Add(step);
  EXPECT_DOUBLE_EQ(tally.EpochOf(1).train().accuracy(), 0.5);
  EXPECT_DOUBLE_EQ(RecordOf(step).accuracy(), 0.5);
}

TEST(TallyTest, WhatIsSavedGoesOn) {
  Tally before({"cut"}, {2});
  before.Add(Step(1, 2.0, 10, 4));
  before.Add(Sent(1000, 3));
  before.EndEpoch();
  before.Add(Step(2, 4.0, 10, 4));
  before.Add(Sent(1500, 4));
  before.AddSeconds(5);
  RunProgress progress;
  before.Save(&progress);

  Tally after({"cut"}, {2}, progress, 2);
  after.Add(Step(3, 2.0, 10, 6));
  after.Add(Sent(700, 1));  // a new process counts from 0 again
  after.AddSeconds(1);
  EXPECT_EQ(after.step(), 3u);
  const EpochRecord epoch = after.EpochOf(2);
  EXPECT_DOUBLE_EQ(epoch.train().loss(), 3);
  EXPECT_DOUBLE_EQ(epoch.seconds(), 6);
  EXPECT_EQ(epoch.boundaries(0).activations().wire_bytes(), 500 + 700u);
  EXPECT_EQ(after.Totals().boundaries[0].activations().wire_bytes(), 2200u);
}

// After a loss only the new stages count.
TEST(TallyTest, TheBubbleIsThatOfTheStagesThatAreThere) {
  RunProgress progress;
  progress.set_training_seconds(1000);
  Tally tally({"cut"}, {2}, progress, 50);
  tally.Add(Sent(700, 3));
  tally.AddSeconds(2);
  EXPECT_DOUBLE_EQ(tally.Totals().bubble_ratio, 1 - 3 / 4.0);
  EXPECT_DOUBLE_EQ(tally.Totals(/*seconds=*/1).bubble_ratio, 1 - 3 / 6.0);
}

}  // namespace
}  // namespace thinwire
