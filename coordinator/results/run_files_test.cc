#include "coordinator/results/run_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace thinwire {
namespace {

class RunFilesTest : public ::testing::Test {
 protected:
  RunFilesTest() {
    std::filesystem::remove_all(dir_);
    std::filesystem::create_directories(dir_);
    Write("summary.json", R"({"status": "completed", "seed": 1, "epochs": [], "boundaries": []})");
    Write("experiment.yaml", "name: a\n");
    Write("metrics.jsonl", "");
  }
  void Write(const std::string& file, const std::string& text) {
    std::ofstream(dir_ + "/" + file) << text;
  }
  std::string Error() { return std::string(ReadRunFiles(dir_).status().message()); }

  const std::string dir_ = ::testing::TempDir() + "/run_files";
};

TEST_F(RunFilesTest, SortsLinesByTypeAndLeavesOutOneWithoutAnEnd) {
  Write("metrics.jsonl",
        "{\"type\": \"step\", \"epoch\": 1, \"step\": 1}\n{\"type\": \"evaluation\", \"epoch\": 1, "
        "\"step\": 1, \"seconds\": 2}\n{\"type\": \"epoch\", \"epoch\": 1}\n{\"type\": \"st");
  const auto files = ReadRunFiles(dir_);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->metrics.steps.size(), 1u);
  EXPECT_EQ(files->metrics.epochs.size(), 1u);
  ASSERT_EQ(files->metrics.evaluations.size(), 1u);
  EXPECT_EQ(files->metrics.evaluations[0].seconds(), 2);
  EXPECT_EQ(files->experiment, "name: a\n");
}

TEST_F(RunFilesTest, WhatNoRunWritesIsNamedWithItsLine) {
  const std::string step = R"({"type": "step", "epoch": 1, "step": 1})";
  for (const char* line :
       {R"({"type": "other", "epoch": 1})", "[1]", R"({"type": 3, "epoch": 1})",
        R"({"type": "epoch"})", R"({"type": "step", "epoch": 1})",
        R"({"type": "evaluation", "epoch": 1})", R"({"type": "epoch", "epoch": -1})"}) {
    Write("metrics.jsonl", step + "\n" + line + "\n");
    EXPECT_EQ(Error(), dir_ + "/metrics.jsonl:2: " + line +
                           ", want an object of type step, evaluation or epoch with its numbers");
  }
  Write("metrics.jsonl", R"({"type": "epoch", "epoch": 1, "boundaries": 3})"
                         "\n");
  EXPECT_THAT(Error(), ::testing::HasSubstr("/metrics.jsonl:1: is no EpochRecord"));
}

TEST_F(RunFilesTest, WhatIsNoSummaryIsNamed) {
  Write("summary.json", "{}");
  EXPECT_EQ(Error(), dir_ + "/summary.json: is no Summary: it has no status");
  for (const char* text : {R"({"status": 7})", R"({"status": "completed", "seed": "x"})",
                           R"({"status": "completed", "boundaries": [3]})", "nonsense"}) {
    Write("summary.json", text);
    EXPECT_THAT(Error(), ::testing::HasSubstr("/summary.json: is no Summary: ")) << text;
  }
}

TEST(WithoutSeed, TakesASeedOffAndNothingElse) {
  EXPECT_EQ(WithoutSeed("topk10-seed1"), "topk10");
  EXPECT_EQ(WithoutSeed("a-seed1-seed22"), "a-seed1");
  for (const char* name : {"topk10", "a-seed", "a-seedx", "-seed1"})
    EXPECT_EQ(WithoutSeed(name), name);
}

TEST_F(RunFilesTest, AFolderWithoutASummaryIsNotFound) {
  std::filesystem::remove(dir_ + "/summary.json");
  EXPECT_TRUE(absl::IsNotFound(ReadRunFiles(dir_).status()));
}

}  // namespace
}  // namespace thinwire
