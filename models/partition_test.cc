#include "models/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "models/zoo.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Model ResNet18() {
  ModelOptions options = *OptionsOf("resnet18");
  options.input = {1, 32, 32, 3};
  return *NamedModel(options);
}

// A chain of linear blocks b0, b1, ... between `widths`. Block i costs 6 w[i] w[i+1] FLOPs.
Model Chain(const std::vector<int64_t>& widths) {
  std::vector<BlockSpec> blocks;
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    LayerSpec layer;
    layer.kind = LayerKind::kLinear;
    layer.name = "fc" + std::to_string(i);
    layer.out_features = widths[i + 1];
    BlockSpec block;
    block.name = "b" + std::to_string(i);
    block.layers = {layer};
    blocks.push_back(block);
  }
  return *CustomModel("chain", blocks, {1, widths.front()}, widths.back());
}

std::vector<int> Blocks(const absl::StatusOr<std::vector<Cut>>& cuts) {
  EXPECT_TRUE(cuts.ok()) << cuts.status();
  std::vector<int> blocks;
  if (cuts.ok()) {
    for (const Cut& cut : *cuts) blocks.push_back(cut.block);
  }
  return blocks;
}

template <typename T>
std::string Refusal(const absl::StatusOr<T>& result) {
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << result.status();
  return std::string(result.status().message());
}

TEST(NamedCutsTest, AGroupNameCutsAfterItsLastBlockAndABlockNameAfterThatBlock) {
  const absl::StatusOr<std::vector<Cut>> cuts =
      NamedCuts(ResNet18(), {"stem", "layer1", "layer2.0", "layer4"});
  EXPECT_THAT(Blocks(cuts), ElementsAre(0, 2, 3, 8));
  EXPECT_EQ((*cuts)[1].name, "layer1");
}

TEST(NamedCutsTest, NoNamesAreTheUncutModel) {
  EXPECT_THAT(Blocks(NamedCuts(ResNet18(), {})), IsEmpty());
}

TEST(NamedCutsTest, UnknownNameIsRefusedWithTheNearestAndAllThereAre) {
  EXPECT_THAT(Refusal(NamedCuts(ResNet18(), {"layr3"})),
              AllOf(HasSubstr("'layr3'"), HasSubstr("did you mean layer3?"),
                    HasSubstr("stem, layer1, layer1.0, layer1.1, layer2")));
  EXPECT_THAT(Refusal(NamedCuts(ResNet18(), {"layer"})), HasSubstr("no cut 'layer'"));
}

TEST(NamedCutsTest, TheEndOfTheModelIsNoCut) {
  EXPECT_THAT(Refusal(NamedCuts(ResNet18(), {"head"})), HasSubstr("nothing follows it"));
}

TEST(NamedCutsTest, TwiceOrOutOfOrderIsRefused) {
  EXPECT_THAT(Refusal(NamedCuts(ResNet18(), {"layer1", "layer1.1"})),
              HasSubstr("cut 'layer1.1' is the same as 'layer1'"));
  EXPECT_THAT(Refusal(NamedCuts(ResNet18(), {"layer2", "layer1"})),
              HasSubstr("cut 'layer1' stands in the model before 'layer2'"));
}

TEST(BalancedCutsTest, SplitsTheWorkEvenly) {
  EXPECT_THAT(Blocks(BalancedCuts(Chain({8, 8, 8, 8, 8}), 1, 0)), ElementsAre(1));
  EXPECT_THAT(Blocks(BalancedCuts(Chain({8, 8, 8, 8, 8}), 3, 0)), ElementsAre(0, 1, 2));
}

TEST(BalancedCutsTest, TiesGoToTheEarlierCut) {
  // Either cut leaves two of the three equal blocks together, so the earlier is taken.
  EXPECT_THAT(Blocks(BalancedCuts(Chain({8, 8, 8, 8}), 1, 0)), ElementsAre(0));
}

