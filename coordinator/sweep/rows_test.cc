#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "config/differences.h"
#include "coordinator/sweep/sweep_file.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Sweep Base() {
  Sweep sweep;
  sweep.name = "s";
  sweep.source = "e.yaml";
  sweep.text =
      "name: base\nseed: 7\nmodel: {name: resnet8, width: 4}\ndata: {name: digits}\n"
      "pipeline: {cuts: [layer1]}\noptimizer: {lr: 0.1}\nepochs: 1\n";
  return sweep;
}

std::vector<std::string> Names(const Sweep& sweep) {
  const auto runs = ExpandRuns(sweep, {}, 0);
  EXPECT_TRUE(runs.ok()) << runs.status();
  std::vector<std::string> names;
  for (const SweepRun& run : *runs) names.push_back(run.name);
  return names;
}

std::string ErrorOf(const Sweep& sweep, const std::vector<std::string>& overrides = {}) {
  return std::string(ExpandRuns(sweep, overrides, 0).status().message());
}

TEST(RowsTest, ASweepOfNothingIsTheExperiment) {
  EXPECT_THAT(Names(Base()), ElementsAre("base-seed7"));
}

TEST(RowsTest, AllRowsOfASeedComeBeforeTheNextSeed) {
  Sweep sweep = Base();
  sweep.variants = {{"none", {}, ""},
                    {"fp16", {{"compression.activations.codec", "fp16", ""}}, ""}};
  sweep.seeds = {1, 2};
  EXPECT_THAT(Names(sweep), ElementsAre("none-seed1", "fp16-seed1", "none-seed2", "fp16-seed2"));
  const auto runs = ExpandRuns(sweep, {}, 0);
  EXPECT_EQ((*runs)[3].experiment.seed(), 2u);
  EXPECT_EQ((*runs)[3].experiment.name(), "fp16");
  EXPECT_EQ((*runs)[3].experiment.compression().activations().codec(), "fp16");
  EXPECT_THAT(RowsOf(*runs), ElementsAre("none", "fp16"));
}

TEST(RowsTest, AxesMultiplyAndAreCalledByWhatTellsThemApart) {
  Sweep sweep = Base();
  ASSERT_TRUE(AddGrid("optimizer.lr=0.1,0.2", &sweep).ok());
  ASSERT_TRUE(
      AddGrid("compression.activations={codec: topk, ratio: 0.1},{codec: none}", &sweep).ok());
  EXPECT_THAT(Names(sweep), ElementsAre("lr-0.1_activations-codec-topk-ratio-0.1-seed7",
                                        "lr-0.1_activations-codec-none-seed7",
                                        "lr-0.2_activations-codec-topk-ratio-0.1-seed7",
                                        "lr-0.2_activations-codec-none-seed7"));
}

TEST(RowsTest, FieldsOfOneNameAreToldApartByWhatIsAboveThem) {
  Sweep sweep = Base();
  ASSERT_TRUE(AddGrid("compression.activations.codec=fp16", &sweep).ok());
  ASSERT_TRUE(AddGrid("compression.gradients.codec=bf16", &sweep).ok());
  EXPECT_THAT(Names(sweep), ElementsAre("activations.codec-fp16_gradients.codec-bf16-seed7"));
}

TEST(RowsTest, AnOverrideHasTheLastWordInAllRows) {
  Sweep sweep = Base();
  ASSERT_TRUE(AddGrid("optimizer.lr=0.1,0.2", &sweep).ok());
  const auto runs = ExpandRuns(sweep, {"epochs=3", "seed=5"}, 0);
  ASSERT_TRUE(runs.ok()) << runs.status();
  for (const SweepRun& run : *runs) {
    EXPECT_EQ(run.experiment.epochs(), 3u);
    EXPECT_EQ(run.seed, 5u);
  }
}

TEST(RowsTest, ARunOfARowDiffersFromAnotherInItsSeedAlone) {
  Sweep sweep = Base();
  sweep.seeds = {1, 2};
  const auto runs = ExpandRuns(sweep, {}, 0);
  ASSERT_TRUE(runs.ok());
  const auto differences = Differences((*runs)[0].experiment, (*runs)[1].experiment);
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].path, "seed");
}

TEST(RowsTest, EveryRowIsCheckedAndNamed) {
  Sweep sweep = Base();
  sweep.variants = {{"good", {}, "s.yaml:3: "},
                    {"bad", {{"compression.activations.codec", "topq", ""}}, "s.yaml:4: "}};
  EXPECT_THAT(
      ErrorOf(sweep),
      HasSubstr("s.yaml:4: row bad: --set compression.activations.codec="
                "topq: compression.activations.codec: unknown codec \"topq\"; did you mean topk?"));
  EXPECT_THAT(ErrorOf(Base(), {"epochs=0"}), HasSubstr("epochs: 0, want at least 1"));
}

TEST(RowsTest, NamesAreFoldersAndUnique) {
  Sweep sweep = Base();
  sweep.variants = {{"a/b", {}, "s.yaml:3: "}};
  EXPECT_THAT(ErrorOf(sweep), HasSubstr("row a/b: "));
  sweep = Base();
  ASSERT_TRUE(AddGrid("optimizer.lr=0.1,0.1", &sweep).ok());
  EXPECT_EQ(ErrorOf(sweep),
            "--grid optimizer.lr=0.1,0.1: two rows would be called lr-0.1: want rows "
            "that say what differs by names of their own");
}

TEST(RowsTest, EverySweepOfTheProjectIsOne) {
  int suites = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("experiments")) {
    const std::filesystem::path& path = entry.path();
    const bool is_suite = path.filename() == "sweep.yaml";
    if (!is_suite && path.parent_path().filename() != "sweeps") continue;
    SCOPED_TRACE(path.string());
    const auto sweep = ReadSweep(path.string());
    ASSERT_TRUE(sweep.ok()) << sweep.status();
    const auto runs = ExpandRuns(*sweep, {}, 0);
    EXPECT_TRUE(runs.ok()) << runs.status();
    suites += is_suite;
  }
  EXPECT_GT(suites, 1);
}

TEST(RowsTest, OnlyRowsWhoseWholeNameMatchesAreKept) {
  Sweep sweep = Base();
  for (const char* row : {"none", "topk5", "topk10", "untopk"})
    sweep.variants.push_back({row, {}, ""});
  const auto rows_of = [&](const char* pattern) {
    std::vector<SweepRun> runs = *ExpandRuns(sweep, {}, 0);
    const absl::Status status = KeepOnly(pattern, &runs);
    return status.ok() ? RowsOf(runs) : std::vector<std::string>{std::string(status.message())};
  };
  EXPECT_THAT(rows_of("none|topk.*"), ElementsAre("none", "topk5", "topk10"));
  EXPECT_THAT(rows_of("topk"), ElementsAre("--only: topk is no row; there are none, topk5, topk10, "
                                           "untopk"));
  EXPECT_THAT(rows_of("topk("), ElementsAre(HasSubstr("--only: topk(: ")));
}

TEST(RowsTest, ABaselineIsARow) {
  Sweep sweep = Base();
  sweep.baseline = "bose";
  EXPECT_EQ(ErrorOf(sweep), "baseline: no row is called bose; did you mean base?");
}

}  // namespace
}  // namespace thinwire
