#include "coordinator/sweep/live_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace thinwire {
namespace {

const std::vector<LiveRow>& Rows() {
  static const auto* rows = new std::vector<LiveRow>{{"none-seed1", "done", "", false},
                                                     {"topk10-seed1", "runs", "epoch 1/2", true},
                                                     {"none-seed2", "waits", "", false},
                                                     {"topk10-seed2", "waits", "", false}};
  return *rows;
}

TEST(LiveTableTest, HasALineForEachRun) {
  EXPECT_EQ(LiveLines(Rows(), 80, 10),
            "none-seed1    done   \n"
            "topk10-seed1  runs     epoch 1/2\n"
            "none-seed2    waits  \n"
            "topk10-seed2  waits  \n");
}

TEST(LiveTableTest, ASmallTerminalShowsWhatRunsAndCountsAll) {
  EXPECT_EQ(LiveLines(Rows(), 80, 3),
            "topk10-seed1  runs     epoch 1/2\n1 done, 1 runs, 2 waits\n");
  EXPECT_EQ(LiveLines(Rows(), 20, 3), "topk10-seed1  runs  \n1 done, 1 runs, 2 wa\n");
}

TEST(LiveTableTest, ProgressIsThatOfTheLastLineAndOfTheLog) {
  const std::string dir = ::testing::TempDir() + "/live";
  std::filesystem::create_directories(dir);
  EXPECT_EQ(ProgressOf(dir + "/none", dir + "/none", 2), "");
  std::ofstream(dir + "/metrics.jsonl")
      << R"({"type": "step", "epoch": 1, "step": 3, "loss": 0.5, "accuracy": 0.75})"
      << "\n";
  EXPECT_EQ(ProgressOf(dir, dir + "/none", 2), "epoch 1/2  loss 0.5000  accuracy 75.0 %");
  std::ofstream(dir + "/metrics.jsonl", std::ios::app)
      << R"({"type": "evaluation", "epoch": 1, "step": 3, "test": {"compressed": {"loss": 9}}})"
      << "\n";
  EXPECT_EQ(ProgressOf(dir, dir + "/none", 2), "epoch 1/2  loss 0.5000  accuracy 75.0 %");
  std::ofstream(dir + "/log") << "epoch 1/2 3/10  loss 0.5000  9 samples/s  1 kB/s  1m05s left\n";
  EXPECT_EQ(ProgressOf(dir, dir + "/log", 2),
            "epoch 1/2  loss 0.5000  accuracy 75.0 %  1m05s left");
}

TEST(LiveTableTest, ATableIsDrawnOverTheOneBefore) {
  const std::string path = ::testing::TempDir() + "/drawn";
  FILE* out = std::fopen(path.c_str(), "w");
  LiveTable table(out);
  table.Draw("a\nb\n");
  table.Draw("c\n");
  std::fclose(out);
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "a\nb\n\x1b[2A\x1b[Jc\n");
}

}  // namespace
}  // namespace thinwire
