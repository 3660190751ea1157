#include "models/cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/zoo.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;

Model ResNet18() {
  ModelOptions options;
  options.name = "resnet18";
  options.input = {1, 32, 32, 3};
  return *NamedModel(options);
}

std::vector<Cut> Cuts(const Model& model, const std::vector<std::string>& names) {
  return *NamedCuts(model, names);
}

TEST(SegmentCostsTest, SegmentsTogetherCostTheModel) {
  const Model model = ResNet18();
  const SegmentCost whole = SegmentCosts(model, {}).front();
  EXPECT_EQ(whole.parameters, 11173962);
  SegmentCost sum;
  for (const SegmentCost& cost : SegmentCosts(model, Cuts(model, {"layer1", "layer3"}))) {
    sum.parameters += cost.parameters;
    sum.forward_flops += cost.forward_flops;
  }
  EXPECT_EQ(sum.parameters, whole.parameters);
  EXPECT_EQ(sum.forward_flops, whole.forward_flops);
}

TEST(SegmentCostsTest, BoundariesAreThePublishedSizesAndTheEndSendsNothing) {
  const Model model = ResNet18();
  std::vector<int64_t> elements;
  for (const SegmentCost& cost : SegmentCosts(model, Cuts(model, {"layer1", "layer2", "layer3"}))) {
    elements.push_back(cost.boundary_elements);
  }
  EXPECT_THAT(elements, ElementsAre(65536, 32768, 16384, 0));
}

TEST(SegmentCostsTest, AResidualBlockKeepsItsInputAndFourTensors) {
  const Model model = ResNet18();
  const std::vector<SegmentCost> costs =
      SegmentCosts(model, Cuts(model, {"stem", "layer1.0", "layer1.1", "layer2.0"}));
  constexpr int64_t kWide = 32 * 32 * 64, kNext = 16 * 16 * 128;
  // The image, the convolution's output, the ReLU's output.
  EXPECT_EQ(costs[0].kept_elements, 32 * 32 * 3 + 2 * kWide);
  // The input, conv1, relu, conv2, relu.
  EXPECT_EQ(costs[1].kept_elements, 5 * kWide);
  // And the projection's convolution.
  EXPECT_EQ(costs[3].kept_elements, kWide + 5 * kNext);
}

TEST(SegmentCostsTest, ATensorBetweenTwoBlocksIsKeptOnce) {
  const Model model = ResNet18();
  const std::vector<SegmentCost> costs = SegmentCosts(model, Cuts(model, {"stem", "layer1"}));
  EXPECT_EQ(costs[1].kept_elements, (5 + 4) * 32 * 32 * 64);
}

TEST(TrainingBytesTest, CountsParametersGradientsOptimizerAndActivationsInFlight) {
  SegmentCost cost;
  cost.parameters = 10;
  cost.kept_elements = 7;
  TrainingMemory memory;
  memory.samples_in_flight = 100;
  memory.element_bytes = 2;
  memory.optimizer_buffers = 2;
  EXPECT_EQ(TrainingBytes(cost, memory), 10 * 4 * (1 + 1 + 2) + 100 * 7 * 2);
}

}  // namespace
}  // namespace thinwire
