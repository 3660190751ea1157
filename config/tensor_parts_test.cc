// Tests the sections `tensor` and `compression.sums` of an experiment.
#include "config/tensor_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "config/resolve_testing.h"
#include "config/specs.h"
#include "models/parts.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kExperiment[] = R"(
model: {name: gpt2, layers: 3, heads: 4, width: 16}
data: {name: shakespeare, context: 8, batch_size: 4}
pipeline: {cuts: [h.0], microbatches: 2}
tensor: {parts: 2}
optimizer: {name: adamw, lr: 0.001}
epochs: 2
)";

Experiment Parted(const std::vector<std::string>& overrides) {
  return With(overrides, kExperiment);
}
std::string Refusal(const std::vector<std::string>& overrides) {
  return ErrorWith(overrides, kExperiment);
}

TEST(TensorPartsConfigTest, TheModelIsDividedAndSumsAreExactByDefault) {
  const Experiment e = Parted({});
  EXPECT_EQ(e.compression().sums().activations().codec(), "none");
  EXPECT_EQ(e.compression().sums().gradients().codec(), "none");
  EXPECT_EQ(e.compression().sums().from_layer(), "0");
  const Model model = ModelFrom(e).value();
  EXPECT_EQ(SumsOf(model.blocks[1]).size(), 2u);
  EXPECT_EQ(SumsFrom(e, model)->parts, 2);
  EXPECT_FALSE(With({}).compression().has_sums());
  EXPECT_EQ(PartsOf(With({})), 1);
}

TEST(TensorPartsConfigTest, SequenceSlicesThePositionsBetweenParts) {
  const Experiment e = Parted({"tensor.sequence=true"});
  EXPECT_TRUE(HasSlicedPositions(e));
  const Partition partition = *PartitionFrom(e);
  EXPECT_EQ(partition.model.blocks[1].layers[0].kind, LayerKind::kToSlices);
  EXPECT_EQ(partition.model.blocks[2].layers[0].kind, LayerKind::kToSlices);  // behind a cut
  EXPECT_EQ(SumsOf(partition.model.blocks[1])[0]->slices.positions, 8);
  EXPECT_FALSE(HasSlicedPositions(Parted({"tensor={parts: 1, sequence: true}"})));
  EXPECT_THAT(
      Refusal({"tensor={parts: 4, sequence: true}", "data.context=3"}),
      HasSubstr("tensor.sequence: block h.0 has 3 positions, want at least 4, one for each part"));
  EXPECT_THAT(
      Refusal({"tensor.sequence=true", "compression.sums.bottleneck={kind: linear, width: 4}"}),
      HasSubstr("compression.sums.bottleneck.kind: linear with tensor.sequence, want none"));
}

TEST(TensorPartsConfigTest, EachDirectionHasItsCodec) {
  const Experiment e =
      Parted({"compression.sums={activations: {codec: ecsq, rate: 2}, gradients: "
              "{codec: topk, ratio: 0.1}, from_layer: half}"});
  const SumsSpec spec = SumsFrom(e, ModelFrom(e).value()).value();
  EXPECT_EQ(spec.activations.codec.kind, CodecKind::kEcsq);
  EXPECT_EQ(spec.gradients.codec.kind, CodecKind::kTopK);
  EXPECT_EQ(spec.exact_blocks, 1);  // half of three
  EXPECT_EQ(e.compression().activations().codec(), "none");
  // An override that replaces the codec takes away the old one's parameters.
  const Experiment other = *ParseExperiment(
      ToYaml(e), "again.yaml",
      {"compression.sums.activations.codec=fp16", "compression.sums.from_layer=2"});
  EXPECT_FALSE(other.compression().sums().activations().has_rate());
  EXPECT_EQ(SumsFrom(other, ModelFrom(other).value())->exact_blocks, 2);
}

TEST(TensorPartsConfigTest, SumsMayHaveLearnedCodes) {
  const Experiment e =
      Parted({"compression.sums={bottleneck: {kind: linear, width: 4}, "
              "from_layer: half, activations: {codec: uniform, bits: 4}}"});
  const Partition partition = PartitionFrom(e).value();
  EXPECT_EQ(SumsOf(partition.model.blocks[1])[0]->out[2], 16);  // the first of three blocks
  EXPECT_EQ(SumsOf(partition.model.blocks[2])[0]->out[2], 4);
  EXPECT_FALSE(e.evaluation().uncompressed());
  EXPECT_THAT(Refusal({"compression.sums.bottleneck={kind: maxout, group: 2}"}),
              HasSubstr("compression.sums.bottleneck.kind: maxout, want none or linear"));
  EXPECT_THAT(Refusal({"compression.sums.bottleneck={kind: linear, width: 16}"}),
              HasSubstr("compression.sums.bottleneck: width is 16, want 1 to 15"));
}

TEST(TensorPartsConfigTest, OnePartHasNoSums) {
  const Experiment e =
      Parted({"tensor.parts=1", "compression.sums.activations={codec: ecsq, rate: 2}"});
  EXPECT_EQ(SumsFrom(e, ModelFrom(e).value())->parts, 1);
}

