#include "coordinator/run/progress.h"

#include <cstdlib>
#include <sstream>

#include "absl/strings/str_split.h"
#include "base/steady_time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

TEST(FormatTest, BytesHaveDecimalUnits) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(999), "999 B");
  EXPECT_EQ(FormatBytes(1000), "1.00 kB");
  EXPECT_EQ(FormatBytes(12345678), "12.3 MB");
  EXPECT_EQ(FormatBytes(999999), "1.00 MB");
}

TEST(FormatTest, SecondsGrowIntoMinutesAndHours) {
  EXPECT_EQ(FormatSeconds(59.4), "59s");
  EXPECT_EQ(FormatSeconds(185), "3m05s");
  EXPECT_EQ(FormatSeconds(7620), "2h07m");
}

ProgressState State() {
  ProgressState state;
  state.plan = {/*epochs=*/10, /*steps_per_epoch=*/4, /*train_samples=*/40};
  state.step.set_epoch(2);
  state.step.set_step(6);
  state.step.set_loss(1.5);
  state.samples_per_second = 1190.4;
  state.wire_bytes_per_second = 12.3e6;
  state.eta_seconds = 42;
  return state;
}

TEST(ProgressLineTest, TellsTheStepWithinTheEpoch) {
  EXPECT_EQ(ProgressLine(State(), 90),
            "epoch 2/10 [===========>           ] 2/4  loss 1.5000  1190 samples/s  "
            "12.3 MB/s  42s left");
}

TEST(ProgressLineTest, TheLastEpochMayEndEarly) {
  ProgressState state = State();
  state.plan.most_steps = 7;
  EXPECT_THAT(ProgressLine(state, 90), HasSubstr("] 2/3  loss"));
  state.step.set_step(4);
  state.step.set_epoch(1);
  EXPECT_THAT(ProgressLine(state, 90), HasSubstr("] 4/4  loss"));
}

TEST(ProgressLineTest, GivesUpTheBarAndThenTheEndOnANarrowTerminal) {
  EXPECT_THAT(ProgressLine(State(), 68), Not(HasSubstr("[")));
  EXPECT_THAT(ProgressLine(State(), 30), SizeIs(30));
}

EpochRecord Epoch() {
  EpochRecord epoch;
  epoch.set_epoch(2);
  epoch.mutable_train()->set_loss(1.23456);
  epoch.mutable_train()->set_accuracy(0.568);
  epoch.set_samples_per_second(1190);
  return epoch;
}

TEST(EpochLineTest, TellsBothEvaluationsAndTheTraffic) {
  EpochRecord epoch = Epoch();
  epoch.mutable_test()->mutable_compressed()->set_accuracy(0.612);
  epoch.mutable_test()->mutable_uncompressed()->set_accuracy(0.601);
  EXPECT_EQ(EpochLine(epoch, 10, /*raw_bytes=*/100e6, /*wire_bytes=*/10e6),
            "epoch 2/10: train loss 1.2346, accuracy 56.8 %; test accuracy 61.2 % compressed, "
            "60.1 % uncompressed; sent 10.0 MB, 10.0 x smaller; 1190 samples/s");
}

TEST(EvaluationLineTest, TellsTheStepAndTheResults) {
  EvaluationRecord evaluation;
  evaluation.set_epoch(2);
  evaluation.set_step(150);
  evaluation.mutable_test()->mutable_compressed()->set_accuracy(0.612);
  EXPECT_EQ(EvaluationLine(evaluation, 10),
            "epoch 2/10, step 150: test accuracy 61.2 % compressed");
}

TEST(EpochLineTest, TellsARecalibratedEvaluation) {
  EpochRecord epoch = Epoch();
  epoch.mutable_test()->mutable_uncompressed()->set_accuracy(0.6);
  epoch.mutable_test()->mutable_uncompressed_recalibrated()->set_accuracy(0.61);
  EXPECT_THAT(EpochLine(epoch, 10, /*raw_bytes=*/0, /*wire_bytes=*/0),
              HasSubstr("; test accuracy 60.0 % uncompressed, 61.0 % recalibrated;"));
}

TEST(EpochLineTest, TellsThePerplexityOfALanguageModel) {
  EpochRecord epoch = Epoch();
  epoch.mutable_test()->mutable_compressed()->set_perplexity(6.8149);
  epoch.mutable_test()->mutable_uncompressed()->set_perplexity(6.5);
  EXPECT_THAT(EpochLine(epoch, 10, /*raw_bytes=*/0, /*wire_bytes=*/0),
              HasSubstr("; test perplexity 6.81 compressed, 6.50 uncompressed;"));
}

