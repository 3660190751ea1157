#include "coordinator/probe/configurations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "config/experiment.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<std::string> DirectionsOf(const std::string& text) {
  const auto all = ParseProbeCodec(text);
  EXPECT_TRUE(all.ok()) << all.status();
  std::vector<std::string> directions;
  for (const ProbeConfiguration& one : *all) directions.push_back(one.Directions());
  return directions;
}

std::string ErrorOf(const std::string& text) {
  const absl::Status status = ParseProbeCodec(text).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(ParseProbeCodecTest, ACodecIsTriedForwardBackwardAndBothWays) {
  EXPECT_THAT(DirectionsOf("uniform(bits=4)"), ElementsAre("forward", "backward", "both"));
  EXPECT_THAT(DirectionsOf("uniform(bits=4) | fp16"), ElementsAre("forward", "backward", "both"));
}

TEST(ParseProbeCodecTest, WhatNeedsAReceivedActivationIsForGradientsOnly) {
  const std::string codec = "topk(ratio=0.1, scope=sample, support=received_nonzero)";
  EXPECT_THAT(DirectionsOf(codec), ElementsAre("backward", "both"));
  const ProbeConfiguration both = ParseProbeCodec(codec)->back();
  EXPECT_EQ(both.activations->support, Support::kAll);
  EXPECT_EQ(both.gradients->support, Support::kReceivedNonzero);
  EXPECT_THAT(DirectionsOf("topk(ratio=0.1, scope=sample) | topk(indices=shared)"),
              ElementsAre("both"));
}

TEST(ParseProbeCodecTest, WhatCannotBeIsNamed) {
  EXPECT_THAT(ErrorOf("topk(indices=shared)"), HasSubstr("wants the codec whose indices"));
  EXPECT_THAT(ErrorOf("topk(indices=shared) | fp16"), HasSubstr("for activations"));
  EXPECT_THAT(ErrorOf("fp16 | fp16 | fp16"), HasSubstr("3 codecs"));
  EXPECT_THAT(ErrorOf("uniform(bits=9)"), HasSubstr("9"));
}

TEST(SentByTest, WhereNoGradientsCrossActivationsAreTriedAlone) {
  const auto tried = [](const std::string& freeze) {
    const auto experiment = ParseExperiment(R"(model: {name: resnet8}
data: {name: digits}
pipeline: {cuts: [layer1, layer2]}
optimizer: {lr: 0.1}
epochs: 2
)",
                                            "test", {"freeze=" + freeze});
    EXPECT_TRUE(experiment.ok()) << experiment.status();
    std::vector<ProbeConfiguration> all;
    for (const char* text : {"fp16", "topk(ratio=0.1, scope=sample) | topk(indices=shared)"}) {
      const auto some = ParseProbeCodec(text);
      EXPECT_TRUE(some.ok()) << some.status();
      all.insert(all.end(), some->begin(), some->end());
    }
    std::vector<std::string> directions;
    for (const ProbeConfiguration& one : SentBy(*experiment, all)) {
      EXPECT_TRUE(WithCodecs(*experiment, one).ok());
      directions.push_back(one.Directions());
    }
    return directions;
  };
  EXPECT_THAT(tried("[stem, layer1]"), ElementsAre("forward", "backward", "both", "both"));
  EXPECT_THAT(tried("[stem, layer1, layer2]"), ElementsAre("forward", "forward"));
}

TEST(ReadProbeCodecsTest, ReadsLinesAndNamesABadOne) {
  const std::string path = ::testing::TempDir() + "/levels.txt";
  std::ofstream(path) << "# levels\n\nfp16\nuniform(bits=2)  # coarse\n";
  const auto all = ReadProbeCodecs(path);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(*all, SizeIs(6));
  std::ofstream(path) << "fp16\nfp17\n";
  EXPECT_THAT(std::string(ReadProbeCodecs(path).status().message()), HasSubstr("levels.txt:2: "));
  std::ofstream(path) << "#\n";
  EXPECT_THAT(std::string(ReadProbeCodecs(path).status().message()), HasSubstr("no codec"));
  EXPECT_EQ(ReadProbeCodecs(path + "x").status().code(), absl::StatusCode::kNotFound);
}

constexpr char kExperiment[] = R"(
model: {name: resnet8}
data: {name: digits}
pipeline: {cuts: [layer1, layer2]}
compression:
  warmup_epochs: 1
  activations: {codec: topk, ratio: 0.1, feedback: ef}
  boundaries: {layer1: {gradients: {codec: fp16}}}
optimizer: {lr: 0.1}
epochs: 2
)";

TEST(WithCodecsTest, EveryStandardCodecStandsAloneAtEveryCut) {
  const Experiment experiment = *ParseExperiment(kExperiment, "test", {});
  for (const std::string& text : StandardProbeCodecs()) {
    const auto all = ParseProbeCodec(text);
    ASSERT_TRUE(all.ok()) << all.status();
    for (const ProbeConfiguration& one : *all) {
      const auto with = WithCodecs(experiment, one);
      ASSERT_TRUE(with.ok()) << text << ": " << with.status();
      const CompressionConfig& compression = with->compression();
      EXPECT_EQ(compression.warmup_epochs(), 0u);
      EXPECT_EQ(compression.activations().codec(),
                one.activations ? Name(one.activations->kind) : "none");
      EXPECT_EQ(compression.gradients().codec(),
                one.gradients ? Name(one.gradients->kind) : "none");
      EXPECT_EQ(compression.activations().feedback().kind(), "none");
      EXPECT_FALSE(compression.boundaries().at("layer1").has_gradients());
      EXPECT_EQ(with->metrics().error_every(), 1u);
    }
  }
}

}  // namespace
}  // namespace thinwire
