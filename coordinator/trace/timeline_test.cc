#include "coordinator/trace/timeline.h"

#include "coordinator/trace/trace_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(TimelineTest, DrawsEveryActionAndEveryMessage) {
  const absl::StatusOr<std::string> svg = TimelineSvg(MadeUpTrace(), 3);
  ASSERT_TRUE(svg.ok()) << svg.status();
  EXPECT_EQ(Count(*svg, ">stage 0<") + Count(*svg, ">stage 1<"), 2);
  EXPECT_EQ(Count(*svg, ">0</text>"), 4 + 0);  // two stages, forward and backward of microbatch 0
  EXPECT_EQ(Count(*svg, ">1</text>"), 4);
  EXPECT_EQ(Count(*svg, "stroke-width=\"0.8\""), 4);  // messages
  EXPECT_EQ(Count(*svg, "#ffffff\"/>"), 1);           // the background, also for dark pages
}

TEST(TimelineTest, BeginsWithTheFirstThingThatIsNoWaiting) {
  const absl::StatusOr<std::string> svg = TimelineSvg(MadeUpTrace(), 3);
  ASSERT_TRUE(svg.ok()) << svg.status();
  // Stage 1 began to wait at -5 and data began at 0: both are at the left edge.
  EXPECT_THAT(*svg, HasSubstr("<rect x=\"64.00\" y=\"64.0\""));
  EXPECT_THAT(*svg, HasSubstr("<rect x=\"64.00\" y=\"126.0\""));
}

TEST(TimelineTest, FurtherSegmentsOfAStageArePalerWhereStagesTakeTurns) {
  RunTrace trace = MadeUpTrace();
  trace.stages[0].slices[2].set_segment(0);
  trace.stages[0].slices[3].set_segment(2);
  EXPECT_THAT(*TimelineSvg(trace, 3), Not(HasSubstr("fill-opacity=\"0.70\"")));
  trace.schedule = "interleaved";
  EXPECT_EQ(Count(*TimelineSvg(trace, 3), "fill-opacity=\"0.70\""), 1);
}

TEST(TimelineTest, IsOfThreadsAlone) {
  RunTrace trace = MadeUpTrace();
  const std::string without = *TimelineSvg(trace, 3);
  trace.stages[0].slices.push_back(OfDevice("kernel forward", 7, -50, 500));
  trace.stages[1].slices.push_back(OfDevice("copy to_host", 7, 10, 20));
  EXPECT_EQ(*TimelineSvg(trace, 3), without);
}

TEST(TimelineTest, EscapesWhatTheExperimentNames) {
  RunTrace trace = MadeUpTrace();
  trace.run = "a<b&c";
  const absl::StatusOr<std::string> svg = TimelineSvg(trace, 3);
  ASSERT_TRUE(svg.ok()) << svg.status();
  EXPECT_THAT(*svg, HasSubstr("a&lt;b&amp;c"));
  EXPECT_THAT(*svg, Not(HasSubstr("a<b")));
}

TEST(TimelineTest, NamesAStepThatIsNotThere) {
  EXPECT_EQ(TimelineSvg(MadeUpTrace(), 4).status().message(),
            "step 4: the trace has nothing of it");
}

}  // namespace
}  // namespace thinwire
