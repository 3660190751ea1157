#include "coordinator/run/metrics.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "prometheus/text_serializer.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RunMetricsTest : public ::testing::Test {
 protected:
  std::string Text() { return prometheus::TextSerializer().Serialize(registry_.Collect()); }

  prometheus::Registry registry_;
  RunMetrics metrics_{"digits-1a2b", {"layer1"}, &registry_};
};

TEST_F(RunMetricsTest, AStepSetsTheGaugesOfItsRun) {
  StepRecord step;
  step.set_epoch(2);
  step.set_step(7);
  step.set_loss(1.5);
  step.set_samples(100);
  step.set_seconds(0.2);
  ASSERT_TRUE(metrics_.OnStep(step).ok());
  ASSERT_TRUE(metrics_.OnStep(step).ok());
  EXPECT_THAT(Text(), HasSubstr("thinwire_epoch{run=\"digits-1a2b\"} 2\n"));
  EXPECT_THAT(Text(), HasSubstr("thinwire_train_loss{run=\"digits-1a2b\"} 1.5\n"));
  EXPECT_THAT(Text(), HasSubstr("thinwire_samples_total{run=\"digits-1a2b\"} 200\n"));
  EXPECT_THAT(Text(),
              HasSubstr("thinwire_step_seconds_bucket{run=\"digits-1a2b\",le=\"0.18\"} 0\n"));
  EXPECT_THAT(Text(), HasSubstr("thinwire_step_seconds_bucket{run=\"digits-1a2b\",le=\"0.22\"} 2"));
}

TEST_F(RunMetricsTest, TotalsAreCountersThatFollowTheStages) {
  RunTotals totals;
  totals.bubble_ratio = 0.25;
  totals.boundaries.resize(1);
  totals.boundaries[0].mutable_gradients()->set_raw_bytes(400);
  totals.boundaries[0].mutable_gradients()->set_wire_bytes(50);
  ASSERT_TRUE(metrics_.OnTotals(totals).ok());
  ASSERT_TRUE(metrics_.OnTotals(totals).ok());
  const std::string labels = "{boundary=\"layer1\",direction=\"gradient\",run=\"digits-1a2b\"}";
  EXPECT_THAT(Text(), HasSubstr("thinwire_run_wire_bytes_total" + labels + " 50\n"));
  EXPECT_THAT(Text(), HasSubstr("thinwire_compression_ratio" + labels + " 8\n"));
  EXPECT_THAT(Text(), HasSubstr("thinwire_pipeline_bubble_ratio{run=\"digits-1a2b\"} 0.25\n"));
}

TEST_F(RunMetricsTest, BreakEvenIsInBytesPerSecond) {
  RunTotals totals;
  totals.boundaries.resize(1);
  DirectionRecord& record = *totals.boundaries[0].mutable_activations();
  record.set_raw_bytes(400);
  record.set_wire_bytes(50);
  record.set_encode_seconds(1);
  record.set_decode_seconds(3);
  ASSERT_TRUE(metrics_.OnTotals(totals).ok());
  EXPECT_THAT(Text(), HasSubstr("thinwire_breakeven_bytes_per_second{boundary=\"layer1\","
                                "direction=\"activation\",run=\"digits-1a2b\"} 87.5\n"));
}

TEST_F(RunMetricsTest, AFailureIsCountedByItsKind) {
  EXPECT_THAT(Text(), HasSubstr("thinwire_errors_total{kind=\"peer_gone\",run=\"digits-1a2b\"} 0"));
  metrics_.Failed(absl::UnavailableError("stage 1 is gone"));
  EXPECT_THAT(Text(), HasSubstr("thinwire_errors_total{kind=\"peer_gone\",run=\"digits-1a2b\"} 1"));
}

TEST_F(RunMetricsTest, AnEpochSetsTheEvaluationThatWasMade) {
  EXPECT_THAT(Text(), Not(HasSubstr("thinwire_test_")));
  EpochRecord epoch;
  epoch.mutable_test()->mutable_compressed()->set_accuracy(0.5);
  epoch.mutable_test()->mutable_uncompressed_recalibrated()->set_accuracy(0.25);
  ASSERT_TRUE(metrics_.OnEpoch(epoch).ok());
  EXPECT_THAT(Text(), HasSubstr("thinwire_test_accuracy{inference=\"uncompressed_recalibrated\","
                                "run=\"digits-1a2b\"} 0.25\n"));
  EXPECT_THAT(
      Text(),
      HasSubstr("thinwire_test_accuracy{inference=\"compressed\",run=\"digits-1a2b\"} 0.5\n"));
  EXPECT_THAT(Text(), Not(HasSubstr("inference=\"uncompressed\"")));
  EXPECT_THAT(Text(), Not(HasSubstr("perplexity")));
}

TEST_F(RunMetricsTest, AnEvaluationAfterAStepIsTheLastToo) {
  EvaluationRecord evaluation;
  evaluation.mutable_test()->mutable_compressed()->set_accuracy(0.5);
  ASSERT_TRUE(metrics_.OnEvaluated(evaluation).ok());
  EXPECT_THAT(
      Text(),
      HasSubstr("thinwire_test_accuracy{inference=\"compressed\",run=\"digits-1a2b\"} 0.5\n"));
}

TEST_F(RunMetricsTest, ATaskHasWhatElseItIsJudgedBy) {
  EpochRecord epoch;
  epoch.mutable_test()->mutable_compressed()->mutable_classes()->set_f1(0.5);
  epoch.mutable_test()->mutable_uncompressed()->mutable_classes()->set_matthews(0.25);
  ASSERT_TRUE(metrics_.OnEpoch(epoch).ok());
  EXPECT_THAT(Text(), HasSubstr("thinwire_test_f1{inference=\"compressed\","
                                "run=\"digits-1a2b\"} 0.5\n"));
  EXPECT_THAT(Text(), HasSubstr("thinwire_test_matthews{inference=\"uncompressed\","
                                "run=\"digits-1a2b\"} 0.25\n"));
  EXPECT_THAT(Text(), Not(HasSubstr("thinwire_test_f1{inference=\"uncompressed\"")));
}

TEST_F(RunMetricsTest, ScoresHaveCorrelationsAndNoAccuracy) {
  EpochRecord epoch;
  ScoreMeasures* const scores = epoch.mutable_test()->mutable_compressed()->mutable_scores();
  scores->set_pearson(0.5);
  scores->set_spearman(0.25);
  ASSERT_TRUE(metrics_.OnEpoch(epoch).ok());
  EXPECT_THAT(Text(), HasSubstr("thinwire_test_pearson{inference=\"compressed\","
                                "run=\"digits-1a2b\"} 0.5\n"));
  EXPECT_THAT(Text(), HasSubstr("thinwire_test_spearman{inference=\"compressed\","
                                "run=\"digits-1a2b\"} 0.25\n"));
  EXPECT_THAT(Text(), HasSubstr("thinwire_test_loss"));
  EXPECT_THAT(Text(), Not(HasSubstr("thinwire_test_accuracy")));
}

TEST_F(RunMetricsTest, ALanguageModelHasAPerplexity) {
  EpochRecord epoch;
  epoch.mutable_test()->mutable_compressed()->set_perplexity(6.5);
  ASSERT_TRUE(metrics_.OnEpoch(epoch).ok());
  EXPECT_THAT(Text(), HasSubstr("thinwire_test_perplexity{inference=\"compressed\","
                                "run=\"digits-1a2b\"} 6.5\n"));
}

}  // namespace
}  // namespace thinwire
