#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/resolve.h"
#include "config/resolve_testing.h"
#include "config/specs.h"
#include "google/protobuf/util/message_differencer.h"
#include "models/frozen.h"

namespace thinwire {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::testing::HasSubstr;

std::string GradientCodecAt(const Experiment& e, const std::string& cut) {
  return DirectionOf(e, cut, /*gradient=*/true).codec();
}

TEST(FreezeTest, TakesAStringOrAList) {
  EXPECT_EQ(FirstTrainedBlock(PartitionFrom(With({"freeze=stem"}))->model), 1);
  EXPECT_EQ(FirstTrainedBlock(PartitionFrom(With({"freeze=[stem, layer1]"}))->model), 2);
  EXPECT_EQ(FirstTrainedBlock(PartitionFrom(With({}))->model), 0);
}

TEST(FreezeTest, RefusesUnknownBlocksAndAll) {
  EXPECT_THAT(ErrorWith({"freeze=layer4"}), HasSubstr("freeze: model resnet8 has no block "
                                                      "'layer4': did you mean layer"));
  EXPECT_THAT(ErrorWith({"freeze=[stem, layer1, layer2, layer3, head]"}),
              HasSubstr("leave nothing to train"));
}

TEST(FreezeTest, ACutBehindNothingTrainedHasNoCodecOfGradients) {
  const std::vector<std::string> overrides = {
      "freeze=[stem, layer1]", "pipeline.cuts=[stem, layer1, layer2]",
      "compression.gradients={codec: uniform, bits: 4, feedback: ef, epilogue_only: true}"};
  const Experiment e = With(overrides);
  EXPECT_EQ(GradientCodecAt(e, "stem"), "none");
  EXPECT_EQ(GradientCodecAt(e, "layer1"), "none");
  EXPECT_EQ(GradientCodecAt(e, "layer2"), "uniform");
  Experiment again = e;
  ASSERT_TRUE(Resolve(&again).ok());
  EXPECT_TRUE(MessageDifferencer::Equals(e, again));
}

TEST(FreezeTest, RefusesACodecOfGradientsThatDoNotCross) {
  EXPECT_THAT(ErrorWith({"freeze=stem", "pipeline.cuts=[stem, layer1]",
                         "compression.boundaries.stem.gradients={codec: fp16}"}),
              HasSubstr("compression.boundaries.stem.gradients.codec: fp16, want none: nothing "
                        "before it is trained"));
  EXPECT_THAT(ErrorWith({"freeze=[stem, layer1]", "pipeline.cuts=[stem, layer1]",
                         "compression.gradients={codec: fp16}"}),
              HasSubstr("compression.gradients.codec: fp16, want none"));
}

TEST(FreezeTest, ABottleneckBeforeTheCutIsTrainedSoItsGradientsCross) {
  const Experiment e = With({"freeze=[stem, layer1]", "pipeline.cuts=[stem, layer1]",
                             "compression.boundaries.layer1.bottleneck={kind: linear, width: 4}",
                             "compression.gradients={codec: fp16}"});
  EXPECT_EQ(GradientCodecAt(e, "stem"), "none");
  EXPECT_EQ(GradientCodecAt(e, "layer1"), "fp16");
}

TEST(FreezeTest, RefusesLearnedSubspacesThroughFrozenWeights) {
  constexpr char kText[] = R"(
model: {name: gpt2, layers: 2, heads: 2, width: 16, tied: false}
data: {name: shakespeare, context: 16, batch_size: 6}
pipeline: {cuts: [h.0]}
optimizer: {name: adamw, lr: 0.01}
epochs: 1
)";
  EXPECT_THAT(ErrorWith({"freeze=h.0", "compression.bottleneck={kind: subspace, width: 4}"}, kText),
              HasSubstr("which freeze or lora freezes"));
}

}  // namespace
}  // namespace thinwire
