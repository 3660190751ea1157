#include "coordinator/report/configurations.h"
#include "coordinator/report/runs_testing.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

TEST(ReportTarget, IsReachedWhereTheNextEvaluationHoldsIt) {
  const ReportedRun run = MadeUpRun("none", 1, {0.3, 0.6, 0.5, 0.6, 0.61}, 8);
  const auto reached = FirstReached(run, {0.55, Inference::kCompressed, Measure::kAccuracy});
  ASSERT_TRUE(reached);
  EXPECT_EQ(reached->epoch, 4u);
  EXPECT_EQ(reached->seconds, 40);
  EXPECT_EQ(reached->wire_bytes, 4 * 2e6);
}

TEST(ReportTarget, TheLastEvaluationNeedsNoNext) {
  ReportedRun run = MadeUpRun("none", 1, {0.3, 0.4, 0.6}, 8);
  EXPECT_EQ(FirstReached(run, {0.6, Inference::kCompressed, Measure::kAccuracy})->epoch, 3u);
  EXPECT_FALSE(FirstReached(run, {0.6, Inference::kUncompressed, Measure::kAccuracy}));
  // An epoch without evaluation is not the next evaluated one.
  run.summary.mutable_epochs(1)->clear_test();
  EXPECT_EQ(FirstReached(run, {0.3, Inference::kCompressed, Measure::kAccuracy})->epoch, 1u);
}

TEST(ReportTarget, LessLossIsBetter) {
  ReportedRun run = MadeUpRun("gpt", 1, {0, 0}, 8);
  run.summary.mutable_epochs(0)->mutable_test()->mutable_compressed()->set_loss(2);
  run.summary.mutable_epochs(1)->mutable_test()->mutable_compressed()->set_loss(1.5);
  EXPECT_EQ(FirstReached(run, {1.6, Inference::kCompressed, Measure::kLoss})->epoch, 2u);
  EXPECT_FALSE(FirstReached(run, {1.4, Inference::kCompressed, Measure::kLoss}));
}

}  // namespace
}  // namespace thinwire
