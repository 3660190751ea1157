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
using ::testing::StartsWith;

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

TEST(ExperimentTest, NorWhereTheCodecStandsInAMap) {
  constexpr char kUniform[] = "compression.activations={codec: uniform, bits: 4}";
  const std::string file = ToYaml(*With({kUniform}));
  const std::string ratio = "compression.activations.ratio=0.2";
  for (const std::string codec :
       {"compression.activations={codec: topk}", "compression={activations: {codec: topk}}"}) {
    for (const auto& overrides : {std::vector{ratio, codec}, std::vector{codec, ratio}}) {
      const auto e = ParseExperiment(file, "uniform.yaml", overrides);
      ASSERT_TRUE(e.ok()) << e.status();
      EXPECT_EQ(e->compression().activations().codec(), "topk");
      EXPECT_EQ(e->compression().activations().ratio(), 0.2);
      EXPECT_FALSE(e->compression().activations().has_bits());
    }
  }
  const std::string decay = "compression.gradients.feedback.decay=0.5";
  const auto e = ParseExperiment(file, "uniform.yaml",
                                 {decay, "compression.gradients.feedback={kind: ef}",
                                  "compression.gradients={codec: topk, ratio: 0.1}"});
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->compression().gradients().feedback().decay(), 0.5);
}

TEST(ExperimentTest, AMapAndItsFieldsOverrideInTheirOrder) {
  const std::string map = "compression.activations={codec: topk, ratio: 0.2}";
  const std::string ratio = "compression.activations.ratio=0.3";
  EXPECT_EQ(ActivationsWith({map, ratio}).ratio(), 0.3);
  EXPECT_EQ(ActivationsWith({ratio, map}).ratio(), 0.2);
  const DirectionConfig uniform = ActivationsWith({map, "compression.activations.codec=uniform"});
  EXPECT_EQ(uniform.codec(), "uniform");
  EXPECT_FALSE(uniform.has_ratio());
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
              HasSubstr("compression.activations.bits: 4, want values uniform or means with it"));
}

TEST(ExperimentTest, AnOverrideThatSilencesAFieldOfTheFileDropsIt) {
  const auto compression = [](const std::string& file, const std::vector<std::string>& overrides) {
    auto e = With({file});
    EXPECT_TRUE(e.ok()) << e.status();
    const auto again = ParseExperiment(ToYaml(*e), "resolved.yaml", overrides);
    EXPECT_TRUE(again.ok()) << again.status();
    return again.ok() ? again->compression() : CompressionConfig();
  };
  EXPECT_FALSE(compression("compression.gradients={codec: topk, ratio: 0.3}",
                           {"compression.gradients.indices=shared"})
                   .gradients()
                   .has_ratio());
  EXPECT_FALSE(compression("compression.gradients={codec: uniform, scope: group, group: 64}",
                           {"compression.gradients.scope=channel"})
                   .gradients()
                   .has_group());
  EXPECT_FALSE(compression("compression.gradients={codec: uniform, rotation: hadamard}",
                           {"compression.gradients.rotation=none"})
                   .gradients()
                   .has_rotation_block());
  EXPECT_EQ(compression("compression.gradients={codec: uniform, zero: on_grid}",
                        {"compression.gradients.range=max_abs"})
                .gradients()
                .zero(),
            "free");
  EXPECT_FALSE(compression("compression.gradients={codec: topk, ratio: 0.3, values: uniform}",
                           {"compression.gradients.values=fp16"})
                   .gradients()
                   .has_bits());
  EXPECT_FALSE(compression("compression.boundaries.layer1.gradients={codec: topk, ratio: 0.3}",
                           {"compression.boundaries.layer1.gradients.indices=shared"})
                   .boundaries()
                   .at("layer1")
                   .gradients()
                   .has_ratio());
}

