#include "coordinator/run/members_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "prometheus/text_serializer.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class MembersRecorderTest : public ::testing::Test {
 protected:
  std::string Text() { return prometheus::TextSerializer().Serialize(registry_.Collect()); }
  void Step(uint64_t number) {
    StepRecord step;
    step.set_step(number);
    EXPECT_TRUE(recorder_.OnStep(step).ok());
  }
  // Tells of an event, and that the first step behind it came after some seconds.
  void Happen(const std::string& type, const std::string& reason, uint64_t step, bool has_stage) {
    RunEvent* const event = summary_.add_events();
    event->set_type(type);
    event->set_reason(reason);
    event->set_step(step);
    if (has_stage) event->set_stage(1);
    EXPECT_TRUE(recorder_.OnEvent(*event).ok());
    event->set_seconds(0.5);
    Step(step + 1);
  }

  std::optional<MemberCounts> counts_{{4, 1, 0, 0, 0, 0}};
  prometheus::Registry registry_;
  Summary summary_;
  MembersRecorder recorder_{"digits-1a2b", [this] { return counts_; }, &registry_, &summary_};
};

TEST_F(MembersRecorderTest, TellsWhoIsThere) {
  ASSERT_TRUE(recorder_.OnStart({}).ok());
  EXPECT_THAT(Text(), HasSubstr("thinwire_members{run=\"digits-1a2b\",state=\"carry\"} 4\n"));
  EXPECT_THAT(Text(), HasSubstr("thinwire_members{run=\"digits-1a2b\",state=\"idle\"} 1\n"));
  EXPECT_THAT(Text(), HasSubstr("thinwire_members_lost_seconds_total{run=\"digits-1a2b\"} 0\n"));
  counts_->joined = 2;
  ASSERT_TRUE(recorder_.OnTotals({}).ok());
  EXPECT_THAT(Text(),
              HasSubstr("thinwire_member_changes_total{kind=\"joined\",run=\"digits-1a2b\"} 2\n"));
  EXPECT_EQ(summary_.members().joined(), 2u);
}

TEST_F(MembersRecorderTest, CountsStepsThatAreDoneAgainAndTheTimeThatIsLost) {
  Step(10);
  Happen("joined", "joins", 10, /*has_stage=*/false);
  EXPECT_EQ(summary_.members().repeated_steps(), 0u) << "the step had ended";
  Happen("left", "ends", 11, /*has_stage=*/true);
  EXPECT_EQ(summary_.members().repeated_steps(), 0u);
  Happen("went_on", "silent", 12, /*has_stage=*/true);
  EXPECT_EQ(summary_.members().repeated_steps(), 1u) << "the one that was under way";
  Happen("restarted", "silent", 8, /*has_stage=*/true);
  EXPECT_EQ(summary_.members().repeated_steps(), 1u + 6u) << "9 to 13, and the one under way";
  EXPECT_DOUBLE_EQ(summary_.members().seconds_lost(), 2);
  EXPECT_THAT(Text(), HasSubstr("thinwire_repeated_steps_total{run=\"digits-1a2b\"} 7\n"));
}

TEST_F(MembersRecorderTest, WhatWasBeforeAUserResumedIsNotCounted) {
  RunEvent* const earlier = summary_.add_events();
  earlier->set_type("went_on");
  earlier->set_seconds(100);
  summary_.add_events()->set_type("resumed");
  Happen("left", "ends", 11, /*has_stage=*/true);
  EXPECT_DOUBLE_EQ(summary_.members().seconds_lost(), 0.5);
}

TEST_F(MembersRecorderTest, ThereIsNoRecordWhereMembershipIsClosed) {
  counts_.reset();
  ASSERT_TRUE(recorder_.OnStart({}).ok());
  EXPECT_FALSE(summary_.has_members());
  EXPECT_THAT(Text(), Not(HasSubstr("thinwire_members")));
}

}  // namespace
}  // namespace thinwire
