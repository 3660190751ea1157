#include "coordinator/run/trace_recorder.h"

#include "coordinator/fleet/fake_stage_testing.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

// One stage, of which steps 10 to 12 are traced.
class TraceRecorderTest : public ::testing::Test {
 protected:
  static RunTrace Empty() {
    RunTrace empty;
    empty.steps.set_first(10);
    empty.steps.set_last(12);
    empty.stages.resize(1);
    return empty;
  }

  // Returns whether the recorder says that the trace is complete.
  bool AddStep(uint64_t step) {
    TraceReport report;
    TraceSlice* slice = report.add_slices();
    slice->set_name("step");
    slice->set_step(step);
    return recorder_.Add(0, report, &fleet_);
  }

  FakeStage stage_;
  Fleet fleet_{{stage_.address()}, "run", {}};
  TraceRecorder recorder_{Empty()};
};

TEST_F(TraceRecorderTest, SaysOnceThatItIsComplete) {
  EXPECT_FALSE(AddStep(10));
  EXPECT_FALSE(AddStep(11));
  EXPECT_TRUE(AddStep(12));
  EXPECT_FALSE(AddStep(12));
}

TEST_F(TraceRecorderTest, ARunThatGoesOnBeforeTheEndTracesWhatComesAgain) {
  AddStep(10);
  AddStep(11);
  recorder_.RestartAfter(10);
  EXPECT_TRUE(recorder_.Upto(10).stages[0].slices.empty());
  AddStep(11);
  EXPECT_TRUE(AddStep(12));
  const RunTrace trace = recorder_.Upto(30);
  EXPECT_EQ(trace.steps.first(), 11u);
  EXPECT_EQ(trace.steps.last(), 12u);
  EXPECT_EQ(trace.stages[0].slices.size(), 2u);
}

TEST_F(TraceRecorderTest, ARunThatGoesOnBehindTheStepsKeepsThem) {
  for (const uint64_t step : {10, 11, 12}) AddStep(step);
  recorder_.RestartAfter(12);
  EXPECT_EQ(recorder_.Upto(30).stages[0].slices.size(), 3u);
}

TEST_F(TraceRecorderTest, AnInterruptedRunHasTheStepsThatItEnded) {
  AddStep(10);
  const RunTrace trace = recorder_.Upto(10);
  EXPECT_EQ(trace.steps.first(), 10u);
  EXPECT_EQ(trace.steps.last(), 10u);
}

TEST_F(TraceRecorderTest, WhatAStageTellsBeyondTheBoundIsCounted) {
  TraceReport report;
  for (uint64_t i = 0; i < kMostSlices + 5; ++i) report.add_slices();
  report.set_dropped(2);
  recorder_.Add(0, report, &fleet_);
  const RunTrace trace = recorder_.Upto(12);
  EXPECT_EQ(trace.stages[0].slices.size(), kMostSlices);
  EXPECT_EQ(trace.stages[0].dropped, 7u);
}

TEST_F(TraceRecorderTest, WhatAGpuDidTakesNoRoomFromThreads) {
  TraceReport report;
  for (uint64_t i = 0; i < kMostDeviceSlices + 5; ++i) {
    report.add_slices()->set_thread(TraceSlice::DEVICE);
  }
  recorder_.Add(0, report, &fleet_);
  report.Clear();
  for (uint64_t i = 0; i < kMostSlices; ++i) report.add_slices();
  recorder_.Add(0, report, &fleet_);
  const RunTrace trace = recorder_.Upto(12);
  EXPECT_EQ(trace.stages[0].slices.size(), kMostDeviceSlices + kMostSlices);
  EXPECT_EQ(trace.stages[0].dropped, 5u);
}

}  // namespace
}  // namespace thinwire
