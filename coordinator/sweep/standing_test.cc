#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "config/experiment.h"
#include "coordinator/sweep/sweep_runs.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

Experiment With(const std::vector<std::string>& overrides) {
  const auto experiment = ParseExperiment(
      "name: a\nmodel: {name: resnet8, width: 4}\ndata: {name: digits}\n"
      "pipeline: {cuts: [layer1]}\noptimizer: {lr: 0.1}\nepochs: 2\n",
      "e.yaml", overrides);
  EXPECT_TRUE(experiment.ok()) << experiment.status();
  return *experiment;
}

class StandingTest : public ::testing::Test {
 protected:
  StandingTest() {
    std::filesystem::remove_all(dir_);
    std::filesystem::create_directories(dir_);
  }
  void Write(const std::string& file, const std::string& text) {
    std::ofstream(dir_ + "/" + file) << text;
  }
  Standing Of(const Experiment& wanted) {
    const auto standing = StandingOf(dir_, wanted);
    EXPECT_TRUE(standing.ok()) << standing.status();
    return *standing;
  }

  const std::string dir_ = ::testing::TempDir() + "/standing";
};

TEST_F(StandingTest, AFolderWithoutAnExperimentIsAbsent) {
  EXPECT_EQ(Of(With({})), Standing::kAbsent);
}

TEST_F(StandingTest, ARunIsFinishedWhenItsSummarySaysSo) {
  Write("experiment.yaml", ToYaml(With({})));
  EXPECT_EQ(Of(With({})), Standing::kUnfinished);
  for (const char* unfinished : {R"({"status": "interrupted", "epochs": [{}, {}]})",
                                 R"({"status": "completed", "epochs": [{}]})",
                                 R"({"status": "failed", "epochs": []})", "", "{\"status\": "}) {
    Write("summary.json", unfinished);
    EXPECT_EQ(Of(With({})), Standing::kUnfinished) << unfinished;
  }
  Write("summary.json", R"({"status": "completed", "epochs": [{}, {}]})");
  EXPECT_EQ(Of(With({})), Standing::kFinished);
  for (const char* const last : {"resumed", "stopped"}) {
    Write("summary.json", absl::StrCat(R"({"status": "completed", "epochs": [{}], "events": [)",
                                       R"({"type": "stopped"}, {"type": ")", last, "\"}]}"));
    EXPECT_EQ(Of(With({})),
              last == std::string("stopped") ? Standing::kFinished : Standing::kUnfinished);
  }
}

TEST_F(StandingTest, AnotherExperimentIsRefusedByTheFieldThatDiffers) {
  Write("experiment.yaml", ToYaml(With({})));
  EXPECT_EQ(StandingOf(dir_, With({"optimizer.lr=0.2"})).status(),
            absl::InvalidArgumentError(
                absl::StrCat(dir_,
                             ": a run of another experiment stands here: optimizer.lr is 0.1, "
                             "want 0.2; give the row another name, give another --out, or "
                             "remove this folder")));
  EXPECT_THAT(std::string(StandingOf(dir_, With({"epochs=3", "seed=2"})).status().message()),
              HasSubstr("seed is 1, want 2, and 1 more differ; "));
}

}  // namespace
}  // namespace thinwire
