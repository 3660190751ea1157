#include "models/cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/zoo.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;

Model ResNet18() {
  ModelOptions options = *OptionsOf("resnet18");
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
  // The rest is the projection's convolution.
  EXPECT_EQ(costs[3].kept_elements, kWide + 5 * kNext);
}

TEST(SegmentCostsTest, ATensorBetweenTwoBlocksIsKeptOnce) {
  const Model model = ResNet18();
  const std::vector<SegmentCost> costs = SegmentCosts(model, Cuts(model, {"stem", "layer1"}));
  EXPECT_EQ(costs[1].kept_elements, (5 + 4) * 32 * 32 * 64);
}

Model Gpt2(int64_t positions) {
  ModelOptions options = *OptionsOf("gpt2");
  options.input = {1, positions};
  options.classes = 50257;
  return *NamedModel(options);
}

TEST(SegmentCostsTest, AGpt2BlockKeepsSixteenTensorsAndTheNormalisers) {
  constexpr int64_t kPositions = 64, kTensor = kPositions * 768;
  const std::vector<SegmentCost> costs =
      SegmentCosts(Gpt2(kPositions), Cuts(Gpt2(kPositions), {"embedding", "h.0", "h.11"}));
  EXPECT_EQ(costs[0].kept_elements, kPositions);  // the ids
  // Two inputs of norms, their outputs, queries, keys, values, the attention's result, and the
  // GELU's input and output, four times as wide.
  EXPECT_EQ(costs[1].kept_elements, 16 * kTensor + 12 * kPositions);
  EXPECT_EQ(costs[3].kept_elements, 2 * kTensor);
}

TEST(SegmentCostsTest, NormsOfHeadsKeepTheirInputAndAStatisticEach) {
  ModelOptions options = *OptionsOf("llama");
  options.input = {1, 8};
  options.classes = 20;
  options.layers = 1;
  options.heads = 4;
  options.width = 16;
  options.head_size = 6;
  const int64_t plain = SegmentCosts(*NamedModel(options), {})[0].kept_elements;
  options.name = "qwen3";
  options.head_norms = true;
  const int64_t normed = SegmentCosts(*NamedModel(options), {})[0].kept_elements;
  EXPECT_EQ(normed - plain, 8 * 12 * 6 + 8 * 12);
}

TEST(SegmentCostsTest, WeightPartsWaitWithInputAndGradientOfEachProduct) {
  constexpr int64_t kPositions = 64, kTensor = kPositions * 768;
  const Model model = Gpt2(kPositions);
  const std::vector<SegmentCost> costs =
      SegmentCosts(model, Cuts(model, {"embedding", "h.0", "h.11"}));
  EXPECT_EQ(costs[0].waiting_elements, 0);  // a table's gradient does not wait
  // Inputs and outputs of the linear layers: queries, keys and values from one tensor; the
  // projection; four times as wide and back.
  EXPECT_EQ(costs[1].waiting_elements, (1 + 3 + 1 + 1 + 1 + 4 + 4 + 1) * kTensor);
  EXPECT_EQ(costs[3].waiting_elements, kTensor + kPositions * 50257);
  // All FLOPs but the attention's.
  const BlockSpec& block = model.blocks[1];
  EXPECT_EQ(WeightFlops(block), 2.0 * kTensor * 768 * (3 + 1 + 4 + 4));
  EXPECT_EQ(WeightFlops(block) + AttentionFlops(block), ForwardFlops(block));
  EXPECT_EQ(costs[1].attention_flops, AttentionFlops(block));
}

TEST(SegmentCostsTest, ATiedHeadTakesMemoryButIsNoParameter) {
  const Model model = Gpt2(64);
  const std::vector<SegmentCost> costs = SegmentCosts(model, Cuts(model, {"h"}));
  EXPECT_EQ(costs[1].parameters, 2 * 768);
  EXPECT_EQ(costs[1].copied_parameters, 50257 * 768);
  EXPECT_EQ(costs[0].parameters + costs[1].parameters, TrainableParameters(model));
  TrainingMemory memory;
  memory.samples_in_flight = 0;
  memory.microbatch_samples = 0;
  EXPECT_EQ(TrainingBytes(costs[1], memory), 4 * 3 * (2 * 768 + 50257 * 768));
}

TEST(SegmentCostsTest, RunAgainABlockKeepsItsInputAndTheRestOnlyOnce) {
  constexpr int64_t kPositions = 64, kTensor = kPositions * 768;
  const Model model = Gpt2(kPositions);
  const SegmentCost kept = SegmentCosts(model, {}).front();
  const SegmentCost again =
      SegmentCosts(model, {}, AllKeeping(model, Only(Keeping::kRecompute))).front();
  EXPECT_EQ(again.kept_elements, kPositions + 12 * kTensor + 2 * kTensor);
  EXPECT_EQ(again.recomputed_elements, 15 * kTensor + 12 * kPositions);
  EXPECT_EQ(kept.recomputed_elements, 0);
  EXPECT_EQ(kept.recomputed_flops, 0);
  EXPECT_EQ(again.forward_flops, kept.forward_flops);
  EXPECT_EQ(again.recomputed_flops, kept.forward_flops - ForwardFlops(model.blocks.back()));
  EXPECT_FALSE(WorthRecomputing(model.blocks.front()));
  EXPECT_FALSE(WorthRecomputing(model.blocks.back()));
}

