#include "config/experiment.h"
#include "coordinator/tune/library.h"
#include "coordinator/tune/tune.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

constexpr char kImages[] = R"(
model: {name: resnet8, width: 4}
data: {name: digits, batch_size: 64, limit: 1280}
pipeline: {cuts: [layer1, layer2]}
optimizer: {lr: 0.1}
seed: 5
epochs: 10
)";

// `none`, and two candidates of which `fallen` has fallen.
TuneCandidates Candidates() {
  TuneCandidates all;
  all.Add()->set_name(kNone);
  TuneCandidate* const fallen = all.Add();
  fallen->set_name("fallen");
  fallen->set_fell("plan: too slow");
  TuneCandidate* const fp16 = all.Add();
  fp16->set_name("fp16");
  fp16->set_compression("activations: {codec: fp16}\n");
  return all;
}

SweepRun RunOf(const std::string& row) { return {row + "-seed1", row, 1, Experiment()}; }

TEST(RunsOfRungTest, AreNoneAndWhoStandsWithEachSeedAndTheRungsSteps) {
  const auto experiment = ParseExperiment(kImages, "test", {});
  ASSERT_TRUE(experiment.ok()) << experiment.status();
  TuneCandidates all = Candidates();
  TuneRung record;
  const auto runs =
      RunsOfRung(*experiment, {/*candidates=*/1, /*seeds=*/2, /*steps=*/40}, &all, &record);
  ASSERT_TRUE(runs.ok()) << runs.status();
  std::vector<std::string> names;
  for (const SweepRun& run : *runs) {
    names.push_back(run.name);
    EXPECT_EQ(run.experiment.name(), run.row);
    EXPECT_EQ(run.experiment.seed(), run.seed);
    EXPECT_EQ(run.experiment.epochs(), 2u);
    EXPECT_EQ(run.experiment.pipeline().stages(), 1u);
  }
  EXPECT_THAT(names, ElementsAre("none-seed5", "fp16-seed5", "none-seed6", "fp16-seed6"));
  EXPECT_EQ((*runs)[1].experiment.compression().activations().codec(), "fp16");
  EXPECT_THAT(record.candidates(), ElementsAre("fp16"));
  EXPECT_THAT(record.seeds(), ElementsAre(5, 6));
  EXPECT_EQ(record.steps(), 40u);
  EXPECT_EQ(record.epochs(), 2u);
  EXPECT_EQ(record.samples(), 1280u);
}

TEST(NoteFailuresTest, KeepsWhyARunFailedBesideThoseThatDidNot) {
  const std::vector<SweepRun> runs = {RunOf("none"), RunOf("a"), RunOf("b")};
  SweptRuns swept;
  swept.failures = {{"a-seed1", "loss is nan"}};
  TuneFailures failures;
  EXPECT_TRUE(NoteFailures(runs, swept, &failures).ok());
  EXPECT_THAT(failures, ElementsAre(Pair("a", "loss is nan")));
}

TEST(NoteFailuresTest, AFailureOfNoneOrOfAllIsNoCandidatesFault) {
  const std::vector<SweepRun> runs = {RunOf("none"), RunOf("a"), RunOf("b")};
  SweptRuns swept;
  TuneFailures failures;
  swept.failures = {{"none-seed1", "no room"}};
  EXPECT_EQ(NoteFailures(runs, swept, &failures).message(), "none: no room");
  swept.failures = {{"results.sqlite", "no room"}};
  EXPECT_EQ(NoteFailures(runs, swept, &failures).message(), "results.sqlite: no room");
  swept.failures = {{"a-seed1", "died"}, {"b-seed1", "died, too"}};
  EXPECT_EQ(NoteFailures(runs, swept, &failures).message(),
            "every candidate's run failed: a: died");
}

}  // namespace
}  // namespace thinwire
