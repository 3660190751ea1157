#include "coordinator/run/run_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class RunWeightsTest : public ::testing::Test {
 protected:
  RunWeightsTest() {
    fs::remove_all(run_);
    fs::create_directories(run_ + "/checkpoints");
    std::ofstream(run_ + "/experiment.yaml") << "epochs: 1\n";
  }
  ~RunWeightsTest() override { fs::remove_all(run_); }
  std::string Refusal(const std::string& text) const {
    return std::string(WeightsOf(ParseRunAt(text)).status().message());
  }

  const std::string run_ = ::testing::TempDir() + "/run_weights";
};

TEST_F(RunWeightsTest, ATextIsAFolderAndAStepUnlessAFolderHasThatName) {
  EXPECT_EQ(ParseRunAt(run_).run, run_);
  EXPECT_EQ(ParseRunAt(run_ + "@12").run, run_);
  EXPECT_EQ(ParseRunAt(run_ + "@12").step, "12");
  fs::create_directories(run_ + "/mine@12");
  EXPECT_EQ(ParseRunAt(run_ + "/mine@12").step, std::nullopt);
  EXPECT_EQ(ParseRunAt(run_ + "@").step, "");
}

TEST_F(RunWeightsTest, OfTheEndTheyAreTheModel) {
  const auto weights = WeightsOf(ParseRunAt(run_));
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_EQ(weights->model, run_ + "/model");
  EXPECT_EQ(weights->path, run_ + "/experiment.yaml");
  EXPECT_EQ(weights->text, "epochs: 1\n");
}

TEST_F(RunWeightsTest, EpochsAreThoseThatTheSummaryHas) {
  EXPECT_EQ(WeightsOf(ParseRunAt(run_))->epochs, std::nullopt);
  std::ofstream(run_ + "/summary.json") << R"({"epochs": [{"epoch": 1}, {"epoch": 2}]})";
  EXPECT_EQ(WeightsOf(ParseRunAt(run_))->epochs, 2u);
}

TEST_F(RunWeightsTest, WhatIsNotThereIsNamed) {
  EXPECT_THAT(Refusal(run_ + "/none"), HasSubstr("/none: no run is recorded here"));
  EXPECT_THAT(Refusal(run_ + "@soon"), HasSubstr("\"soon\" behind the @, want the step of a"));
  EXPECT_THAT(Refusal(run_ + "@"), HasSubstr("\"\" behind the @, want the step of a"));
  EXPECT_THAT(Refusal(run_ + "@best"), HasSubstr("has no best checkpoint"));
  EXPECT_THAT(Refusal(run_ + "@7"), HasSubstr("checkpoints"));
}

}  // namespace
}  // namespace thinwire
