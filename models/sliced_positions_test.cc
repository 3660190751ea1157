#include "models/sliced_positions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/cost.h"
#include "models/part_rounds.h"
#include "models/parts.h"
#include "models/zoo.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Returns a transformer with two blocks of 8 positions, 16 features, four heads and two parts.
Model Divided(const std::string& name) {
  ModelOptions options = *OptionsOf(name);
  options.input = {1, 8};
  options.classes = 20;
  options.layers = 2;
  options.heads = 4;
  options.width = 16;
  return *DividedIntoParts(*NamedModel(options), 2);
}

std::vector<LayerKind> KindsOf(const BlockSpec& block) {
  std::vector<LayerKind> kinds;
  for (const LayerSpec& layer : block.layers) kinds.push_back(layer.kind);
  return kinds;
}

TEST(SlicedPositionsTest, BeginAndEndBetweenCuts) {
  const Model divided = Divided("gpt2");
  const Model whole = *WithSlicedPositions(divided, {}, 2);
  EXPECT_THAT(KindsOf(whole.blocks[1]),
              ElementsAre(LayerKind::kToSlices, LayerKind::kResidual, LayerKind::kResidual));
  EXPECT_THAT(KindsOf(whole.blocks[2]),
              ElementsAre(LayerKind::kResidual, LayerKind::kResidual, LayerKind::kToWhole));
  EXPECT_THAT(KindsOf(whole.blocks[3]), ElementsAre(LayerKind::kLayerNorm, LayerKind::kLinear));
  const Model cut = *WithSlicedPositions(divided, *NamedCuts(divided, {"h.0"}), 2);
  for (const int block : {1, 2}) {
    EXPECT_THAT(KindsOf(cut.blocks[block]), ElementsAre(LayerKind::kToSlices, LayerKind::kResidual,
                                                        LayerKind::kResidual, LayerKind::kToWhole));
  }
}

TEST(SlicedPositionsTest, AreOfNormsSumsAndTheirParametersButNotOfParts) {
  const Model model = *WithSlicedPositions(Divided("gpt2"), {}, 2);
  const LayerSpec& residual = model.blocks[1].layers[1];
  EXPECT_EQ(residual.body[0].slices.count, 2);
  EXPECT_EQ(residual.body[1].slices.positions, 8);
  EXPECT_TRUE(residual.body[1].body[0].body[0].slices.are_whole());
  int on_slices = 0;
  for (const ParameterSpec& parameter : Parameters(model.blocks[1])) {
    if (!parameter.slices.are_whole()) ++on_slices;
  }
  EXPECT_EQ(on_slices, 6);  // two norms' scales and shifts, two biases
}

TEST(SlicedPositionsTest, OtherLayersOfABlockHaveWholeSamples) {
  Model model = Divided("llama");
  LayerSpec maxout = NewLayer(LayerKind::kMaxout);
  maxout.group = 1;
  std::vector<LayerSpec>& layers = model.blocks[1].layers;
  layers.insert(layers.begin() + 1, maxout);
  const Model sliced = *WithSlicedPositions(std::move(model), {}, 2);
  EXPECT_THAT(KindsOf(sliced.blocks[1]),
              ElementsAre(LayerKind::kToSlices, LayerKind::kResidual, LayerKind::kToWhole,
                          LayerKind::kMaxout, LayerKind::kToSlices, LayerKind::kResidual));
}

TEST(SlicedPositionsTest, PositionsThatDoNotDivideDifferByOne) {
  PositionSlices slices;
  slices.count = 3;
  slices.positions = 7;
  slices.first = 1;
  slices.end = 3;
  EXPECT_EQ(slices.Of(0).count + slices.Of(1).count + slices.Of(2).count, 7);
  EXPECT_EQ(slices.Of(1).first, 2);
  EXPECT_EQ(slices.PositionsHere(), 5);
  const IndexRange second = slices.RowsOf(1, 4 * 5);  // of four samples
  EXPECT_EQ(second.first, 4 * slices.Of(1).count);
  EXPECT_EQ(second.count, 4 * slices.Of(2).count);
}

TEST(SlicedPositionsTest, AMachineOfOneSliceKeepsLess) {
  const Model whole = Divided("bert"), sliced = *WithSlicedPositions(whole, {}, 2);
  const auto kept = [](Model model, int parts) {
    KeepParts(0, parts, &model.blocks);
    return SegmentCosts(model, {})[0].kept_elements;
  };
  EXPECT_EQ(kept(sliced, 2) - kept(whole, 2), 0);
  // Each block has two norms that keep half of their inputs.
  EXPECT_EQ(kept(whole, 1) - kept(sliced, 1), 2 * 2 * 8 * 16 / 2);
}

TEST(SlicedPositionsTest, WhatCannotBeSlicedIsRefusedByName) {
  ModelOptions options = *OptionsOf("gpt2");
  options.input = {1, 3};
  options.classes = 20;
  options.layers = 1;
  options.heads = 4;
  options.width = 16;
  const Model model = *DividedIntoParts(*NamedModel(options), 4);
  EXPECT_EQ(WithSlicedPositions(model, {}, 4).status().message(),
            "tensor.sequence: block h.0 has 3 positions, want at least 4, one for each part");
  LayerSpec sum = NewLayer(LayerKind::kLinear, "a");
  sum.out_features = 4;
  LayerSpec last = sum;
  last.name = "b";
  const Model flat = *DividedIntoParts(
      *CustomModel("flat", {{"block", {sum, NewLayer(LayerKind::kReLU), last}, {}, {}}}, {1, 5}, 4),
      2);
  EXPECT_THAT(std::string(WithSlicedPositions(flat, {}, 2).status().message()),
              HasSubstr("tensor.sequence: true, want false: model flat has no sums"));
}

TEST(PartRoundsTest, ASumOnSlicesIsGatheredAndScattered) {
  const Model model = *WithSlicedPositions(Divided("gpt2"), {}, 2);
  const std::vector<const LayerSpec*> layers = LayersWithRounds(model.blocks[1]);
  ASSERT_EQ(layers.size(), 3u);
  EXPECT_TRUE(RoundsOf(*layers[0], /*gradient=*/false).empty());
  EXPECT_EQ(RoundsOf(*layers[0], /*gradient=*/true).front().kind, PartExchange::kGather);
  const std::vector<PartRound> rounds = RoundsOf(*layers[1], /*gradient=*/false);
  ASSERT_EQ(rounds.size(), 2u);
  EXPECT_EQ(SampleOf(rounds[0], {1, 1}), (Shape{1, 4, 16}));
  EXPECT_EQ(MessagesOf(rounds[0], 2, 1).size(), 1u);
  EXPECT_EQ(MessagesOf(rounds[1], 2, 1).size(), 2u);
  EXPECT_EQ(NumberOf(rounds[1], 1, 2, {1, 0}), 8u);  // of six numbers of each layer
  EXPECT_EQ(NumberOf(rounds[0], 1, 2, {1, 1}), 11u);
}

}  // namespace
}  // namespace thinwire
