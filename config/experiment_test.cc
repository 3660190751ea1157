#include "config/experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "google/protobuf/util/message_differencer.h"

namespace thinwire {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kExperiment[] = R"(
model: {name: resnet8}
data: {name: digits}
pipeline: {cuts: [layer1, layer2]}
compression:
  activations: {codec: topk, ratio: 0.1, values: fp16}
optimizer: {lr: 0.1}
lr_schedule: {name: cosine, t_max: 7}
epochs: 3
)";

absl::StatusOr<Experiment> With(const std::vector<std::string>& overrides) {
  return ParseExperiment(kExperiment, "dir/my-run.v2.yaml", overrides);
}

DirectionConfig ActivationsWith(const std::vector<std::string>& overrides) {
  const auto e = With(overrides);
  EXPECT_TRUE(e.ok()) << e.status();
  return e.ok() ? e->compression().activations() : DirectionConfig();
}

TEST(ExperimentTest, IsNamedAfterItsFile) {
  EXPECT_EQ(With({})->name(), "my-run.v2");
  EXPECT_EQ(With({"name=other"})->name(), "other");
}

TEST(ExperimentTest, OverridingTheCodecDropsTheFilesParameters) {
  const DirectionConfig none = ActivationsWith({"compression.activations.codec=none"});
  EXPECT_EQ(none.codec(), "none");
  EXPECT_FALSE(none.has_ratio());
  const DirectionConfig uniform =
      ActivationsWith({"compression.activations.codec=uniform", "compression.activations.bits=4"});
  EXPECT_EQ(uniform.bits(), 4u);
  EXPECT_EQ(uniform.scope(), "tensor");
  EXPECT_EQ(ActivationsWith({"compression.activations={codec: uniform, bits: 3}"}).bits(), 3u);
}

TEST(ExperimentTest, OverridingTheCodecOfADirectionWithoutOneWorks) {
  const auto e = With({"compression.gradients.codec=topk", "compression.gradients.ratio=0.1"});
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->compression().gradients().ratio(), 0.1);
}

TEST(ExperimentTest, TheOrderOfCodecAndParameterDoesNotMatter) {
  EXPECT_EQ(
      ActivationsWith({"compression.activations.bits=4", "compression.activations.codec=uniform"})
          .bits(),
      4u);
}

TEST(ExperimentTest, AnOverriddenParameterKeepsTheOthers) {
  const DirectionConfig activations = ActivationsWith({"compression.activations.ratio=0.5"});
  EXPECT_EQ(activations.ratio(), 0.5);
  EXPECT_EQ(activations.values(), "fp16");
  const DirectionConfig by_count = ActivationsWith({"compression.activations.k=5"});
  EXPECT_EQ(by_count.k(), 5u);
  EXPECT_FALSE(by_count.has_ratio());
}

TEST(ExperimentTest, AParameterOfAnotherCodecIsAnErrorInAnOverrideToo) {
  EXPECT_THAT(std::string(With({"compression.activations.bits=4"}).status().message()),
              HasSubstr("compression.activations.bits: belongs to values uniform"));
}

TEST(ExperimentTest, OverridingAnotherChoiceDropsItsFields) {
  EXPECT_FALSE(With({"lr_schedule.name=constant"})->lr_schedule().has_t_max());
  EXPECT_EQ(With({"lr_schedule.name=linear"})->lr_schedule().t_max(), 3u);
}

TEST(ExperimentTest, OverridingTheCodecOfOneCutWorksOnAResolvedFile) {
  const auto e = With({"compression.boundaries.layer1.activations.ratio=0.2"});
  ASSERT_TRUE(e.ok()) << e.status();
  const auto again =
      ParseExperiment(ToYaml(*e), "resolved.yaml",
                      {"compression.boundaries.layer1.activations={codec: uniform, bits: 2}"});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->compression().boundaries().at("layer1").activations().bits(), 2u);
}

