#include "coordinator/trace/trace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

TraceSteps Steps(uint64_t first, uint64_t last) {
  TraceSteps steps;
  steps.set_first(first);
  steps.set_last(last);
  return steps;
}

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

TEST(ParseTraceStepsTest, TakesAStepAndARange) {
  const absl::StatusOr<TraceSteps> one = ParseTraceSteps("steps=5");
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(Spelled(*one), "step 5");
  const absl::StatusOr<TraceSteps> range = ParseTraceSteps("steps=10..12");
  ASSERT_TRUE(range.ok()) << range.status();
  EXPECT_EQ(Spelled(*range), "steps 10 to 12");
}

TEST(ParseTraceStepsTest, SaysWhatItWants) {
  for (const auto& [text, want] : std::vector<std::pair<std::string, std::string>>{
           {"", "--trace: : want steps=N or steps=N..M"},
           {"step=5", "--trace: step=5: want steps=N"},
           {"steps=", "whole numbers"},
           {"steps=a", "whole numbers"},
           {"steps=3..", "whole numbers"},
           {"steps=..3", "whole numbers"},
           {"steps=3..4..5", "whole numbers"},
           {"steps=-1", "whole numbers"},
           {"steps=0", "want steps from 1"},
           {"steps=0..2", "want steps from 1"},
           {"steps=12..10", "--trace: steps=12..10: want a last step of at least 12"}}) {
    const absl::Status status = ParseTraceSteps(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(MessageOf(status), HasSubstr(want)) << text;
  }
}

RunTrace Asked(uint64_t last) {
  RunTrace asked;
  asked.steps = Steps(1, last);
  asked.microbatches = 4;
  asked.cuts = {"a", "b", "c"};
  asked.stages.resize(4);
  return asked;
}

TEST(CheckTraceSizeTest, RefusesMoreSlicesThanATraceHolds) {
  // 4 x (6 messages x 4 + 8 computes + 3) + 4 stages x 4
  EXPECT_TRUE(CheckTraceSize(Asked(100'000 / 156)).ok());
  EXPECT_THAT(MessageOf(CheckTraceSize(Asked(100'000 / 156 + 1))),
              HasSubstr("steps 1 to 642 have up to 156 slices each, want at most 641 steps"));
  EXPECT_FALSE(CheckTraceSize(Asked(~uint64_t{0})).ok());
  RunTrace of_parts = Asked(1000);
  of_parts.sums = 9;  // 4 x 9 sums x 3 more
  EXPECT_THAT(MessageOf(CheckTraceSize(of_parts)), HasSubstr("264 slices each, want at most 378"));
  RunTrace large = Asked(1);
  large.microbatches = 1u << 31;
  EXPECT_THAT(MessageOf(CheckTraceSize(large)), HasSubstr("want at most 0 steps"));
}

TEST(CheckTraceComesTest, NamesTheStepThatNeverComes) {
  EXPECT_TRUE(CheckTraceComes(Steps(1, 120), 0, 120).ok());
  EXPECT_TRUE(CheckTraceComes(Steps(61, 61), 60, 120).ok());
  EXPECT_EQ(MessageOf(CheckTraceComes(Steps(500, 500), 0, 120)),
            "trace: step 500 never comes, the run has 120 steps");
  EXPECT_EQ(MessageOf(CheckTraceComes(Steps(119, 121), 0, 120)),
            "trace: step 121 never comes, the run has 120 steps");
  EXPECT_EQ(MessageOf(CheckTraceComes(Steps(60, 62), 60, 120)),
            "trace: step 60 never comes, the run goes on after step 60");
}

}  // namespace
}  // namespace thinwire
