#include "coordinator/evaluate/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/safetensors.h"
#include "config/experiment.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kTargetFile[] = R"(
name: target
model:
  name: custom
  blocks:
    - {name: flat, layers: [{kind: flatten}]}
    - {name: head, layers: [{kind: linear, name: fc, out: 10, bias: false}]}
data: {name: digits, batch_size: 2}
pipeline: {cuts: [flat], stages: 2}
replicas: {count: 2}
membership: {open: true}
optimizer: {lr: 0.1}
epochs: 1
)";

// A run's folder with the weights of its end, and an experiment file.
class TargetTest : public ::testing::Test {
 protected:
  TargetTest() {
    fs::remove_all(dir_);
    fs::create_directories(dir_ + "/run/model");
    std::ofstream(dir_ + "/target.yaml") << kTargetFile;
    std::ofstream(dir_ + "/run/experiment.yaml") << ToYaml(*ParseExperiment(kTargetFile, "t", {}));
    const std::string zeros(640 * sizeof(float), '\0');
    std::ofstream weights(dir_ + "/run/model/model.safetensors", std::ios::binary);
    EXPECT_TRUE(WriteSafetensors({{}, {{"head.fc.weight", "F32", {10, 64}, zeros}}}, 1 << 20,
                                 [&](std::string_view piece) {
                                   weights << piece;
                                   return absl::OkStatus();
                                 })
                    .ok());
  }
  ~TargetTest() override { fs::remove_all(dir_); }

  absl::StatusOr<EvaluationTarget> Open(const std::string& name) {
    options_.target = dir_ + "/" + name;
    SessionOptions session;
    return OpenTarget(options_, &session);
  }
  std::string Refusal(const std::string& name) {
    return std::string(Open(name).status().message());
  }

  const std::string dir_ = ::testing::TempDir() + "/evaluation_target";
  TargetOptions options_;
};

TEST_F(TargetTest, ARunHasTheWeightsOfItsEndAndItsCutsInOneStage) {
  const auto target = Open("run");
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_EQ(target->dir, dir_ + "/run/model");
  EXPECT_TRUE(target->weights.has_value());
  EXPECT_THAT(target->experiment.pipeline().cuts(), ElementsAre("flat"));
  EXPECT_EQ(target->experiment.pipeline().stages(), 1u);
  EXPECT_FALSE(target->experiment.has_replicas());
  EXPECT_FALSE(target->experiment.has_membership()) << "nobody joins or is lost";
}

TEST_F(TargetTest, WhatTheUserSetsCounts) {
  options_.samples = 7;
  options_.overrides = {"pipeline.stages=2", "data.batch_size=5"};
  const auto target = Open("run");
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_EQ(target->experiment.pipeline().stages(), 2u);
  EXPECT_EQ(target->experiment.data().test_limit(), 7u);
  EXPECT_EQ(target->experiment.data().batch_size(), 5u);
}

TEST_F(TargetTest, AnExperimentHasTheWeightsOfItsInitOrNone) {
  const auto random = Open("target.yaml");
  ASSERT_TRUE(random.ok()) << random.status();
  EXPECT_FALSE(random->weights.has_value());
  EXPECT_EQ(random->dir, "");
  options_.overrides = {"init=" + dir_ + "/run/model"};
  const auto target = Open("target.yaml");
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_TRUE(target->weights.has_value());
  EXPECT_EQ(target->dir, dir_ + "/run/model");
}

TEST_F(TargetTest, TheEpochsOfARunAreThoseThatItTrained) {
  EXPECT_EQ(Open("run")->epochs, std::nullopt);
  std::ofstream(dir_ + "/run/summary.json") << R"({"epochs": [{"epoch": 1}]})";
  EXPECT_EQ(Open("run")->epochs, 1u);
}

TEST_F(TargetTest, ATextOfOtherTokensThanARunHadIsRefused) {
  std::ofstream(dir_ + "/ours.txt") << std::string(99, 'a') << std::string(99, 'b');
  std::ofstream(dir_ + "/other.txt") << std::string(99, 'a') << std::string(99, 'c');
  const auto experiment = ParseExperiment(
      "{name: letters, model: {name: gpt2, layers: 1, heads: 1, width: 8}, optimizer: {lr: 0.1}, "
      "epochs: 1, data: {name: text, tokens: characters, context: 8, split: 0.5, file: " +
          dir_ + "/ours.txt}}",
      "t", {});
  ASSERT_TRUE(experiment.ok()) << experiment.status();
  std::ofstream(dir_ + "/run/experiment.yaml") << ToYaml(*experiment);
  std::ofstream(dir_ + "/run/model/vocabulary.json")
      << R"({"tokens": "characters", "characters": "ab"})";
  const char* const refusal = "the data's vocabulary is not the checkpoint's: id 1 is \"c\"";
  EXPECT_THAT(Refusal("run"), Not(HasSubstr(refusal))) << "only the weights are others";
  options_.overrides = {"data.file=" + dir_ + "/other.txt"};
  EXPECT_THAT(Refusal("run"), HasSubstr(refusal));
}

TEST_F(TargetTest, WhatIsNothingOfThatIsNamed) {
  EXPECT_THAT(Refusal("none"), HasSubstr("no run is recorded here"));
  EXPECT_THAT(Refusal("run/model"), HasSubstr("nor is it a model's folder"));
  EXPECT_THAT(Refusal("run@7"), HasSubstr("checkpoints"));
  EXPECT_THAT(Refusal("run@"), HasSubstr("\"\" behind the @, want the step of a checkpoint"));
  options_.data = "shakespeare";
  for (const char* const other : {"run", "target.yaml"}) {
    EXPECT_THAT(Refusal(other), HasSubstr("--data: shakespeare, want it for a model's folder"));
  }
}

}  // namespace
}  // namespace thinwire
