#include "coordinator/report/report.h"

#include "coordinator/report/runs_testing.h"
#include "gmock/gmock.h"

namespace thinwire {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::vector<ReportedRun> Runs() {
  return {MadeUpRun("topk", 1, {0.5, 0.70}, 4), MadeUpRun("topk", 2, {0.5, 0.72}, 4),
          MadeUpRun("none", 1, {0.7, 0.80}, 32), MadeUpRun("none", 2, {0.7, 0.82}, 32),
          MadeUpRun("ecsq", 1, {0.5, 0.805}, 2)};
}

const ReportTable& Table(const Report& report, const std::string& title) {
  for (const ReportTable& table : report.tables) {
    if (table.title == title) return table;
  }
  static const ReportTable* const none = new ReportTable;
  return *none;
}

TEST(Report, SumsUpEachConfiguration) {
  const auto report = ReportOf(Runs(), {});
  ASSERT_TRUE(report.ok()) << report.status();
  const ReportTable& table = Table(*report, "Summary");
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_THAT(table.rows[0], ElementsAre("topk", "1, 2", "71.00 ± 1.41", "-10.00 [-10.00, -10.00]",
                                         "66.00 ± 1.41", "71.00 ± 1.41", "2", "8", "10"));
  EXPECT_THAT(table.rows[2],
              ElementsAre("ecsq", "1", "80.50", "+0.50", "75.50", "80.50", "1", "16", "10"));
}

TEST(Report, TheTargetIsAPointBelowWhatNoCodecReaches) {
  const auto report = ReportOf(Runs(), {});
  ASSERT_TRUE(report.ok()) << report.status();
  const ReportTable& table = Table(*report, "Time to 80.00 %");
  ASSERT_EQ(table.rows.size(), 3u);
  // 16 MB raw in both directions and epochs, of which 2 MB are sent; 0.08 s of coding a seed.
  EXPECT_THAT(table.rows[0], ElementsAre("topk", "0 of 2", "–", "–", "–", "1.4 Gbit/s"));
  EXPECT_THAT(table.rows[1], ElementsAre("none", "2 of 2", "2", "20", "16", "–"));
  EXPECT_THAT(table.rows[2], ElementsAre("ecsq", "1 of 1", "2", "20", "1", "1.5 Gbit/s"));
}

TEST(Report, FrontLeavesOutWhatOthersBeat) {
  const auto report = ReportOf(Runs(), {});
  ASSERT_TRUE(report.ok()) << report.status();
  const Chart& chart = report->charts.back().chart;
  EXPECT_EQ(chart.series.front().name, "Pareto front");
  std::vector<double> sent;
  for (const ChartPoint& point : chart.series.front().points) sent.push_back(point.x);
  EXPECT_THAT(sent, ElementsAre(1, 16)) << "topk sends more than ecsq and reaches less";
}

TEST(Report, ARunThatDidNotCompleteIsShownAsSuch) {
  std::vector<ReportedRun> runs = Runs();
  runs[0].summary.set_status(kUnfinished);
  runs[1].summary.set_status("failed");
  runs[1].summary.set_error("stage 1: lost");
  const auto report = ReportOf(runs, {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(Table(*report, "Summary").rows[0][1], "1 (unfinished), 2 (failed)");
  EXPECT_EQ(Table(*report, "Summary").rows[0][2], "71.00 ± 1.41") << "there are no others";
  EXPECT_THAT(Table(*report, "Runs").rows[1], Contains("failed: stage 1: lost"));
}

TEST(Report, WhatDidNotCompleteIsInNoMeanOfWhatDid) {
  std::vector<ReportedRun> runs = Runs();
  runs[0].summary.set_status("interrupted");
  const auto report = ReportOf(runs, {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(Table(*report, "Summary").rows[0][1], "1 (interrupted), 2");
  EXPECT_EQ(Table(*report, "Summary").rows[0][2], "72.00");
}

TEST(Report, WithoutAnyEpochThereIsNoTargetAndNoError) {
  ReportedRun run = MadeUpRun("begun", 1, {}, 4);
  run.summary.clear_boundaries();
  const auto report = ReportOf({run}, {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(Table(*report, "Summary").rows[0], ElementsAre("begun", "1"))
      << "columns without a value are left out";
  EXPECT_EQ(report->tables.size(), 3u);
}

TEST(Report, EvaluationsAfterStepsAreOnTheCurve) {
  ReportedRun run = MadeUpRun("none", 1, {0.5, 0.7}, 32);
  run.steps_per_epoch = 4;
  EvaluationRecord* const after = run.summary.mutable_epochs(1)->add_evaluations();
  after->set_step(6);
  after->mutable_test()->mutable_compressed()->set_accuracy(0.6);
  const auto report = ReportOf({run}, {});
  ASSERT_TRUE(report.ok()) << report.status();
  std::vector<std::pair<double, double>> points;
  for (const ChartPoint& point : report->charts[0].chart.series[0].points) {
    points.emplace_back(point.x, point.y);
  }
  EXPECT_THAT(points, ElementsAre(Pair(1, 50), Pair(1.5, 60), Pair(2, 70)));
}

TEST(Report, AnUnknownBaselineIsRefusedWithThoseThereAre) {
  ReportFlags flags;
  flags.baseline = "nnoe";
  EXPECT_THAT(ReportOf(Runs(), flags).status().message(),
              HasSubstr("--baseline nnoe, want one of topk, none, ecsq"));
}

}  // namespace
}  // namespace thinwire
