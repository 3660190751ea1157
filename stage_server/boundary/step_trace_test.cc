#include "stage_server/boundary/step_trace.h"

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage_server/boundary/statistics.h"

namespace thinwire {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

Slice Named(const char* name) {
  Slice slice;
  slice.name = name;
  return slice;
}

TEST(StepTraceTest, WantsTheFirstStepTheLastAndThoseBetween) {
  const StepTrace trace(10, 12, 1);
  EXPECT_FALSE(trace.Wants(9));
  EXPECT_TRUE(trace.Wants(10));
  EXPECT_TRUE(trace.Wants(12));
  EXPECT_FALSE(trace.Wants(13));
}

TEST(StepTraceTest, CountsWhatFindsNoRoomAndHasRoomAgainOnceItIsTaken) {
  StepTrace trace(1, 1, 2);
  for (const char* name : {"a", "b", "c", "d"}) trace.Add(Named(name));
  StepTrace::Taken taken = trace.Take();
  ASSERT_THAT(taken.slices, SizeIs(2));
  EXPECT_STREQ(taken.slices[1].name, "b");
  EXPECT_EQ(taken.dropped, 2u);
  trace.Add(Named("e"));
  taken = trace.Take();
  ASSERT_THAT(taken.slices, SizeIs(1));
  EXPECT_STREQ(taken.slices[0].name, "e");
  EXPECT_EQ(taken.dropped, 0u);
}

TEST(StepTraceTest, IsHalfFullBeforeAnythingIsLost) {
  StepTrace trace(1, 1, 4);
  trace.Add(Named("a"));
  EXPECT_FALSE(trace.is_half_full());
  trace.Add(Named("b"));
  EXPECT_TRUE(trace.is_half_full());
  trace.Take();
  EXPECT_FALSE(trace.is_half_full());
}

TEST(StepTraceTest, NothingIsLostBetweenThreads) {
  constexpr int kEach = 1000;
  StepTrace trace(1, 1, 3 * kEach);
  const auto add = [&trace] {
    for (int i = 0; i < kEach; ++i) trace.Add(Named("a"));
  };
  std::thread first(add), second(add), third(add);
  size_t taken = trace.Take().slices.size();
  for (std::thread* thread : {&first, &second, &third}) thread->join();
  taken += trace.Take().slices.size();
  EXPECT_EQ(taken, 3u * kEach);
}

TEST(StepTraceTest, ATimerCountsWhatItsSliceShows) {
  StepTrace trace(1, 1, 2);
  double seconds = 0;
  { ScopedTimer timer(&seconds, PlannedSlice{&trace, Named("forward")}.At(2, DIRECTION_GRADIENT)); }
  { ScopedTimer timer(&seconds, {}); }
  const StepTrace::Taken taken = trace.Take();
  ASSERT_THAT(taken.slices, SizeIs(1));
  const Slice& slice = taken.slices[0];
  EXPECT_EQ(slice.cut, 2);
  EXPECT_EQ(slice.direction, DIRECTION_GRADIENT);
  EXPECT_GE(seconds, absl::ToDoubleSeconds(slice.end - slice.begin));
}

TEST(StepTraceTest, ASliceWithoutATraceLeavesNoMark) {
  StepTrace trace(1, 1, 1);
  { const ScopedTimer slice(/*seconds=*/nullptr, {}); }
  EXPECT_THAT(trace.Take().slices, IsEmpty());
  { const ScopedTimer slice(/*seconds=*/nullptr, {&trace, Named("send")}); }
  EXPECT_THAT(trace.Take().slices, SizeIs(1));
}

}  // namespace
}  // namespace thinwire
