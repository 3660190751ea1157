#include <filesystem>

#include "base/file.h"
#include "coordinator/report/configurations.h"
#include "gmock/gmock.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class RunsTest : public ::testing::Test {
 protected:
  RunsTest() { fs::remove_all(root_); }
  void Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + "/" + path).parent_path());
    ASSERT_TRUE(ReplaceFile(root_ + "/" + path, text).ok());
  }
  std::string Error() { return std::string(ReadRuns({root_}).status().message()); }

  const std::string root_ = ::testing::TempDir() + "/reported";
};

TEST_F(RunsTest, FindsRunsBelowAFolderOnceAndSorted) {
  for (const char* name : {"b", "deep/a"}) {
    Write(std::string(name) + "/experiment.yaml", "name: x\nseed: 3\n");
    Write(std::string(name) + "/summary.json", "{\"name\": \"x\", \"status\": \"completed\"}");
  }
  Write("b/checkpoints/experiment.yaml", "name: no run\n");
  Write("else/notes.txt", "");
  const auto runs = ReadRuns({root_, root_ + "/b"});
  ASSERT_TRUE(runs.ok()) << runs.status();
  ASSERT_EQ(runs->size(), 2u);
  EXPECT_EQ((*runs)[0].dir, root_ + "/b");
  EXPECT_EQ((*runs)[1].dir, root_ + "/deep/a");
}

TEST_F(RunsTest, AnUnfinishedRunHasWhatItsMetricsHave) {
  Write("experiment.yaml", "name: broken-off\nseed: 7\nmodel:\n  name: mlp\n");
  Write("metrics.jsonl",
        "{\"type\": \"step\", \"epoch\": 1, \"step\": 1, \"loss\": 2.5}\n"
        "{\"type\": \"step\", \"epoch\": 1, \"step\": 2, \"loss\": null}\n"
        "{\"type\": \"epoch\", \"time\": \"t\", \"epoch\": 1, \"seconds\": 4.5, \"test\": null}\n"
        "{\"type\": \"step\", \"epoch\": 1, \"step\": 3, \"lo");
  const auto runs = ReadRuns({root_});
  ASSERT_TRUE(runs.ok()) << runs.status();
  const ReportedRun& run = runs->front();
  EXPECT_EQ(run.summary.status(), kUnfinished);
  EXPECT_EQ(run.summary.name(), "broken-off");
  EXPECT_EQ(run.summary.seed(), 7u);
  ASSERT_EQ(run.summary.epochs_size(), 1);
  EXPECT_EQ(run.summary.epochs(0).seconds(), 4.5);
  ASSERT_EQ(run.losses.size(), 1u);
  EXPECT_EQ(run.losses[0].loss, 2.5);
}

TEST_F(RunsTest, ALongCurveIsMeansOfStretches) {
  Write("experiment.yaml", "name: long\n");
  std::string lines;
  for (int step = 1; step <= 1000; ++step) {
    lines += "{\"type\": \"step\", \"epoch\": 1, \"step\": " + std::to_string(step) +
             ", \"loss\": " + std::to_string(step % 5) + "}\n";
  }
  Write("metrics.jsonl", lines);
  const auto runs = ReadRuns({root_});
  ASSERT_TRUE(runs.ok()) << runs.status();
  const auto& losses = runs->front().losses;
  ASSERT_EQ(losses.size(), kLossPoints);
  EXPECT_EQ(losses.front().step, 5);
  EXPECT_EQ(losses.back().step, 1000);
  for (const LossPoint& point : losses) EXPECT_EQ(point.loss, 2);
}

TEST_F(RunsTest, ErrorsNameWhatIsThereAndWhatIsWanted) {
  EXPECT_THAT(Error(), HasSubstr("reported: no such folder, want that of a run or of runs"));
  Write("notes/a.txt", "");
  EXPECT_THAT(std::string(ReadRuns({root_ + "/notes/a.txt"}).status().message()),
              HasSubstr("a.txt: is no folder, want that of a run or of runs"));
  EXPECT_THAT(Error(), HasSubstr("no run is in or below it, want a folder with experiment.yaml"));
  Write("a/experiment.yaml", "name: a\n");
  Write("a/metrics.jsonl", "{\"type\": \"step\", \"epoch\": 1, \"step\": 1}\nnonsense\n");
  EXPECT_THAT(Error(), HasSubstr("a/metrics.jsonl:2: nonsense, want an object of type step"));
  Write("a/metrics.jsonl", "{\"type\": \"epoch\", \"epoch\": 1, \"seconds\": \"one\"}\n");
  EXPECT_THAT(Error(), HasSubstr("a/metrics.jsonl:1: is no EpochRecord"));
  Write("a/metrics.jsonl", "");
  Write("a/summary.json", "{\"epochs\": 3}");
  EXPECT_THAT(Error(), AllOf(HasSubstr("a/summary.json: is no Summary"), HasSubstr("epochs")));
}

}  // namespace
}  // namespace thinwire
