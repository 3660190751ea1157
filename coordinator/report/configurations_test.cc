#include "coordinator/report/configurations.h"

#include "coordinator/report/runs_testing.h"
#include "gmock/gmock.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

TEST(Configurations, SeedsOfOneExperimentStandTogetherInTheirOrder) {
  const std::vector<ReportedRun> runs = {MadeUpRun("topk", 2, {0.5}, 4),
                                         MadeUpRun("none", 1, {0.6}, 32),
                                         MadeUpRun("topk", 1, {0.5}, 4)};
  const auto all = Configurations(runs);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "topk");
  ASSERT_EQ(all[0].runs.size(), 2u);
  EXPECT_EQ(all[0].runs[0]->summary.seed(), 1u);
  EXPECT_EQ(all[0].runs[1]->summary.seed(), 2u);
  EXPECT_EQ(all[1].name, "none");
}

TEST(Configurations, ANameOfTwoExperimentsGivesWayToTheFolders) {
  std::vector<ReportedRun> runs = {MadeUpRun("quickstart", 1, {0.5}, 4),
                                   MadeUpRun("quickstart", 1, {0.5}, 8)};
  runs[0].dir = "runs/four-seed1/";
  runs[1].dir = "runs/eight-seed1";
  const auto all = Configurations(runs);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "four");
  EXPECT_EQ(all[1].name, "eight");
}

TEST(Configurations, FinalBestAndSentAreOfEvaluatedEpochs) {
  ReportedRun run = MadeUpRun("none", 1, {0.5, 0.7, 0.6}, 8);
  EXPECT_DOUBLE_EQ(*Last(run, Inference::kCompressed, Measure::kAccuracy), 0.6);
  EXPECT_DOUBLE_EQ(*Best(run, Inference::kCompressed, Measure::kAccuracy), 0.7);
  EXPECT_FALSE(Last(run, Inference::kUncompressedRecalibrated, Measure::kAccuracy));
  EXPECT_EQ(Sent(run).raw_bytes, 3 * 8e6);
  EXPECT_EQ(Sent(run, 2).wire_bytes, 2 * 2e6);
  run.summary.mutable_epochs(2)->clear_test();
  EXPECT_DOUBLE_EQ(*Last(run, Inference::kCompressed, Measure::kAccuracy), 0.7);
}

TEST(Configurations, LanguageModelsAreJudgedByLossAndNotBesideOthers) {
  std::vector<ReportedRun> runs = {MadeUpRun("gpt", 1, {0.5}, 8)};
  EXPECT_EQ(*MeasureOf(runs), Measure::kAccuracy);
  runs[0].summary.mutable_epochs(0)->mutable_test()->mutable_compressed()->set_perplexity(9);
  EXPECT_EQ(*MeasureOf(runs), Measure::kLoss);
  runs.push_back(MadeUpRun("resnet", 1, {0.5}, 8));
  EXPECT_THAT(
      MeasureOf(runs).status().message(),
      HasSubstr("runs/gpt-seed1 is judged by its loss and runs/resnet-seed1 by its accuracy"));
}

TEST(Configurations, ModelsOfScoresAreJudgedByLoss) {
  std::vector<ReportedRun> runs = {MadeUpRun("stsb", 1, {0.5}, 8)};
  runs[0].summary.mutable_epochs(0)->mutable_test()->mutable_compressed()->clear_accuracy();
  EXPECT_EQ(*MeasureOf(runs), Measure::kLoss);
}

TEST(Configurations, Medians) {
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 2, 3}), 2.5);
}

}  // namespace
}  // namespace thinwire
