#include "coordinator/trace/summary.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "coordinator/trace/trace_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

int64_t Nanoseconds(double seconds) { return std::llround(1e9 * seconds); }

std::vector<int64_t> WaitedFor(const StageTimes& times) {
  std::vector<int64_t> all;
  for (const double seconds : times.waited_for) all.push_back(Nanoseconds(seconds));
  return all;
}

TEST(SummaryTest, AddsUpWhatTheExecutorDid) {
  const absl::StatusOr<TraceSummary> summary = Summarize(MadeUpTrace(), std::nullopt);
  ASSERT_TRUE(summary.ok()) << summary.status();
  ASSERT_EQ(summary->stages.size(), 2u);
  const StageTimes& first = summary->stages[0];
  EXPECT_EQ(Nanoseconds(first.step), 100);
  EXPECT_EQ(Nanoseconds(first.forward), 20);
  EXPECT_EQ(Nanoseconds(first.backward), 20);
  EXPECT_EQ(Nanoseconds(first.optimizer), 3);
  EXPECT_EQ(Nanoseconds(first.core_wait), 1);
  EXPECT_EQ(Nanoseconds(first.data), 2);
  EXPECT_EQ(Nanoseconds(first.waiting), 53);
  EXPECT_EQ(Nanoseconds(first.other), 1);
  EXPECT_EQ(Nanoseconds(first.encode), 4);
  EXPECT_EQ(Nanoseconds(first.decode), 4);
  EXPECT_DOUBLE_EQ(first.bubble(), 0.6);
  const StageTimes& last = summary->stages[1];
  EXPECT_EQ(Nanoseconds(last.forward), 20);  // the loss included
  EXPECT_EQ(Nanoseconds(last.waiting), 27);
}

TEST(SummaryTest, SumsArePartsOfThePassesThatHaveThem) {
  RunTrace trace = MadeUpTrace();
  const TraceSummary before = *Summarize(trace, std::nullopt);
  EXPECT_THAT(SummaryText(trace, before), Not(HasSubstr("in sums")));
  const TraceSlice forward =
      *std::find_if(trace.stages[0].slices.begin(), trace.stages[0].slices.end(),
                    [](const TraceSlice& slice) { return slice.name() == "forward"; });
  TraceSlice sum = forward;
  sum.set_name("sum");
  sum.set_end(sum.begin() + 3);
  sum.set_core_wait(1);
  trace.stages[0].slices.push_back(sum);
  const absl::StatusOr<TraceSummary> summary = Summarize(trace, std::nullopt);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(Nanoseconds(summary->stages[0].sums), 2);
  EXPECT_EQ(summary->stages[0].forward, before.stages[0].forward);
  EXPECT_EQ(summary->stages[0].other, before.stages[0].other);
  EXPECT_THAT(SummaryText(trace, *summary), HasSubstr("    in sums"));
  EXPECT_EQ(SummaryJson(trace, *summary)["stages"][1]["sums_seconds"], 0);
}

TEST(SummaryTest, TheStashIsAPartOfThePassesThatHaveIt) {
  RunTrace trace = MadeUpTrace();
  const TraceSummary before = *Summarize(trace, std::nullopt);
  EXPECT_THAT(SummaryText(trace, before), Not(HasSubstr("in the stash")));
  for (const char* name : {"stash encode", "stash decode"}) {
    TraceSlice slice = *std::find_if(trace.stages[0].slices.begin(), trace.stages[0].slices.end(),
                                     [](const TraceSlice& one) { return one.name() == "forward"; });
    slice.set_name(name);
    slice.set_end(slice.begin() + 2);
    trace.stages[0].slices.push_back(slice);
  }
  const TraceSummary summary = *Summarize(trace, std::nullopt);
  EXPECT_EQ(Nanoseconds(summary.stages[0].stash), 4);
  EXPECT_EQ(summary.stages[0].forward, before.stages[0].forward);
  EXPECT_THAT(SummaryText(trace, summary), HasSubstr("    in the stash"));
  EXPECT_GT(SummaryJson(trace, summary)["stages"][0]["stash_seconds"], 0);
}