TEST(EpochLineTest, TellsWhatElseATaskIsJudgedBy) {
  EpochRecord epoch = Epoch();
  Measured* const compressed = epoch.mutable_test()->mutable_compressed();
  compressed->set_accuracy(0.612);
  compressed->mutable_classes()->set_f1(0.722);
  epoch.mutable_test()->mutable_uncompressed()->mutable_classes()->set_matthews(0.0341);
  EXPECT_THAT(EpochLine(epoch, 10, /*raw_bytes=*/0, /*wire_bytes=*/0),
              HasSubstr("; test accuracy 61.2 % (F1 72.2 %) compressed, "
                        "0.0 % (Matthews 0.034) uncompressed;"));
}

TEST(EpochLineTest, TellsTheCorrelationOfScoresAndNoAccuracy) {
  EpochRecord epoch = Epoch();
  epoch.mutable_train()->clear_accuracy();
  epoch.mutable_test()->mutable_uncompressed()->mutable_scores()->set_spearman(0.8531);
  EXPECT_EQ(EpochLine(epoch, 10, /*raw_bytes=*/0, /*wire_bytes=*/0),
            "epoch 2/10: train loss 1.2346; test Spearman 0.853 uncompressed; 1190 samples/s");
}

TEST(EpochLineTest, TellsHeldOutSamplesFromTheTestSet) {
  EpochRecord epoch = Epoch();
  epoch.mutable_test()->set_held_out(true);
  epoch.mutable_test()->mutable_compressed()->set_accuracy(0.612);
  EXPECT_THAT(EpochLine(epoch, 10, /*raw_bytes=*/0, /*wire_bytes=*/0),
              HasSubstr("; held-out accuracy 61.2 % compressed;"));
}

TEST(EpochLineTest, LeavesOutWhatWasNotMeasured) {
  EXPECT_EQ(EpochLine(Epoch(), 10, /*raw_bytes=*/0, /*wire_bytes=*/0),
            "epoch 2/10: train loss 1.2346, accuracy 56.8 %; 1190 samples/s");
}

TEST(BoundaryTableTest, HasALinePerDirection) {
  BoundaryRecord boundary;
  boundary.set_name("layer1");
  DirectionRecord* r = boundary.mutable_activations();
  r->set_parameters("topk(ratio=0.1)");
  r->set_raw_bytes(100'000'000);
  r->set_wire_bytes(10'000'000);
  r->set_wire_bits_per_element(3.2);
  r->set_relative_error(0.25);
  boundary.mutable_gradients()->set_parameters("none");
  EXPECT_EQ(BoundaryTable({boundary}),
            "boundary   direction      raw MB    wire MB    ratio bits/elem rel.error\n"
            "layer1     activation     100.00      10.00   10.0 x      3.20    0.2500\n"
            "layer1     gradient         0.00       0.00    0.0 x      0.00         -\n"
            "activation  topk(ratio=0.1)\n"
            "gradient    none\n");
}

TEST(BoundaryTableTest, HasALineOfTheStash) {
  DirectionRecord stash;
  EXPECT_EQ(BoundaryTable({}, {}, stash), "");
  stash.set_parameters("uniform(bits=4)");
  stash.set_raw_bytes(64'000'000);
  stash.set_wire_bytes(10'000'000);
  stash.set_wire_bits_per_element(5);
  stash.set_messages(7);
  EXPECT_THAT(
      BoundaryTable({}, {}, stash),
      HasSubstr("stash      kept            64.00      10.00    6.4 x      5.00         -\n"));
}

TEST(SwapLineTest, SaysWhatMoved) {
  SwapRecord swap;
  EXPECT_EQ(SwapLine(swap), "");
  swap.set_bytes_out(64'000'000);
  swap.set_bytes_in(63'000'000);
  swap.set_most_bytes(2'000'000);
  swap.set_wait_seconds(1.25);
  EXPECT_EQ(
      SwapLine(swap),
      "swap:     64.0 MB out, 63.0 MB in, at most 2.00 MB of a stage at once, 1.2 s waited\n");
}

