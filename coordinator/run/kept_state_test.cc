#include "coordinator/run/kept_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace thinwire {
namespace {

using ::testing::ElementsAre;

AcquireResponse Stands(uint32_t stage, uint64_t step, bool is_ready = false) {
  AcquireResponse answer;
  answer.mutable_standing()->set_stage(stage);
  answer.mutable_standing()->set_step(step);
  answer.mutable_standing()->set_is_ready(is_ready);
  answer.mutable_standing()->set_squares(static_cast<double>(10 * step));
  return answer;
}

StageStanding Reported(uint64_t step) {
  StageStanding standing;
  standing.set_step(step);
  standing.set_squares(static_cast<double>(10 * step));
  return standing;
}

// Two carriers of two stages.
std::optional<StageStanding> CommonOf(const std::vector<AcquireResponse>& answers,
                                      uint64_t reported) {
  return CommonStanding(answers, /*stages=*/2, Reported(reported));
}

TEST(CommonStandingTest, IsWhereAllStand) {
  const auto common = CommonOf({Stands(0, 7), Stands(1, 7), Stands(0, 7), Stands(1, 7)}, 7);
  ASSERT_TRUE(common);
  EXPECT_EQ(common->step(), 7u);
  EXPECT_EQ(common->squares(), 70);
}

TEST(CommonStandingTest, IsTheStepThatSomeHaveDoneAndOthersAreReadyFor) {
  const auto common =
      CommonOf({Stands(0, 6, true), Stands(1, 7), Stands(0, 6, true), Stands(1, 6, true)}, 7);
  ASSERT_TRUE(common);
  EXPECT_EQ(common->step(), 7u);
}

TEST(CommonStandingTest, AReportedStepCountsThoughWhoDidItIsGone) {
  const auto common =
      CommonOf({Stands(0, 6, true), AcquireResponse(), Stands(0, 6, true), Stands(1, 6, true)}, 7);
  ASSERT_TRUE(common);
  EXPECT_EQ(common->step(), 7u);
  EXPECT_EQ(common->squares(), 70);
}

TEST(CommonStandingTest, AStepThatNobodyHasDoneIsDropped) {
  EXPECT_EQ(
      CommonOf({Stands(0, 6, true), Stands(1, 6), Stands(0, 6), AcquireResponse()}, 6)->step(), 6u);
}

TEST(CommonStandingTest, EachStageHasToHaveAServerThere) {
  EXPECT_TRUE(CommonOf({Stands(0, 7), AcquireResponse(), Stands(0, 3), Stands(1, 7)}, 7));
  EXPECT_FALSE(CommonOf({Stands(0, 7), AcquireResponse(), Stands(0, 7), AcquireResponse()}, 7));
  EXPECT_FALSE(CommonOf({Stands(0, 7), Stands(1, 6), Stands(0, 7), Stands(1, 6)}, 7));
  EXPECT_FALSE(CommonOf({Stands(0, 7), Stands(0, 7), Stands(0, 7), Stands(0, 7)}, 7))
      << "of another stage";
}

TEST(CommonStandingTest, AStepThatWasNotReportedHasLostItsLoss) {
  EXPECT_FALSE(CommonOf({Stands(0, 7), Stands(1, 7), Stands(0, 7), Stands(1, 7)}, 6));
}

TEST(CommonStandingTest, SomeServerKeepsEachStage) {
  EXPECT_TRUE(HasEachStage({true, false, false, true}, 2));
  EXPECT_FALSE(HasEachStage({true, false, true, false}, 2));
}

TEST(StateSourcesTest, ServersThatHaveAStageTakeTurns) {
  // Five carriers of two stages, of which the first two have both, and the third the second.
  EXPECT_THAT(StateSources({true, true, true, true, false, true, false, false, false, false}, 2),
              ElementsAre(-1, -1, -1, -1, 0, -1, 2, 1, 0, 3));
  EXPECT_THAT(StateSources({true, false, true, false}, 2), ElementsAre(-1, -1, -1, -1));
}

}  // namespace
}  // namespace thinwire
