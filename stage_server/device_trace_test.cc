#include "stage_server/device_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/steady_time.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Gives what a test has put into it.
class FakeRecorder final : public ActivityRecorder {
 public:
  Error Start() override {
    calls += "start ";
    return start_error;
  }
  Error Stop(size_t* kept, uint64_t* dropped) override {
    calls += "stop ";
    *kept = activities.size();
    *dropped = num_dropped;
    return Error{};
  }
  void Copy(DeviceActivity* to) const override {
    std::copy(activities.begin(), activities.end(), to);
  }

  std::string calls;
  Error start_error;
  std::vector<DeviceActivity> activities;
  uint64_t num_dropped = 0;
};

DeviceActivity Activity(DeviceActivity::Kind kind, uint32_t stream, int64_t begin, int64_t end) {
  DeviceActivity activity;
  activity.kind = kind;
  activity.stream = stream;
  activity.begin = begin;
  activity.end = end;
  activity.amount = 4096;
  return activity;
}

DeviceActivity Kernel(const char* name, uint32_t stream, int64_t begin, int64_t end) {
  DeviceActivity kernel = Activity(DeviceActivity::Kind::kKernel, stream, begin, end);
  std::strncpy(kernel.name, name, sizeof(kernel.name) - 1);
  return kernel;
}

class DeviceTraceTest : public ::testing::Test {
 protected:
  DeviceTraceTest() {
    steps_.set_first(2);
    steps_.set_last(3);
    auto recorder = std::make_unique<FakeRecorder>();
    recorder_ = recorder.get();
    trace_ = std::make_unique<DeviceTrace>(std::move(recorder), steps_,
                                           [this](const std::string& note) { note_ = note; });
  }

  static int64_t Now() { return SteadyTime::Now().nanoseconds(); }
  // Tells of steps 2 and 3; fills the times at which they began, or little later.
  void BeginBoth() {
    EXPECT_TRUE(trace_->Begin(2));
    second_ = Now();
    EXPECT_TRUE(trace_->Begin(3));
    third_ = Now();
  }

  TraceSteps steps_;
  FakeRecorder* recorder_;
  std::unique_ptr<DeviceTrace> trace_;
  std::string note_;
  int64_t second_ = 0, third_ = 0;
};

TEST_F(DeviceTraceTest, RecordsTheTracedStepsOnly) {
  EXPECT_TRUE(trace_->Begin(1));
  EXPECT_THAT(trace_->End(), IsEmpty());
  EXPECT_EQ(recorder_->calls, "");
  BeginBoth();
  EXPECT_EQ(recorder_->calls, "start ");
  EXPECT_FALSE(trace_->Begin(4));
  (void)trace_->End();
  EXPECT_TRUE(trace_->Begin(5));
  EXPECT_EQ(recorder_->calls, "start stop ");
}

TEST_F(DeviceTraceTest, SlicesHaveActivityStreamStepAndBytes) {
  BeginBoth();
  using Kind = DeviceActivity::Kind;
  recorder_->activities = {Kernel("Softmax<float>", 7, second_ - 1000000000, second_ - 999999990),
                           Activity(Kind::kCopyFromHost, 7, second_, second_),
                           Activity(Kind::kCopyToHost, 9, third_, third_ + 5),
                           Activity(Kind::kCopy, 9, third_ + 5, third_ + 6),
                           Activity(Kind::kClear, 9, third_ + 6, third_ + 7)};
  const std::vector<TraceReport> reports = trace_->End();
  ASSERT_EQ(reports.size(), 1u);
  std::vector<std::string> said;
  for (const TraceSlice& slice : reports[0].slices()) {
    EXPECT_EQ(slice.thread(), TraceSlice::DEVICE);
    said.push_back(slice.name() + ", " + std::to_string(slice.stream()) + ", " +
                   std::to_string(slice.step()) + ", " + std::to_string(slice.bytes()));
  }
  EXPECT_THAT(said, ElementsAre("kernel Softmax<float>, 7, 2, 0", "copy to_device, 7, 2, 4096",
                                "copy to_host, 9, 3, 4096", "copy within_device, 9, 3, 4096",
                                "clear, 9, 3, 4096"));
  EXPECT_EQ(reports[0].slices(2).begin(), third_);
  EXPECT_EQ(reports[0].slices(2).end(), third_ + 5);
}