TEST(SummaryTest, SwapIsAPartOfThePassesThatWaitForIt) {
  RunTrace trace = MadeUpTrace();
  EXPECT_THAT(SummaryText(trace, *Summarize(trace, std::nullopt)), Not(HasSubstr("in swap")));
  for (const char* name : {"swap out", "swap in"}) {
    TraceSlice slice = *std::find_if(trace.stages[0].slices.begin(), trace.stages[0].slices.end(),
                                     [](const TraceSlice& one) { return one.name() == "forward"; });
    slice.set_name(name);
    slice.set_end(slice.begin() + 2);
    trace.stages[0].slices.push_back(slice);
  }
  const TraceSummary summary = *Summarize(trace, std::nullopt);
  EXPECT_EQ(Nanoseconds(summary.stages[0].swap), 4);
  EXPECT_THAT(SummaryText(trace, summary), HasSubstr("    in swap"));
  EXPECT_GT(SummaryJson(trace, summary)["stages"][0]["swap_seconds"], 0);
}

// A codec's wait for a core is not its work, even if the executor codes itself.
TEST(SummaryTest, WaitsForACoreCountWhereTheyWere) {
  RunTrace trace = MadeUpTrace();
  for (TraceSlice& slice : trace.stages[0].slices) {
    if (slice.name() == "encode" || slice.name() == "forward") slice.set_core_wait(1);
  }
  TraceSlice decode = OfMessage("decode", TraceSlice::EXECUTOR, true, 5, 30, 40);  // inside a wait
  decode.set_core_wait(3);
  trace.stages[0].slices.push_back(decode);
  const absl::StatusOr<TraceSummary> summary = Summarize(trace, std::nullopt);
  ASSERT_TRUE(summary.ok()) << summary.status();
  const StageTimes& first = summary->stages[0];
  EXPECT_EQ(Nanoseconds(first.encode), 4 - 2);
  EXPECT_EQ(Nanoseconds(first.decode), 4 + 10 - 3);
  EXPECT_EQ(Nanoseconds(first.forward), 20 - 2);
  EXPECT_EQ(Nanoseconds(first.core_wait), 2 + 1);
  EXPECT_EQ(Nanoseconds(first.other), 1);
  EXPECT_DOUBLE_EQ(first.bubble(), 0.62);
}

TEST(SummaryTest, SaysWhatEachWaitWasFor) {
  const absl::StatusOr<TraceSummary> summary = Summarize(MadeUpTrace(), std::nullopt);
  ASSERT_TRUE(summary.ok()) << summary.status();
  // The wait for gradient 0 begins at 22 and the hand-over is at 45; for gradient 1 at 65 and 70.
  EXPECT_THAT(WaitedFor(summary->stages[0]),
              ElementsAre(23 + 5, 1 + 1, 2 + 2, 1 + 1, 2 + 2, 1 + 1, 2 + 2, 1 + 6));
  // The wait for activation 0 begins at -5; nobody waits for activation 1.
  EXPECT_THAT(WaitedFor(summary->stages[1]), ElementsAre(17, 1, 2, 1, 2, 1, 2, 1));
}

TEST(SummaryTest, CountsTimeOfSlicesWithinSlicesOnce) {
  RunTrace trace = MadeUpTrace();
  trace.stages[0].slices.push_back(
      OfMessage("decode", TraceSlice::EXECUTOR, true, 5, 30, 40));  // inside a wait
  const absl::StatusOr<TraceSummary> summary = Summarize(trace, 3);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(Nanoseconds(summary->stages[0].other), 1);
  EXPECT_EQ(Nanoseconds(summary->stages[0].decode), 14);
}

TEST(SummaryTest, IsTheMeanOverTheSteps) {
  RunTrace trace = MadeUpTrace();
  trace.steps.set_last(4);
  for (StageTrace& stage : trace.stages) {
    TraceSlice step = NewSlice("step", TraceSlice::EXECUTOR, 100, 400);
    step.set_step(4);
    stage.slices.push_back(step);
  }
  const absl::StatusOr<TraceSummary> both = Summarize(trace, std::nullopt);
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(Nanoseconds(both->stages[0].step), 200);
  EXPECT_EQ(Nanoseconds(both->stages[0].forward), 10);
  const absl::StatusOr<TraceSummary> one = Summarize(trace, 4);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(Nanoseconds(one->stages[0].step), 300);
}