TEST(ExperimentTest, OverridingTheKindOfABottleneckDropsItsWidth) {
  const Experiment narrow =
      *With({"compression.bottleneck={kind: layer_norm, width: 4}",
             "compression.boundaries.layer1.bottleneck.width=8", "evaluation.uncompressed=false"});
  const auto compression = [&](const std::vector<std::string>& overrides) {
    const auto e = ParseExperiment(ToYaml(narrow), "resolved.yaml", overrides);
    EXPECT_TRUE(e.ok()) << e.status();
    return e.ok() ? e->compression() : CompressionConfig();
  };
  EXPECT_EQ(compression({"compression.bottleneck.width=5"}).bottleneck().kind(), "layer_norm");
  EXPECT_FALSE(compression({"compression.bottleneck.kind=none"}).bottleneck().has_width());
  const CompressionConfig maxout =
      compression({"compression.bottleneck.group=2", "compression.bottleneck.kind=maxout"});
  EXPECT_EQ(maxout.bottleneck().group(), 2u);
  EXPECT_EQ(maxout.boundaries().at("layer1").bottleneck().width(), 8u);
}

TEST(ExperimentTest, TheLastOverrideOfAFieldWins) {
  EXPECT_EQ(With({"epochs=5", "epochs=6"})->epochs(), 6u);
}

TEST(ExperimentTest, ErrorsNameTheFileOrTheOverride) {
  EXPECT_THAT(std::string(With({"epochs=x"}).status().message()), HasSubstr("--set epochs=x: "));
  EXPECT_EQ(With({"epochs=0"}).status().message(),
            "dir/my-run.v2.yaml: epochs: 0, want at least 1");
  EXPECT_EQ(LoadExperiment("/nonexistent/e.yaml", {}).status().code(), absl::StatusCode::kNotFound);
}

std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  }
  return files;
}

// The seeds of the fuzz test, among them the examples of docs/experiment_file.md.
TEST(CorpusTest, EveryFileLoads) {
  EXPECT_THAT(FilesIn("config/corpus"), SizeIs(5));
  for (const std::string& file : FilesIn("config/corpus")) {
    EXPECT_TRUE(LoadExperiment(file, {}).ok()) << LoadExperiment(file, {}).status();
  }
}

TEST(ToYamlTest, LoadsAgainToAnEqualMessage) {
  for (const std::vector<std::string>& overrides : std::vector<std::vector<std::string>>{
           {},
           {"pipeline.cuts=[]"},
           {"pipeline.cuts=auto", "pipeline.stages=2"},
           {"compression.boundaries.layer1.gradients={codec: uniform, bits: 3}", "seeds.init=0"},
           {"compression.boundaries.layer2.activations.k=9"},
           {"lr_schedule={name: step, step_size: 2, gamma: 1.0e-05}", "data.name=cifar10"}}) {
    const auto e = With(overrides);
    ASSERT_TRUE(e.ok()) << e.status();
    const auto again = ParseExperiment(ToYaml(*e), "experiment.yaml", {});
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(MessageDifferencer::Equals(*e, *again)) << ToYaml(*e);
  }
}

TEST(ShippedExperimentsTest, EveryFileLoadsWithAndWithoutCompression) {
  EXPECT_THAT(FilesIn("experiments"), Contains(EndsWith("quickstart.yaml")));
  EXPECT_THAT(FilesIn("experiments"), Contains(EndsWith("paper1/full/experiment.yaml")));
  for (const std::string& file : FilesIn("experiments")) {
    SCOPED_TRACE(file);
    EXPECT_TRUE(LoadExperiment(file, {}).ok()) << LoadExperiment(file, {}).status();
    for (const std::string codec :
         {"{codec: none}", "{codec: topk, ratio: 0.05}", "{codec: uniform, bits: 4}"}) {
      EXPECT_TRUE(LoadExperiment(
                      file, {"compression.activations=" + codec, "compression.gradients=" + codec})
                      .ok());
    }
  }
}

TEST(ShippedExperimentsTest, QuickstartIsFourStagesWithTopKBothWays) {
  const auto e = LoadExperiment("experiments/quickstart.yaml", {});
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->pipeline().stages(), 4u);
  EXPECT_THAT(e->pipeline().cuts(), SizeIs(3));
  EXPECT_EQ(e->compression().activations().ratio(), 0.1);
  EXPECT_EQ(e->compression().gradients().ratio(), 0.1);
}

}  // namespace
}  // namespace thinwire