TEST_F(DeviceTraceTest, SlicesOfAStreamDoNotOverlap) {
  BeginBoth();
  recorder_->activities = {
      Kernel("a", 7, third_, third_ + 10), Kernel("b", 8, third_ + 4, third_ + 6),
      Kernel("c", 7, third_ + 8, third_ + 20), Kernel("d", 7, third_ + 15, third_ + 18)};
  const TraceReport report = trace_->End().at(0);
  EXPECT_EQ(report.slices(1).begin(), third_ + 4);
  EXPECT_EQ(report.slices(2).begin(), third_ + 10);
  EXPECT_EQ(report.slices(2).end(), third_ + 20);
  EXPECT_EQ(report.slices(3).begin(), third_ + 20);
  EXPECT_EQ(report.slices(3).end(), third_ + 20);
}

TEST_F(DeviceTraceTest, ReportsAreOfASizeThatAMessageMayHave) {
  BeginBoth();
  recorder_->activities.assign(DeviceTrace::kMostSlices,
                               Kernel(std::string(90, 'k').c_str(), 1000, third_, third_));
  recorder_->num_dropped = 17;
  int slices = 0;
  uint64_t dropped = 0;
  for (const TraceReport& report : trace_->End()) {
    EXPECT_LT(report.ByteSizeLong(), 2u << 20);
    slices += report.slices_size();
    dropped += report.dropped();
  }
  EXPECT_EQ(slices, static_cast<int>(DeviceTrace::kMostSlices));
  EXPECT_EQ(dropped, 17u);
}

TEST_F(DeviceTraceTest, SaysThatTheDeviceCannotBeRecorded) {
  recorder_->start_error = MakeError(absl::StatusCode::kUnavailable, "CUPTI: no permission");
  EXPECT_TRUE(trace_->Begin(2));
  EXPECT_EQ(note_, "the trace goes without the GPU's work: CUPTI: no permission");
  EXPECT_THAT(trace_->End(), IsEmpty());
}

TEST_F(DeviceTraceTest, ADeviceThatCannotBeRecordedIsTriedOnce) {
  recorder_->start_error = MakeError(absl::StatusCode::kUnavailable, "CUPTI: no permission");
  EXPECT_TRUE(trace_->Begin(2));
  note_ = "";
  EXPECT_TRUE(trace_->Begin(3));
  EXPECT_TRUE(trace_->Begin(4));
  EXPECT_THAT(trace_->End(), IsEmpty());
  EXPECT_EQ(note_, "");
  EXPECT_EQ(recorder_->calls, "start ");
}

TEST_F(DeviceTraceTest, SaysThatAWholeStepHasNoKernel) {
  BeginBoth();
  recorder_->activities = {Activity(DeviceActivity::Kind::kCopyFromHost, 7, second_, second_)};
  EXPECT_FALSE(trace_->Begin(4));
  EXPECT_EQ(trace_->End().size(), 1u);
  EXPECT_EQ(note_,
            "the trace lacks the GPU's work: no kernel was recorded in steps 2 to 3; another "
            "profiler may have taken it");
}

TEST_F(DeviceTraceTest, AStepThatHasNotEndedMayHaveNoKernel) {
  EXPECT_TRUE(trace_->Begin(2));
  EXPECT_THAT(trace_->End(), IsEmpty());
  EXPECT_EQ(note_, "");
}

TEST_F(DeviceTraceTest, OneKernelIsEnough) {
  BeginBoth();
  recorder_->activities = {Kernel("a", 7, second_, third_)};
  EXPECT_FALSE(trace_->Begin(4));
  EXPECT_EQ(trace_->End().size(), 1u);
  EXPECT_EQ(note_, "");
}

}  // namespace
}  // namespace thinwire