TEST(ExperimentTest, AnOverrideThatSilencesTheGeneralFieldDropsACutsOwn) {
  constexpr char kOwnRatio[] = R"(
model: {name: resnet8}
data: {name: digits}
pipeline: {cuts: [layer1, layer2]}
compression:
  activations: {codec: topk, ratio: 0.1}
  gradients: {codec: topk, ratio: 0.1}
  boundaries: {layer1: {gradients: {ratio: 0.2}}}
optimizer: {lr: 0.1}
epochs: 1
)";
  const auto e = ParseExperiment(kOwnRatio, "f.yaml", {"compression.gradients.indices=shared"});
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_FALSE(e->compression().boundaries().at("layer1").gradients().has_ratio());
}

TEST(ExperimentTest, AFieldThatOneOverrideSetsAndAnotherSilencesIsAnError) {
  const std::string group = "compression.gradients.group=64";
  const std::string scope = "compression.gradients.scope=tensor";
  for (const std::vector<std::string>& order :
       {std::vector<std::string>{group, scope}, std::vector<std::string>{scope, group}}) {
    std::vector<std::string> overrides = {"compression.gradients.codec=uniform"};
    overrides.insert(overrides.end(), order.begin(), order.end());
    EXPECT_THAT(std::string(With(overrides).status().message()),
                HasSubstr("compression.gradients.group: 64, want scope group with it"));
  }
}

TEST(ExperimentTest, OverridingAnotherChoiceDropsItsFields) {
  EXPECT_FALSE(With({"lr_schedule.name=constant"})->lr_schedule().has_t_max());
  EXPECT_EQ(With({"lr_schedule.name=linear"})->lr_schedule().t_max(), 3u);
  EXPECT_EQ(With({"lr_schedule.name=linear"})->lr_schedule().by(), "step");
  EXPECT_FALSE(With({"optimizer.name=adamw"})->optimizer().has_momentum());
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
             "compression.boundaries.layer1.bottleneck={kind: layer_norm, width: 8}",
             "evaluation.uncompressed=false"});
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

TEST(ExperimentTest, MoreSamplesThanTheDataHaveAreRefused) {
  EXPECT_TRUE(With({"data.limit=3823", "data.test_limit=1797"}).ok());
  EXPECT_THAT(std::string(With({"data.limit=5000"}).status().message()),
              HasSubstr("data.limit: 5000, want at most 3823"));
  EXPECT_THAT(std::string(With({"data.test_limit=1798"}).status().message()),
              HasSubstr("data.test_limit: 1798, want at most 1797"));
  EXPECT_THAT(std::string(With({"data={name: cifar10, limit: 50001}"}).status().message()),
              HasSubstr("data.limit: 50001, want at most 50000"));
}

TEST(ExperimentTest, ErrorsNameTheFileOrTheOverride) {
  EXPECT_THAT(std::string(With({"epochs=x"}).status().message()), HasSubstr("--set epochs=x: "));
  EXPECT_EQ(With({"epochs=0"}).status().message(), "--set epochs=0: epochs: 0, want at least 1");
  EXPECT_EQ(LoadExperiment("/nonexistent/e.yaml", {}).status().code(), absl::StatusCode::kNotFound);
}

std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  }
  return files;
}