TEST(BalancedCutsTest, DearBytesMoveACutToANarrowBoundary) {
  const Model model = Chain({64, 64, 64, 2, 64, 64});
  EXPECT_THAT(Blocks(BalancedCuts(model, 1, /*flops_per_byte=*/0)), ElementsAre(1));
  EXPECT_THAT(Blocks(BalancedCuts(model, 1, /*flops_per_byte=*/1000)), ElementsAre(2));
}

TEST(BalancedCutsTest, NamesCutAgainWhereTheyStand) {
  const Model model = ResNet18();
  const absl::StatusOr<std::vector<Cut>> cuts = BalancedCuts(model, 3, 10);
  ASSERT_TRUE(cuts.ok()) << cuts.status();
  std::vector<std::string> names;
  for (const Cut& cut : *cuts) names.push_back(cut.name);
  EXPECT_EQ(Blocks(NamedCuts(model, names)), Blocks(cuts));
}

TEST(BalancedCutsTest, NoTwoCutsAreBetterThanTheOnesFound) {
  const auto greatest = [](const Model& model, int a, int b, double flops_per_byte) {
    double stages[3] = {};
    for (int i = 0; i < static_cast<int>(model.blocks.size()); ++i) {
      stages[(i > a) + (i > b)] += 3 * ForwardFlops(model.blocks[i]);
    }
    const double first = 4 * flops_per_byte * model.blocks[a].out.elements();
    const double second = 4 * flops_per_byte * model.blocks[b].out.elements();
    return std::max({stages[0] + first, stages[1] + first + second, stages[2] + second});
  };
  for (uint64_t seed = 0; seed < 50; ++seed) {
    RandomStream random(RandomKey(seed, "chain"));
    std::vector<int64_t> widths;
    for (int i = 0; i < 9; ++i) widths.push_back(1 + random.Below(100));
    const Model model = Chain(widths);
    const double flops_per_byte = random.Below(50);
    const std::vector<int> found = Blocks(BalancedCuts(model, 2, flops_per_byte));
    ASSERT_EQ(found.size(), 2u);
    const double cost = greatest(model, found[0], found[1], flops_per_byte);
    for (int a = 0; a < 7; ++a) {
      for (int b = a + 1; b < 7; ++b) {
        EXPECT_LE(cost, greatest(model, a, b, flops_per_byte)) << seed << ": " << a << " " << b;
      }
    }
  }
}

TEST(BalancedCutsTest, TooFewBlocksAreRefused) {
  EXPECT_THAT(Blocks(BalancedCuts(Chain({8, 8, 8}), 0, 0)), IsEmpty());
  EXPECT_THAT(Refusal(BalancedCuts(Chain({8, 8, 8}), 2, 0)), HasSubstr("want 0 to 1"));
  EXPECT_THAT(Refusal(BalancedCuts(Chain({8, 8, 8}), -1, 0)), HasSubstr("-1 cuts"));
}

// Returns the first segment of each chunk.
std::vector<int> Starts(const Placement& placement) {
  std::vector<int> starts;
  for (const SegmentRange& chunk : placement.chunks) starts.push_back(chunk.first);
  return starts;
}

TEST(BalancedPlacementTest, OneStagePerSegmentOrOneForAll) {
  const Model model = ResNet18();
  const std::vector<Cut> cuts = *NamedCuts(model, {"layer1", "layer2", "layer3"});
  EXPECT_THAT(Starts(*BalancedPlacement(model, cuts, 4)), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Starts(*BalancedPlacement(model, cuts, 1)), ElementsAre(0));
}

TEST(BalancedPlacementTest, FewerStagesThanSegmentsShareTheWork) {
  // The last block costs as much as four of the others.
  const Model model = Chain({8, 8, 8, 8, 32});
  const std::vector<Cut> cuts = *NamedCuts(model, {"b0", "b1", "b2"});
  EXPECT_THAT(Starts(*BalancedPlacement(model, cuts, 2)), ElementsAre(0, 3));
}