TEST(SummaryTest, TimeOfAGpuCountsOnceHoweverManyStreamsWork) {
  RunTrace trace = MadeUpTrace();
  std::vector<TraceSlice>& slices = trace.stages[0].slices;
  slices.push_back(OfDevice("kernel a", 7, 10, 30));
  slices.push_back(OfDevice("kernel encode", 13, 20, 40));  // beside it
  slices.push_back(OfDevice("copy to_host", 7, 35, 45));    // half of it beside a kernel
  slices.push_back(OfDevice("clear", 7, 50, 51));
  slices.push_back(OfDevice("kernel a", 7, 90, 130));  // ends behind the step
  const absl::StatusOr<TraceSummary> summary = Summarize(trace, 3);
  ASSERT_TRUE(summary.ok()) << summary.status();
  const StageTimes& first = summary->stages[0];
  EXPECT_TRUE(first.has_device);
  EXPECT_EQ(Nanoseconds(first.kernels), 30 + 10);
  EXPECT_EQ(Nanoseconds(first.copies), 5 + 1);
  EXPECT_DOUBLE_EQ(first.device_idle(), 0.54);
  EXPECT_EQ(Nanoseconds(first.encode), 4);  // of a thread, not of the kernel of that name
  EXPECT_EQ(Nanoseconds(first.other), 1);
  EXPECT_FALSE(summary->stages[1].has_device);
  const std::string text = SummaryText(trace, *summary);
  EXPECT_THAT(text, HasSubstr("GPU kernels              0.000         -\n"));
  EXPECT_THAT(text, HasSubstr("    idle                54.0 %         -\n"));
  const auto json = SummaryJson(trace, *summary);
  EXPECT_DOUBLE_EQ(json["stages"][0]["gpu"]["kernel_seconds"], 40e-9);
  EXPECT_FALSE(json["stages"][1].contains("gpu"));
}

TEST(SummaryTest, WithoutAGpuNothingIsSaidOfOne) {
  const absl::StatusOr<TraceSummary> summary = Summarize(MadeUpTrace(), std::nullopt);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_THAT(SummaryText(MadeUpTrace(), *summary), Not(HasSubstr("GPU")));
}

TEST(SummaryTest, NamesAStepThatIsNotThere) {
  RunTrace trace = MadeUpTrace();
  EXPECT_EQ(Summarize(trace, 9).status().message(), "step 9: the trace has step 3");
  trace.steps.set_last(4);
  EXPECT_THAT(std::string(Summarize(trace, std::nullopt).status().message()),
              HasSubstr("stage 0 has 1 of steps 3 to 4"));
}

TEST(SummaryTest, TheTextTellsOfClocksAndLosses) {
  RunTrace trace = MadeUpTrace();
  const absl::StatusOr<TraceSummary> summary = Summarize(trace, std::nullopt);
  ASSERT_TRUE(summary.ok()) << summary.status();
  const std::string plain = SummaryText(trace, *summary);
  EXPECT_THAT(plain, HasSubstr("run made-up: step 3, 1f1b, 2 stages, 2 microbatches"));
  RunTrace slices = trace;
  slices.schedule = "terapipe";
  EXPECT_THAT(SummaryText(slices, *summary), HasSubstr("terapipe, 2 stages, 2 units"));
  EXPECT_THAT(plain, HasSubstr("  bubble                60.0 %    43.5 %\n"));
  EXPECT_THAT(plain, Not(HasSubstr("clock")));
  trace.stages[1].clock.uncertainty = 42'000;
  trace.stages[0].dropped = 5;
  const std::string text = SummaryText(trace, *summary);
  EXPECT_THAT(text, HasSubstr("stage 1: its clock is known to 0.042 ms\n"));
  EXPECT_THAT(text, HasSubstr("stage 0: 5 slices found no room and are missing\n"));
}

TEST(SummaryTest, JsonHasSeconds) {
  const RunTrace trace = MadeUpTrace();
  const absl::StatusOr<TraceSummary> summary = Summarize(trace, std::nullopt);
  ASSERT_TRUE(summary.ok()) << summary.status();
  const auto json = SummaryJson(trace, *summary);
  EXPECT_DOUBLE_EQ(json["stages"][1]["optimizer_seconds"], 9e-9);
  EXPECT_DOUBLE_EQ(json["stages"][0]["waited_for_seconds"]["peer"], 28e-9);
  EXPECT_EQ(json["first_step"], 3);
}

}  // namespace
}  // namespace thinwire