TEST(BoundaryTableTest, NamesCutsWhoseCodecsOrLevelsDiffer) {
  BoundaryRecord a, b;
  a.set_name("layer1");
  b.set_name("layer2");
  a.mutable_activations()->set_parameters("topk(ratio=0.5)");
  a.mutable_activations()->set_level(0.125);
  b.mutable_activations()->set_parameters("topk(ratio=0.5)");
  const std::string table = BoundaryTable({a, b});
  EXPECT_THAT(table, HasSubstr("layer1     activation  topk(ratio=0.5), in the end at level 0.125\n"
                               "layer2     activation  topk(ratio=0.5)\n"));
}

TEST(BoundaryTableTest, FitsEightyColumns) {
  BoundaryRecord boundary;
  boundary.set_name("layer1");
  boundary.mutable_gradients()->set_parameters(
      "uniform(bits=4, range=min_max, scope=group, group=64, rounding=stochastic, zero=on_grid, "
      "lossless=zstd)");
  std::istringstream lines(BoundaryTable({boundary}));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_EQ(count, 6) << "the codec goes on in a second line";
}

TEST(BannerTest, SaysWhatRunsWhereAndWhatWatchesIt) {
  RunPlan plan = State().plan;
  plan.stages.resize(4);
  plan.devices = "cpu";
  EXPECT_EQ(Banner({"digits-1a2b", "runs/digits", "127.0.0.1:4711"}, plan),
            "run digits-1a2b in runs/digits: 4 stages on cpu; metrics at "
            "http://127.0.0.1:4711/metrics");
  plan.stages.resize(1);
  EXPECT_THAT(Banner({}, plan), HasSubstr(": 1 stage on cpu"));
}

// Returns what a run of one step, a second long, and one epoch prints on a terminal that has
// `columns_then` at its end.
std::string Printed(int columns, bool quiet, int columns_then = 0) {
  char* text = nullptr;
  size_t size = 0;
  FILE* out = open_memstream(&text, &size);
  SteadyTime now;
  Progress progress({out, [&columns] { return columns; }, quiet, [&now] { return now; }});
  EXPECT_TRUE(progress.OnStart(State().plan).ok());
  now = now + absl::Seconds(1);
  EXPECT_TRUE(progress.OnStep(State().step).ok());
  if (columns_then > 0) {
    columns = columns_then;
    now = now + absl::Seconds(1);
    EXPECT_TRUE(progress.OnStep(State().step).ok());
    EXPECT_TRUE(progress.OnEvaluation(2, Inference::kUncompressedRecalibrated).ok());
  }
  EXPECT_TRUE(progress.OnEpoch(Epoch()).ok());
  std::fclose(out);
  std::string printed(text, size);
  std::free(text);
  return printed;
}

TEST(ProgressTest, ATerminalLineIsRedrawnAndThenWrittenOver) {
  const std::string printed = Printed(/*columns=*/100, /*quiet=*/false);
  EXPECT_THAT(printed, ::testing::StartsWith("\repoch 2/10 ["));
  EXPECT_THAT(printed, HasSubstr(" left\repoch 2/10: train loss"));
  EXPECT_THAT(printed, EndsWith(" \n"));  // blanks cover the longer line
}

TEST(ProgressTest, ATerminalThatShrinksDoesNotScroll) {
  const std::string printed = Printed(/*columns=*/100, /*quiet=*/false, /*columns_then=*/30);
  const std::vector<std::string> drawn = absl::StrSplit(printed, '\r');
  ASSERT_THAT(drawn, SizeIs(5));  // nothing, two steps, an evaluation, the epoch's line
  EXPECT_THAT(drawn[2], SizeIs(29));
  EXPECT_THAT(drawn[3], SizeIs(29));
}

TEST(ProgressTest, ElsewhereThereAreOnlyPlainLinesAndFewOfThem) {
  EXPECT_EQ(Printed(/*columns=*/0, /*quiet=*/false), EpochLine(Epoch(), 10, 0, 0) + "\n");
}

TEST(ProgressTest, WhatStagesSaidOfThemselvesReachesTheTerminalHarmless) {
  char* text = nullptr;
  size_t size = 0;
  FILE* out = open_memstream(&text, &size);
  Progress({out, /*columns=*/0, /*quiet=*/false, &SteadyTime::Now}).Say("topk(\x1b[2J)\nnext\r");
  std::fclose(out);
  EXPECT_EQ(std::string(text, size), "topk(\\x1b[2J)\nnext\\x0d\n");
  std::free(text);
}

TEST(ProgressTest, QuietPrintsNothing) { EXPECT_EQ(Printed(/*columns=*/100, /*quiet=*/true), ""); }

}  // namespace
}  // namespace thinwire