TEST(SegmentCostsTest, AStashLeavesNormalisersAndIdsAsTheyAre) {
  constexpr int64_t kPositions = 64, kTensor = kPositions * 768;
  const Model model = Gpt2(kPositions);
  const SegmentCost plain = SegmentCosts(model, {}).front();
  EXPECT_EQ(plain.exact_elements, plain.kept_elements);
  EXPECT_EQ(plain.block_elements, 0);
  const SegmentCost cost =
      SegmentCosts(model, {}, AllKeeping(model, Only(Keeping::kStash))).front();
  EXPECT_EQ(cost.kept_elements, plain.kept_elements);
  EXPECT_EQ(cost.exact_elements, kPositions + 12 * 12 * kPositions);
  EXPECT_EQ(cost.input_elements, kPositions);
  EXPECT_EQ(cost.block_elements, 16 * kTensor + 12 * kPositions);
}

TEST(SegmentCostsTest, EachBlockDoesAsItIsTold) {
  constexpr int64_t kPositions = 64, kTensor = kPositions * 768;
  const Model model = Gpt2(kPositions);
  const int64_t of_block = 16 * kTensor + 12 * kPositions;
  const SegmentCost plain = SegmentCosts(model, {}).front();
  std::vector<BlockKeeping> keeping = AllKeeping(model, {});
  keeping[1] = Only(Keeping::kRecompute);
  keeping[2] = Only(Keeping::kSwap);
  keeping[3] = Only(Keeping::kStash);
  const SegmentCost cost = SegmentCosts(model, {}, keeping).front();
  EXPECT_EQ(cost.swapped_elements, of_block);
  EXPECT_EQ(cost.kept_elements, plain.kept_elements - 2 * of_block + kTensor);
  EXPECT_EQ(cost.kept_elements - cost.exact_elements, 16 * kTensor);
  EXPECT_EQ(cost.block_elements, of_block);
  EXPECT_EQ(cost.recomputed_elements, of_block - kTensor);
  EXPECT_EQ(cost.recomputed_flops, ForwardFlops(model.blocks[1]));
}

TEST(SegmentCostsTest, PassesWorkWithTheGradientsOfTheWidestLayer) {
  constexpr int64_t kPositions = 64, kTensor = kPositions * 768;
  const Model model = Gpt2(kPositions);
  const SegmentCost cost = SegmentCosts(model, Cuts(model, {"h.0", "h.11"}))[1];
  EXPECT_EQ(cost.work_elements, (1 + 4 + 1) * kTensor);
  EXPECT_EQ(cost.convolution_elements, 0);
  EXPECT_EQ(cost.linear_elements, 11 * 12 * 768 * 768);
  EXPECT_EQ(cost.result_elements, 0);
  EXPECT_EQ(SegmentCosts(model, {})[0].result_elements, kPositions * 50257);
  const SegmentCost images = SegmentCosts(ResNet18(), {})[0];
  EXPECT_GT(images.convolution_elements, images.parameters * 9 / 10);
}

TEST(SegmentCostsTest, BlocksAddUpToSegments) {
  const Model model = ResNet18();
  const std::vector<Cut> cuts = Cuts(model, {"layer1", "layer3"});
  int64_t kept = 0, of_blocks = 0;
  for (const SegmentCost& cost : SegmentCosts(model, cuts)) kept += cost.kept_elements;
  for (const int64_t elements : KeptByBlock(model, cuts)) of_blocks += elements;
  EXPECT_EQ(of_blocks, kept);
}

TEST(TrainingBytesTest, AStashAndPayloadsTakeTheirBitsAndOneBlockIsAsItIs) {
  SegmentCost cost;
  cost.kept_elements = 1000;
  cost.exact_elements = 40;
  cost.input_elements = 100;
  cost.block_elements = 300;
  TrainingMemory memory;
  memory.samples_in_flight = 12;
  memory.microbatch_samples = 3;
  EXPECT_EQ(TrainingBytes(cost, memory), 12 * 1000 * 4);
  memory.stash_bits = 4;
  EXPECT_EQ(TrainingBytes(cost, memory), 12 * (960 / 2 + 40 * 4) + 3 * 300 * 4);
  memory.payload_bits = 8;
  EXPECT_EQ(TrainingBytes(cost, memory), 12 * (860 / 2 + 40 * 4 + 100) + 3 * 300 * 4);
  memory.stash_bits = std::nullopt;
  EXPECT_EQ(TrainingBytes(cost, memory), 12 * (900 * 4 + 100) + 3 * 100 * 4);
}

TEST(TrainingBytesTest, OfWhatIsSwappedFourBlocksAreThereAtMost) {
  SegmentCost cost;
  cost.swapped_elements = 1000;
  cost.block_elements = 300;
  TrainingMemory memory;
  memory.samples_in_flight = 12;
  memory.microbatch_samples = 3;
  EXPECT_EQ(TrainingBytes(cost, memory), 4 * 3 * 300 * 4);
  memory.samples_in_flight = 3;
  EXPECT_EQ(TrainingBytes(cost, memory), 3 * 1000 * 4);
}

TEST(TrainingBytesTest, CountsParametersGradientsOptimizerAndActivationsInFlight) {
  SegmentCost cost;
  cost.parameters = 10;
  cost.kept_elements = 7;
  TrainingMemory memory;
  memory.samples_in_flight = 100;
  memory.microbatch_samples = 10;
  memory.element_bytes = 2;
  memory.optimizer_buffers = memory.hidden_buffers = 2;
  EXPECT_EQ(TrainingBytes(cost, memory), 10 * 4 * (1 + 1 + 2) + 100 * 7 * 2);
  cost.recomputed_elements = 3;
  EXPECT_EQ(TrainingBytes(cost, memory), 10 * 4 * (1 + 1 + 2) + (100 * 7 + 10 * 3) * 2);
  cost.waiting_elements = 5;
  memory.samples_waiting = 40;
  EXPECT_EQ(TrainingBytes(cost, memory), 10 * 4 * (1 + 1 + 2) + (100 * 7 + 10 * 3 + 40 * 5) * 2);
}

}  // namespace
}  // namespace thinwire
