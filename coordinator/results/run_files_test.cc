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
        "{\"type\": \"step\", \"step\": 1}\n{\"type\": \"epoch\", \"epoch\": 1}\n{\"type\": \"st");
  const auto files = ReadRunFiles(dir_);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->steps.size(), 1u);
  EXPECT_EQ(files->epochs.size(), 1u);
  EXPECT_EQ(files->experiment, "name: a\n");
}

TEST_F(RunFilesTest, WhatNoRunWritesIsNamedWithItsLine) {
  Write("metrics.jsonl", "{\"type\": \"step\"}\n{\"type\": \"other\"}\n");
  EXPECT_EQ(Error(), dir_ + "/metrics.jsonl:2: want an object of type step or epoch");
  Write("metrics.jsonl", "[1]\n");
  EXPECT_EQ(Error(), dir_ + "/metrics.jsonl:1: want an object of type step or epoch");
  Write("summary.json", "{}");
  EXPECT_EQ(Error(), dir_ + "/summary.json: is no run's summary");
}

TEST_F(RunFilesTest, AFolderWithoutASummaryIsNotFound) {
  std::filesystem::remove(dir_ + "/summary.json");
  EXPECT_TRUE(absl::IsNotFound(ReadRunFiles(dir_).status()));
}

}  // namespace
}  // namespace thinwire
