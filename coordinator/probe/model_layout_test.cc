#include "coordinator/probe/model_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/experiment.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr char kExperiment[] = R"(
model: {name: resnet8, width: 4}
data: {name: digits}
pipeline: {cuts: [stem, layer2], stages: 2}
optimizer: {lr: 0.1}
epochs: 1
)";

ModelLayout Layout(const std::vector<std::string>& overrides) {
  const auto layout = LayoutOf(*ParseExperiment(kExperiment, "test", overrides));
  EXPECT_TRUE(layout.ok()) << layout.status();
  return *layout;
}

TEST(ModelLayoutTest, SegmentsStandBetweenCuts) {
  const ModelLayout layout = Layout({});
  EXPECT_THAT(layout.segments, ElementsAre("stem", "layer1.0 to layer2.0", "layer3.0 to head"));
  EXPECT_EQ(layout.ranges.at("conv1.weight").segment, 0u);
  EXPECT_EQ(layout.ranges.count("bn1.running_mean"), 0u);
}

TEST(ModelLayoutTest, TrainedParametersStandOneAfterTheOtherInTheirSegment) {
  const ModelLayout layout = Layout({});
  const auto& weight = layout.ranges.at("conv1.weight");  // [4, 1, 3, 3]
  EXPECT_EQ(weight.first, 0u);
  EXPECT_EQ(weight.elements, 36u);
  EXPECT_EQ(layout.ranges.at("bn1.weight").first, 36u);
  EXPECT_EQ(layout.ranges.at("bn1.bias").first, 40u);
  ASSERT_THAT(layout.trained_elements, SizeIs(3));
  EXPECT_EQ(layout.trained_elements[0], 44u);
}

TEST(ModelLayoutTest, ATiedWeightIsTrainedOnce) {
  const ModelLayout layout = Layout({"model={name: gpt2, layers: 2, heads: 2, width: 16}",
                                     "data={name: shakespeare, context: 16}",
                                     "pipeline.cuts=[h.0, h.1]", "pipeline.stages=3"});
  EXPECT_EQ(layout.ranges.at("transformer.wte.weight").segment, 0u);
  EXPECT_EQ(layout.ranges.count("lm_head.weight"), 0u);
}

}  // namespace
}  // namespace thinwire
