#include "coordinator/run/score_measures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thinwire {
namespace {

using ::testing::HasSubstr;

// Values were worked out from the definitions.
TEST(ScoreMeasuresTest, PearsonIsTheCorrelationOfValues) {
  EXPECT_NEAR(Pearson({1, 2, 4, 8}, {1, 3, 2, 5}), 0.8669214468630106, 1e-12);
  EXPECT_DOUBLE_EQ(Pearson({1, 2, 3}, {5, 7, 9}), 1);
  EXPECT_DOUBLE_EQ(Pearson({1, 2, 3}, {3, 2, 1}), -1);
}

TEST(ScoreMeasuresTest, SpearmanIsThatOfRanksAndTiesHaveTheirMean) {
  EXPECT_NEAR(Spearman({0.1, 0.2, 0.2, 3, 100}, {2, 1, 2, 5, 2}), 0.3441236008058426, 1e-12);
  EXPECT_DOUBLE_EQ(Spearman({1, 2, 4, 8}, {0, 0.1, 0.2, 5}), 1);
}

TEST(ScoreMeasuresTest, WhatIsAlwaysTheSameSaysNothing) {
  EXPECT_EQ(Pearson({2, 2, 2}, {1, 2, 3}), 0);
  EXPECT_EQ(Spearman({1, 2, 3}, {2, 2, 2}), 0);
  EXPECT_EQ(Spearman({1}, {2}), 0);
}

TEST(ScoreMeasuresTest, AReportHasOnePredictionAndScoreOfEachSample) {
  EvaluationReport report;
  report.set_samples(3);
  for (const float prediction : {0.5f, 1.5f, 2.5f}) report.add_predictions(prediction);
  for (const int32_t score : {10, 20, 21}) report.add_scores(score);
  const auto measures = MeasureScores(report);
  ASSERT_TRUE(measures.ok()) << measures.status();
  EXPECT_NEAR(measures->pearson(), 0.9041944301794651, 1e-12);
  EXPECT_DOUBLE_EQ(measures->spearman(), 1);
  report.add_scores(5);
  EXPECT_THAT(std::string(MeasureScores(report).status().message()),
              HasSubstr("3 predictions and 4 scores, want 3 of each"));
}

}  // namespace
}  // namespace thinwire
