#include "coordinator/tune/judge.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Returns a loss that starts at `from` and falls by `by` a step.
std::vector<double> Falling(double from, size_t steps, double by = 1) {
  std::vector<double> losses;
  for (size_t i = 0; i < steps; ++i) losses.push_back(from - by * static_cast<double>(i));
  return losses;
}

void Add(const std::string& name, double step_ms, TuneCandidates* all) {
  TuneCandidate* const one = all->Add();
  one->set_name(name);
  one->set_step_seconds(step_ms / 1e3);
}

std::vector<std::string> Names(TuneCandidates* all) {
  std::vector<std::string> names;
  for (const TuneCandidate* one : StillStanding(all)) names.push_back(one->name());
  return names;
}

// Adds runs whose accuracy exceeds that of `none` by `lead`, one entry per seed.
void AddRuns(const std::string& name, const std::vector<double>& lead, size_t delay,
             TrainedRung* rung) {
  for (size_t i = 0; i < lead.size(); ++i) {
    rung->runs.push_back({name, i + 1, Falling(1000.0 + static_cast<double>(delay), 100),
                          70 + static_cast<double>(i) + lead[i], 60.0});
  }
}

TEST(StepsRatioTest, IsHowMuchLaterTheSameLossIsReached) {
  // `none` is after 80 of 100 steps where the other ends.
  EXPECT_DOUBLE_EQ(StepsRatio(Falling(1000, 100), Falling(1020, 100)), 100.0 / 80);
  EXPECT_DOUBLE_EQ(StepsRatio(Falling(1000, 100), Falling(1000, 100)), 1);
}

TEST(StepsRatioTest, IsNeverBelowOneNorAboveTheInverseOfTheLastFifth) {
  EXPECT_DOUBLE_EQ(StepsRatio(Falling(1000, 100), Falling(500, 100)), 1);
  EXPECT_DOUBLE_EQ(StepsRatio(Falling(1000, 100), Falling(5000, 100)), 5);
  EXPECT_DOUBLE_EQ(StepsRatio({3}, {4}), 1);
}

TEST(JudgeRungTest, FillsInMeansLossesAndStepsRatios) {
  TuneCandidates all;
  Add("none", 100, &all);
  Add("a", 50, &all);
  TrainedRung rung = {false, 100, {}};
  AddRuns("none", {0, 0, 0}, 0, &rung);
  AddRuns("a", {-1, -2, -3}, 20, &rung);
  JudgeRung(rung, 3, 5, 1, {}, &all);
  const TuneCandidate& a = CandidateNamed(all, "a");
  EXPECT_EQ(a.rung(), 3u);
  EXPECT_DOUBLE_EQ(a.compressed(), 69);
  EXPECT_DOUBLE_EQ(a.uncompressed(), 60);
  EXPECT_DOUBLE_EQ(a.loss().mean(), 2);
  EXPECT_NEAR(a.loss().high(), 2 + 4.3027 / std::sqrt(3), 1e-3);  // t of two degrees of freedom
  EXPECT_DOUBLE_EQ(a.steps_ratio(), 1.25);
  EXPECT_FALSE(CandidateNamed(all, "none").has_loss());
}

TEST(JudgeRungTest, NatsAreLostWhereThereAreMore) {
  TuneCandidates all;
  Add("none", 100, &all);
  Add("a", 50, &all);
  TrainedRung rung = {true, 100, {}};
  AddRuns("none", {0}, 0, &rung);
  AddRuns("a", {0.5}, 0, &rung);
  JudgeRung(rung, 1, 5, 1, {}, &all);
  EXPECT_DOUBLE_EQ(CandidateNamed(all, "a").loss().mean(), 0.5);
  EXPECT_FALSE(CandidateNamed(all, "a").loss().has_low());
}

TEST(JudgeRungTest, WhatLosesTooMuchWithItsWholeIntervalFalls) {
  TuneCandidates all;
  Add("none", 100, &all);
  Add("bad", 10, &all);
  Add("noisy", 20, &all);
  TrainedRung rung = {false, 100, {}};
  AddRuns("none", {0, 0, 0}, 0, &rung);
  AddRuns("bad", {-9, -9.1, -9.2}, 0, &rung);
  AddRuns("noisy", {2, -9, -20}, 0, &rung);
  JudgeRung(rung, 2, 1, 2, {}, &all);
  EXPECT_THAT(Names(&all), ElementsAre("noisy"));
  EXPECT_THAT(CandidateNamed(all, "bad").fell(),
              HasSubstr("rung 2: loses 9.10 [8.85, 9.35] points"));
}