TEST(TensorPartsConfigTest, CarriersAreSpreadOverReplicasAndThenOverParts) {
  const Experiment e = Parted({"tensor.parts=4", "replicas.count=2"});
  for (const auto& [carriers, rows, places] :
       std::vector<std::array<int, 3>>{{1, 1, 1}, {2, 2, 1}, {4, 2, 2}, {8, 2, 4}}) {
    const CarrierGrid grid = GridOf(e, carriers).value();
    EXPECT_EQ(grid.replicas, rows) << carriers;
    EXPECT_EQ(grid.parts, places) << carriers;
  }
  const CarrierGrid grid = GridOf(e, 4).value();
  EXPECT_EQ(grid.Carrying().count(), 4);
  const CarrierGrid three = {/*replicas=*/3}, two = {/*replicas=*/2};
  EXPECT_THAT(Sharing(three, 1, two, /*replicas=*/4), ElementsAre(0));
  EXPECT_THAT(Sharing(three, 2, two, /*replicas=*/4), ElementsAre(1));
  EXPECT_THAT(Sharing(two, 0, three, /*replicas=*/4), ElementsAre(0, 1));
  EXPECT_THAT(Sharing(two, 1, three, /*replicas=*/3), ElementsAre(1, 2));
  const CarrierGrid dealt = {/*replicas=*/4, /*parts=*/1, /*deal=*/{3, 1, 0, 0}};
  EXPECT_FALSE(dealt.Follows(1));
  EXPECT_TRUE(dealt.Follows(2));
  EXPECT_EQ(dealt.Carrying().count(), 2);
  EXPECT_EQ(dealt.Carrying().deal, (Deal{3, 1}));
  EXPECT_TRUE(grid.AreJoined(0, 1));
  EXPECT_TRUE(grid.AreJoined(1, 3));
  EXPECT_FALSE(grid.AreJoined(0, 3));
  for (const int carriers : {0, 3, 10, 16}) {
    EXPECT_THAT(std::string(GridOf(e, carriers).status().message()),
                HasSubstr("want at most 2, the experiment's replicas.count, or a multiple of them "
                          "up to 8, of which each carries some of the 4 parts"));
  }
  EXPECT_THAT(std::string(GridOf(Parted({"tensor.parts=1"}), 2).status().message()),
              HasSubstr("--carriers 2: want at most 1, the experiment's replicas.count"));
}

TEST(TensorPartsConfigTest, WhatCannotBeIsRefusedByName) {
  EXPECT_THAT(Refusal({"tensor.parts=0"}), HasSubstr("tensor.parts: 0, want 1 to 64"));
  EXPECT_THAT(Refusal({"tensor.parts=3"}),
              HasSubstr("tensor.parts is 3: transformer.h.0.attn has 4 heads, want a multiple"));
  EXPECT_THAT(ErrorWith({"tensor={}"}), HasSubstr("tensor.parts: is required"));
  EXPECT_THAT(ErrorWith({"tensor.parts=2"}),
              HasSubstr("model resnet8 has no attention and no MLP to divide, want 1"));
  EXPECT_THAT(ErrorWith({"compression.sums.activations.codec=fp16"}),
              HasSubstr("compression.sums: without tensor.parts, want none"));
  EXPECT_THAT(Refusal({"pipeline.recompute=blocks"}),
              HasSubstr("pipeline.recompute: blocks with tensor.parts 2, want none"));
  EXPECT_THAT(Refusal({"pipeline.schedule=terapipe", "pipeline.slices=2"}),
              HasSubstr("pipeline.schedule: terapipe with tensor.parts 2, want another"));
  EXPECT_THAT(Refusal({"model.tied=false", "compression.bottleneck={kind: subspace, width: 4}"}),
              HasSubstr("subspace bottleneck behind a layer sum"));
  EXPECT_THAT(Refusal({"compression.sums.from_layer=3"}),
              HasSubstr("compression.sums.from_layer: 3, want half or 0 to 2, of the model's 3"));
}

TEST(TensorPartsConfigTest, CodecsOfSumsRememberNothing) {
  const auto refusal = [](const std::string& direction, const std::string& entry) {
    return Refusal({"compression.sums." + direction + "=" + entry});
  };
  EXPECT_THAT(refusal("activations", "{codec: topk, ratio: 0.1, feedback: ef}"),
              HasSubstr("compression.sums.activations.feedback: ef, want none: sums over parts"));
  EXPECT_THAT(refusal("gradients", "{codec: low_rank, rank: 2}"),
              HasSubstr("compression.sums.gradients.codec: low_rank, want one without state"));
  EXPECT_THAT(refusal("activations", "{codec: uniform, outliers: 2}"),
              HasSubstr("compression.sums.activations.outliers: 2, want 0: sums over parts"));
  EXPECT_THAT(refusal("activations", "{codec: uniform, first_position: exact}"),
              HasSubstr("compression.sums.activations.first_position: exact, want coded"));
  EXPECT_THAT(refusal("gradients", "{codec: topk, indices: shared}"),
              HasSubstr("compression.sums.gradients.indices: shared, want own"));
  EXPECT_THAT(
      refusal("activations", "{codec: ecsq, rate: 2, level: {target_error: 0.1, min: 1, max: 4}}"),
      HasSubstr("compression.sums.activations.level.target_error: 0.1, want"));
  EXPECT_THAT(refusal("gradients", "{codec: fp16, epilogue_only: true}"),
              HasSubstr("compression.sums.gradients.epilogue_only: true, want false"));
}

}  // namespace
}  // namespace thinwire
