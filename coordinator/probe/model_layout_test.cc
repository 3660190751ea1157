#include "coordinator/probe/model_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/experiment.h"

namespace thinwire {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
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

TEST(ModelLayoutTest, SegmentsStandBetweenCutsAndStagesHoldSegments) {
  const ModelLayout layout = Layout({});
  EXPECT_THAT(layout.segments, ElementsAre("stem", "layer1.0 to layer2.0", "layer3.0 to head"));
  ASSERT_THAT(layout.at_stage, SizeIs(2));
  EXPECT_THAT(layout.at_stage[0], Contains("conv1.weight"));
  EXPECT_THAT(layout.at_stage[1], Not(Contains("conv1.weight")));
  EXPECT_EQ(layout.ranges.at("conv1.weight").segment, 0u);
  EXPECT_EQ(layout.ranges.count("bn1.running_mean"), 0u);
  EXPECT_THAT(layout.at_stage[0], Contains("bn1.running_mean"));
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

TEST(ModelLayoutTest, AModelOfOneStageHasItAll) {
  const ModelLayout one = Layout({"pipeline.stages=1"}), two = Layout({});
  ASSERT_THAT(one.at_stage, SizeIs(1));
  EXPECT_EQ(one.at_stage[0].size(), two.at_stage[0].size() + two.at_stage[1].size());
}

TEST(ModelLayoutTest, ATiedWeightIsTrainedOnceAndStandsWhereItsCopiesAre) {
  const std::vector<std::string> gpt2 = {"model={name: gpt2, layers: 2, heads: 2, width: 16}",
                                         "data={name: shakespeare, context: 16}",
                                         "pipeline.cuts=[h.0, h.1]", "pipeline.stages=3"};
  const ModelLayout layout = Layout(gpt2);
  EXPECT_EQ(layout.ranges.at("transformer.wte.weight").segment, 0u);
  EXPECT_EQ(layout.ranges.count("lm_head.weight"), 0u);
  for (size_t stage : {size_t{0}, size_t{2}}) {
    EXPECT_THAT(layout.at_stage[stage], Contains("transformer.wte.weight"));
  }
  StoredTensor weight;
  weight.name = "transformer.wte.weight";
  const auto shares = SharesOf(layout, {weight});
  ASSERT_TRUE(shares.ok()) << shares.status();
  EXPECT_THAT((*shares)[0].tensors, SizeIs(1));
  EXPECT_THAT((*shares)[1].tensors, SizeIs(0));
  EXPECT_THAT((*shares)[2].tensors, SizeIs(1));
}

TEST(SharesOfTest, EachStageGetsItsOwnAndAStrangerIsNamed) {
  const ModelLayout layout = Layout({});
  const std::string first = layout.at_stage[0][0], second = layout.at_stage[1][0];
  const auto shares = SharesOf(layout, {{second, "F32", {}, "abcd"}, {first, "F32", {}, "efgh"}});
  ASSERT_TRUE(shares.ok()) << shares.status();
  EXPECT_EQ((*shares)[0].tensors[0].data, "efgh");
  EXPECT_EQ((*shares)[1].tensors[0].data, "abcd");
  EXPECT_THAT(std::string(SharesOf(layout, {{"fc9.bias", "F32", {}, "abcd"}}).status().message()),
              HasSubstr("fc9.bias is no parameter"));
}

}  // namespace
}  // namespace thinwire
