#include "config/codec_pair.h"

#include <string>

#include "config/experiment.h"
#include "config/resolve.h"
#include "config/specs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

CodecPair PairOf(const std::string& text) {
  const auto pair = ParseCodecPair(text, "");
  EXPECT_TRUE(pair.ok()) << pair.status();
  return pair.value_or(CodecPair());
}

std::string ErrorOf(const std::string& text) {
  return std::string(ParseCodecPair(text, "").status().message());
}

TEST(ParseCodecPairTest, OneIsForBothDirectionsAndTwoAreActivationsAndGradients) {
  const CodecPair one = PairOf("topk(ratio=0.1)");
  EXPECT_TRUE(one.is_one);
  EXPECT_EQ(one.activations, one.gradients);
  const CodecPair two = PairOf("uniform(bits=4)|uniform(bits=8)");
  EXPECT_FALSE(two.is_one);
  EXPECT_EQ(two.activations.bits, 4u);
  EXPECT_EQ(two.gradients.bits, 8u);
}

TEST(ParseCodecPairTest, ActivationsNeedNoSupport) {
  const CodecPair one = PairOf("uniform(bits=4, support=received_nonzero)");
  EXPECT_EQ(one.activations.support, Support::kAll);
  EXPECT_EQ(one.gradients.support, Support::kReceivedNonzero);
  EXPECT_THAT(ErrorOf("uniform(bits=4, support=received_nonzero) | none"),
              HasSubstr("for activations: nothing was received before them"));
}

TEST(ParseCodecPairTest, ErrorsNameWhatIsWrong) {
  EXPECT_THAT(ErrorOf("none | none | none"), HasSubstr("3 codecs, want one or a pair"));
  EXPECT_THAT(ErrorOf("topk(indices=shared)"), HasSubstr("wants the codec whose indices"));
  EXPECT_THAT(ErrorOf("unifrom(bits=4)"), HasSubstr("nearest is \"uniform\""));
}

constexpr char kExperiment[] = R"(
model: {name: resnet8}
data: {name: digits}
pipeline: {cuts: [layer1, layer2]}
compression:
  activations: {codec: topk, ratio: 0.1, feedback: ef21}
  warmup_steps: 9
  boundaries: {layer1: {gradients: {codec: uniform, bits: 2}}}
optimizer: {lr: 0.1}
epochs: 2
)";

TEST(SetCodecsTest, NoOtherCompressionIsLeft) {
  Experiment experiment = *ParseExperiment(kExperiment, "test", {});
  const CodecPair pair = PairOf("fp16 | uniform(bits=8)");
  ASSERT_TRUE(SetCodecs(pair.activations, pair.gradients, /*cut=*/"", &experiment).ok());
  ASSERT_TRUE(Resolve(&experiment).ok());
  EXPECT_EQ(experiment.compression().warmup_steps(), 0u);
  for (const char* cut : {"layer1", "layer2"}) {
    const auto activations = DirectionFrom(DirectionOf(experiment, cut, false), false);
    const auto gradients = DirectionFrom(DirectionOf(experiment, cut, true), true);
    ASSERT_TRUE(activations.ok() && gradients.ok());
    EXPECT_EQ(activations->codec, pair.activations);
    EXPECT_EQ(activations->feedback.kind, FeedbackKind::kNone);
    EXPECT_EQ(gradients->codec, pair.gradients);
  }
  ASSERT_TRUE(SetCodecs(std::nullopt, std::nullopt, /*cut=*/"", &experiment).ok());
  ASSERT_TRUE(Resolve(&experiment).ok());
  EXPECT_TRUE(CodecFrom(DirectionOf(experiment, "layer1", true))->is_exact());
}

TEST(SetCodecsTest, GradientsThatCrossNoCutGetNoCodec) {
  const CodecPair pair = PairOf("fp16 | uniform(bits=8)");
  for (const bool is_whole : {true, false}) {
    Experiment experiment = *ParseExperiment(
        R"(model: {name: resnet8}
data: {name: digits}
pipeline: {cuts: [layer1, layer2]}
optimizer: {lr: 0.1}
epochs: 2
)",
        "test", {is_whole ? "freeze=[stem, layer1, layer2]" : "freeze=[stem, layer1]"});
    EXPECT_EQ(MaySendGradients(experiment), !is_whole);
    ASSERT_TRUE(SetCodecs(pair.activations, pair.gradients, /*cut=*/"", &experiment).ok());
    const absl::Status resolved = Resolve(&experiment);
    ASSERT_TRUE(resolved.ok()) << resolved;
    EXPECT_EQ(*CodecFrom(DirectionOf(experiment, "layer2", false)), pair.activations);
    EXPECT_EQ(CodecFrom(DirectionOf(experiment, "layer2", true))->is_exact(), is_whole);
    EXPECT_TRUE(CodecFrom(DirectionOf(experiment, "layer1", true))->is_exact());
  }
}

TEST(SetCodecsTest, OtherCutsThanTheOneAreLeftUncompressed) {
  Experiment experiment = *ParseExperiment(kExperiment, "test", {});
  const CodecPair pair = PairOf("fp16 | uniform(bits=8)");
  ASSERT_TRUE(SetCodecs(pair.activations, std::nullopt, "layer2", &experiment).ok());
  ASSERT_TRUE(Resolve(&experiment).ok());
  EXPECT_EQ(*CodecFrom(DirectionOf(experiment, "layer2", false)), pair.activations);
  EXPECT_TRUE(CodecFrom(DirectionOf(experiment, "layer2", true))->is_exact());
  for (const bool gradients : {false, true}) {
    EXPECT_TRUE(CodecFrom(DirectionOf(experiment, "layer1", gradients))->is_exact());
  }
}

}  // namespace
}  // namespace thinwire