TEST(JudgeRungTest, OneSeedLetsNobodyFallByItsLossAlone) {
  TuneCandidates all;
  Add("none", 100, &all);
  Add("bad", 10, &all);
  Add("good", 50, &all);
  TrainedRung rung = {false, 100, {}};
  AddRuns("none", {0}, 0, &rung);
  AddRuns("bad", {-30}, 50, &rung);
  AddRuns("good", {0}, 0, &rung);
  JudgeRung(rung, 1, 1, 2, {}, &all);
  EXPECT_THAT(Names(&all), ElementsAre("bad", "good"));
}

TEST(JudgeRungTest, TheFastestWithinTheLossTakeThePlacesThenThoseThatLoseLeast) {
  TuneCandidates all;
  Add("none", 100, &all);
  Add("fast-but-bad", 10, &all);
  Add("fast", 30, &all);
  Add("slow", 60, &all);
  Add("more-steps", 50, &all);  // 62.5 ms for a step of none
  TrainedRung rung = {false, 100, {}};
  AddRuns("none", {0}, 0, &rung);
  AddRuns("fast-but-bad", {-8}, 30, &rung);
  AddRuns("fast", {-1.5}, 0, &rung);
  AddRuns("slow", {0}, 0, &rung);
  AddRuns("more-steps", {0}, 20, &rung);
  JudgeRung(rung, 1, 1, 2, {}, &all);
  EXPECT_THAT(Names(&all), ElementsAre("fast", "slow"));
  EXPECT_THAT(CandidateNamed(all, "more-steps").fell(),
              HasSubstr("rung 1: not among the best 2: 62.5 ms for a step of none"));
}

TEST(JudgeRungTest, WithSeveralSeedsASlowerOneThatIsNoBetterFalls) {
  TuneCandidates all;
  Add("none", 100, &all);
  Add("fast", 30, &all);
  Add("slow", 60, &all);
  TrainedRung rung = {false, 100, {}};
  AddRuns("none", {0, 0}, 0, &rung);
  AddRuns("fast", {0, 0}, 0, &rung);
  AddRuns("slow", {-1, 0}, 0, &rung);
  JudgeRung(rung, 2, 1, 2, {}, &all);
  EXPECT_THAT(Names(&all), ElementsAre("fast"));
  EXPECT_EQ(CandidateNamed(all, "slow").fell(), "rung 2: slower than fast, which loses no more");
}

TEST(JudgeRungTest, AFailedRunAndOneThatEndsWithoutANumberFall) {
  TuneCandidates all;
  Add("none", 100, &all);
  Add("broken", 30, &all);
  Add("diverged", 60, &all);
  TrainedRung rung = {false, 100, {}};
  AddRuns("none", {0}, 0, &rung);
  AddRuns("diverged", {NAN}, 0, &rung);
  JudgeRung(rung, 1, 1, 2, {{"broken", "no memory"}}, &all);
  EXPECT_THAT(Names(&all), IsEmpty());
  EXPECT_EQ(CandidateNamed(all, "broken").fell(), "rung 1: its run failed: no memory");
}

// none has 60 per cent after 100 steps and 80 after 200.
Trend Rising() {
  TrainedRung first = {false, 100, {{"none", 1, {}, 60, {}}}};
  TrainedRung last = {false, 200, {{"none", 1, {}, 80, {}}}};
  return TrendOf(first, last);
}

TEST(TrendTest, HalvesWhatIsWrongWithEveryDoubling) {
  EXPECT_NEAR(Rising().ValueAt(400), 90, 1e-9);
  EXPECT_NEAR(*Rising().StepsTo(90), 400, 1e-9);
  EXPECT_NEAR(*Rising().StepsTo(60), 100, 1e-9);
  EXPECT_FALSE(Rising().StepsTo(100).has_value());
}

