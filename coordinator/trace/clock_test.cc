#include "coordinator/trace/clock.h"

#include <cstdlib>

#include "coordinator/trace/trace_testing.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

// Returns a reading, asked at `asked`, of a clock that is `offset` ahead; the ways take `there` and
// `back`.
ClockReading Reading(int64_t asked, int64_t there, int64_t back, int64_t offset) {
  return {asked, asked + there + offset, asked + there + back};
}

TEST(EstimateOffsetTest, ARoundTripOfTwoEqualWaysGivesTheOffset) {
  const ClockOffset estimate = EstimateOffset({Reading(1000, 50, 50, 7'000'000)});
  EXPECT_EQ(estimate.offset, 7'000'000);
  EXPECT_EQ(estimate.uncertainty, 50);
}

TEST(EstimateOffsetTest, SeveralReadingsNarrowItToTheShortestWays) {
  const int64_t offset = -123'456'789;
  const ClockOffset estimate =
      EstimateOffset({Reading(0, 40, 900, offset), Reading(2000, 800, 60, offset),
                      Reading(4000, 300, 200, offset)});
  EXPECT_EQ(estimate.uncertainty, 50);
  EXPECT_LE(std::abs(estimate.offset - offset), estimate.uncertainty);
}

TEST(EstimateOffsetTest, OfClocksThatDriftTheShortestRoundTripCounts) {
  const ClockOffset estimate = EstimateOffset({Reading(0, 20, 20, 0), Reading(1000, 10, 10, 500)});
  EXPECT_EQ(estimate.offset, 500);
  EXPECT_EQ(estimate.uncertainty, 10);
}

TEST(EstimateOffsetTest, TheOwnClockHasNoOffset) {
  const ClockOffset estimate = EstimateOffset({ClockReading{0, 0, 0}});
  EXPECT_EQ(estimate.offset, 0);
  EXPECT_EQ(estimate.uncertainty, 0);
}

// Returns the trace as stage 1 would have measured it with a clock that is ahead.
RunTrace OnAClockAhead(int64_t by) {
  RunTrace trace = MadeUpTrace();
  for (TraceSlice& slice : trace.stages[1].slices) {
    slice.set_begin(slice.begin() + by);
    slice.set_end(slice.end() + by);
    if (slice.has_ready()) slice.set_ready(slice.ready() + by);
  }
  return trace;
}

const TraceSlice& First(const RunTrace& trace, size_t stage, const std::string& name) {
  for (const TraceSlice& slice : trace.stages[stage].slices) {
    if (slice.name() == name) return slice;
  }
  std::abort();
}

TEST(AlignTest, TakesTheOffsetAwayAndBeginsAtTheFirstSlice) {
  RunTrace trace = OnAClockAhead(1'000'000);
  trace.stages[1].clock = {1'000'000, 3};
  Align(&trace);
  EXPECT_EQ(First(trace, 1, "step").begin(), 0);  // it was at -5
  EXPECT_EQ(First(trace, 0, "forward").begin(), 7);
  EXPECT_EQ(First(trace, 1, "forward").begin(), 27);
  EXPECT_EQ(trace.stages[1].clock.offset, 1'000'000);
  EXPECT_EQ(trace.stages[1].clock.uncertainty, 3);
}

// In the trace a message travels for 3.
TEST(AlignTest, NoMessageComesBeforeItWasSent) {
  for (const int64_t error : {-40, -4, 0, 4, 40}) {
    RunTrace trace = OnAClockAhead(1000);
    trace.stages[1].clock = {1000 + error, 40};
    Align(&trace);
    const std::vector<TracedMessage> messages = MessagesOf(trace);
    ASSERT_EQ(messages.size(), 4u);
    for (const TracedMessage& message : messages) {
      ASSERT_TRUE(message.crossed());
      EXPECT_GE(message.decode->ready(), message.send->begin()) << error;
    }
    const int64_t want = error < -3 ? 997 : error > 3 ? 1003 : 1000 + error;
    EXPECT_EQ(trace.stages[1].clock.offset, want) << error;
  }
}

TEST(AlignTest, ATraceWithoutSlicesStaysEmpty) {
  RunTrace trace = MadeUpTrace();
  for (StageTrace& stage : trace.stages) stage.slices.clear();
  Align(&trace);
  EXPECT_TRUE(trace.stages[0].slices.empty());
}

}  // namespace
}  // namespace thinwire