// Loads the seeds of the fuzz test, which include the examples of docs/experiment_file.md.
TEST(CorpusTest, EveryFileLoads) {
  EXPECT_THAT(FilesIn("config/corpus"), SizeIs(7));
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
           {"compression.gradients={codec: topk, ratio: 0.2}",
            "compression.boundaries.layer2.gradients.indices=shared"},
           {"compression.gradients={codec: uniform, range: max_abs, scope: group, group: 64}",
            "compression.boundaries.layer2.gradients.scope=tensor"},
           {"compression.gradients={codec: randomk, ratio: 0.2, values: uniform, range: max_abs}",
            "compression.boundaries.layer2.gradients.values=fp16"},
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
  EXPECT_THAT(FilesIn("experiments"), Contains(EndsWith("aq_sgd/gpt2-xl-wikitext2.yaml")));
  for (const std::string& file : FilesIn("experiments")) {
    SCOPED_TRACE(file);
    EXPECT_TRUE(LoadExperiment(file, {}).ok()) << LoadExperiment(file, {}).status();
    for (const std::string codec :
         {"{codec: none, feedback: none}", "{codec: topk, ratio: 0.05, feedback: none}",
          "{codec: uniform, bits: 4, feedback: none}"}) {
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

// Returns the error for an experiment whose line 8 is `line`.
std::string RefusalOf(const std::string& line, const std::vector<std::string>& overrides = {}) {
  const std::string text =
      "epochs: 3\nmodel: {name: resnet8}\ndata: {name: digits}\npipeline: {cuts: [layer1]}\n"
      "lr_schedule: {name: cosine}\n\n\n" +
      line + "\n";
  return std::string(ParseExperiment(text, "my.yaml", overrides).status().message());
}

TEST(RefusalTest, NamesFileLineAndField) {
  const struct {
    const char *line, *refusal;
  } kCases[] = {
      {"optimizer: {lr: -1}", "my.yaml:8: optimizer.lr: -1, want"},
      {"optimizer: {name: sgdd, lr: 1}", "my.yaml:8: optimizer.name: unknown"},
      {"optimizer: {momentum: 0.9}", "my.yaml:8: optimizer.lr: is required"},
      {"compression: {activations: {codec: topk, ratio: 1.5}}\noptimizer: {lr: 1}",
       "my.yaml:8: compression.activations: topk: ratio is 1.5, want"},
      {"compression:\n  gradients: {codec: uniform,\n    bits: 9}\noptimizer: {lr: 1}",
       "my.yaml:10: compression.gradients: uniform: bits is 9, want"},
      {"compression:\n  boundaries:\n    layer1:\n      gradients: {codec: low_rank, rank: 999}\n"
       "optimizer: {lr: 1}",
       "my.yaml:11: compression.boundaries.layer1.gradients: low_rank: rank 999 of"},
      {"optimizer: {lr: 1}\ncapture: {steps: [0]}", "my.yaml:9: capture.steps: 0"},
  };
  for (const auto& one : kCases) EXPECT_THAT(RefusalOf(one.line), StartsWith(one.refusal));
}

TEST(RefusalTest, NamesTheLineOfALayer) {
  const absl::Status status =
      ParseExperiment(
          "epochs: 1\ndata: {name: digits}\noptimizer: {lr: 1}\nmodel:\n  name: custom\n  blocks:\n"
          "    - {name: a, layers: [{kind: relu}]}\n    - name: b\n      layers:\n"
          "        - {kind: relu}\n        - {kind: rellu}\n",
          "my.yaml", {})
          .status();
  EXPECT_THAT(std::string(status.message()),
              StartsWith("my.yaml:11: model.blocks[1].layers[1].kind: unknown kind \"rellu\""));
}

TEST(RefusalTest, NamesTheOverrideThatGaveTheField) {
  EXPECT_THAT(RefusalOf("optimizer: {lr: 1}", {"optimizer.lr=-1"}),
              StartsWith("--set optimizer.lr=-1: optimizer.lr: -1, want"));
  // The file gave the section, whatever is merged over it.
  EXPECT_THAT(RefusalOf("optimizer: {}", {"optimizer.momentum=0.5"}),
              StartsWith("my.yaml:8: optimizer.lr: is required"));
}

TEST(RefusalTest, AnOverrideThatSaysNothingIsRefused) {
  EXPECT_THAT(RefusalOf("optimizer: {lr: 1}", {"model="}),
              StartsWith("--set model=: model: met nothing, want a map of name"));
  EXPECT_THAT(RefusalOf("optimizer: {lr: 1}", {"compression.boundaries="}),
              StartsWith("--set compression.boundaries=: compression.boundaries: met nothing"));
}

}  // namespace
}  // namespace thinwire