TEST(BalancedPlacementTest, MoreStagesThanSegmentsAreRefused) {
  const Model model = ResNet18();
  EXPECT_THAT(Refusal(BalancedPlacement(model, *NamedCuts(model, {"layer1"}), 3)),
              HasSubstr("stages is 3, but 1 cuts make 2 segments"));
  EXPECT_THAT(Refusal(BalancedPlacement(model, {}, 0)), HasSubstr("stages is 0"));
}

TEST(InterleavedPlacementTest, StagesTakeTurnsOnTheSegments) {
  const Model model = Chain({8, 8, 8, 8, 8, 8, 8, 8});
  const std::vector<Cut> cuts = *NamedCuts(model, {"b0", "b1", "b2", "b3", "b4"});
  const Placement placement = *InterleavedPlacement(cuts, 2);
  EXPECT_EQ(placement.chunks_per_stage(), 3);
  std::vector<int> stages;
  for (int segment = 0; segment < 6; ++segment) {
    EXPECT_EQ(placement.ChunkOf(segment), segment);
    stages.push_back(placement.StageOf(segment));
  }
  EXPECT_THAT(stages, ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_EQ(placement.At(/*stage=*/1, /*chunk=*/2).first, 5);
  EXPECT_THAT(StageBlocks(model, cuts, placement, 0), ElementsAre(0, 2, 4));
  EXPECT_THAT(StageBlocks(model, cuts, placement, 1), ElementsAre(1, 3, 5, 6));
}

TEST(InterleavedPlacementTest, SegmentsThatAreNoMultipleOfTheStagesAreRefused) {
  const Model model = Chain({8, 8, 8, 8, 8, 8});
  const std::vector<Cut> cuts = *NamedCuts(model, {"b0", "b1", "b2", "b3"});
  EXPECT_THAT(Refusal(InterleavedPlacement(cuts, 2)),
              HasSubstr("stages is 2, but 4 cuts make 5 segments"));
  // One segment for each stage.
  EXPECT_THAT(Refusal(InterleavedPlacement(cuts, 5)), HasSubstr("want twice"));
  EXPECT_THAT(Refusal(InterleavedPlacement(cuts, 0)), HasSubstr("stages is 0"));
}

TEST(SegmentBlocksTest, SegmentsAreTheBlocksBetweenTheCuts) {
  const Model model = ResNet18();
  const std::vector<Cut> cuts = *NamedCuts(model, {"layer1", "layer4"});
  std::vector<int> borders;
  for (int segment = 0; segment < 3; ++segment) {
    const BlockRange range = SegmentBlocks(model, cuts, segment);
    borders.push_back(range.first);
    borders.push_back(range.last);
  }
  EXPECT_THAT(borders, ElementsAre(0, 3, 3, 9, 9, 10));
}

TEST(BalancedCutsTest, TheHeadOfALanguageModelCountsAsTheBlocksThatItCosts) {
  ModelOptions options = *OptionsOf("gpt2");
  options.input = {1, 1024};
  options.classes = 50257;
  // With 50257 logits a position the head costs nearly as much as five of the twelve blocks.
  const std::vector<Cut> cuts = *BalancedCuts(*NamedModel(options), 3, /*flops_per_byte=*/0);
  ASSERT_EQ(cuts.size(), 3u);
  EXPECT_EQ(cuts[0].name, "h.3");
  EXPECT_EQ(cuts[1].name, "h.7");
  EXPECT_EQ(cuts[2].name, "h.11");
}

TEST(NamedCutsTest, BlocksOfALanguageModelAreCutsOfTheirOwn) {
  ModelOptions options = *OptionsOf("gpt2");
  options.input = {1, 16};
  const Model model = *NamedModel(options);
  const std::vector<Cut> cuts = *NamedCuts(model, {"embedding", "h.2", "h"});
  ASSERT_EQ(cuts.size(), 3u);
  EXPECT_EQ(cuts[0].block, 0);
  EXPECT_EQ(cuts[1].block, 3);
  EXPECT_EQ(cuts[2].block, 12);
}

}  // namespace
}  // namespace thinwire