TEST(TrendTest, NatsAreAPowerOfTheStepsToo) {
  const TrainedRung first = {true, 100, {{"none", 1, {}, 3, {}}}};
  const TrainedRung last = {true, 400, {{"none", 1, {}, 1.5, {}}, {"none", 2, {}, 2.5, {}}}};
  // Halves when steps are four times as many, from a mean of 2.
  const Trend trend = TrendOf(first, last);
  EXPECT_NEAR(trend.ValueAt(1600), 1, 1e-9);
  EXPECT_NEAR(*trend.StepsTo(1), 1600, 1e-6);
}

TEST(TrendTest, WithoutAGainOnlyWhatIsReachedIsReached) {
  Trend flat = Rising();
  flat.slope = 0;
  EXPECT_TRUE(flat.StepsTo(80).has_value());
  EXPECT_FALSE(flat.StepsTo(81).has_value());
}

TuneReport Judged() {
  TuneReport report;
  report.set_experiment_steps(400);
  report.mutable_task()->set_max_loss(1);
  report.add_rungs();
  Add("none", 100, report.mutable_candidates());
  Add("gentle", 50, report.mutable_candidates());
  Add("harsh", 20, report.mutable_candidates());
  for (int i = 1; i < 3; ++i) {
    TuneCandidate* const one = report.mutable_candidates(i);
    one->set_rung(2);
    one->set_steps_ratio(i);
    one->mutable_loss()->set_mean(i == 1 ? 0.5 : 0.8);
    one->mutable_loss()->set_high(i == 1 ? 0.9 : 3);
    one->mutable_loss()->set_low(0.1);
  }
  return report;
}

TEST(ConcludeTest, TheSoonestAtTheTargetOfThoseWithinTheLossIsChosen) {
  TuneReport report = Judged();
  const Trend trend = Rising();
  Conclude(&trend, &report);
  EXPECT_EQ(report.choice(), "harsh");  // 2 · 20 ms beside 1 · 50 ms
  EXPECT_THAT(report.why(), HasSubstr("its interval is wider"));
  EXPECT_NEAR(report.predicted(), 90, 1e-9);
  EXPECT_NEAR(report.target(), 89, 1e-9);
  const double steps = *trend.StepsTo(89);
  EXPECT_NEAR(CandidateNamed(report.candidates(), "none").seconds_to_target(), 0.1 * steps, 1e-9);
  EXPECT_NEAR(CandidateNamed(report.candidates(), "harsh").ratio_to_none(), 0.4, 1e-9);
}

TEST(ConcludeTest, AFasterOneThatLosesTooMuchIsNot) {
  TuneReport report = Judged();
  // 20 per cent are wrong after the rung, 10 at the end: a loss of one point at the end is two now.
  report.mutable_candidates(2)->mutable_loss()->set_mean(1.9);
  const Trend trend = Rising();
  Conclude(&trend, &report);
  EXPECT_EQ(report.choice(), "harsh");
  report.mutable_candidates(2)->mutable_loss()->set_mean(2.1);
  Conclude(&trend, &report);
  EXPECT_EQ(report.choice(), "gentle");
  EXPECT_THAT(report.why(), HasSubstr("with its whole interval"));
}

TEST(ConcludeTest, ATargetThatNobodyReachesLeavesNone) {
  TuneReport report = Judged();
  report.mutable_task()->set_target(91);
  const Trend trend = Rising();
  Conclude(&trend, &report);
  EXPECT_EQ(report.choice(), "none");
  EXPECT_THAT(report.why(), HasSubstr("nobody reaches the target of 91 in the experiment's 400"));
}

TEST(ConcludeTest, MoreStepsThanTheLinkSavesLeaveNone) {
  TuneReport report = Judged();
  report.mutable_candidates(1)->set_steps_ratio(2);
  report.mutable_candidates(2)->set_steps_ratio(5);
  const Trend trend = Rising();
  Conclude(&trend, &report);
  EXPECT_EQ(report.choice(), "none");
}

TEST(ConcludeTest, NothingTrainedLeavesNone) {
  TuneReport report;
  Conclude(nullptr, &report);
  EXPECT_EQ(report.choice(), "none");
  EXPECT_EQ(report.why(), "no candidate makes a step faster on this link");
}

}  // namespace
}  // namespace thinwire
