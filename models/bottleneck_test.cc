#include "models/bottleneck.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/cost.h"
#include "models/tied_weight.h"
#include "models/zoo.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Init = ParameterSpec::Init;

Model ResNet8() {
  ModelOptions options = *OptionsOf("resnet8");
  options.input = {1, 8, 8, 1};
  return *NamedModel(options);
}

// Returns a model of two linear blocks.
Model OfRows() {
  LayerSpec linear;
  linear.kind = LayerKind::kLinear;
  linear.out_features = 12;
  std::vector<BlockSpec> blocks(2);
  for (size_t i = 0; i < blocks.size(); ++i) {
    blocks[i].name = linear.name = "b" + std::to_string(i);
    blocks[i].layers = {linear};
  }
  return *CustomModel("rows", blocks, {1, 6}, 12);
}

BottleneckSpec Of(BottleneckKind kind, int64_t width, int64_t group = 0) {
  BottleneckSpec spec;
  spec.kind = kind;
  spec.width = width;
  spec.group = group;
  return spec;
}

const BottleneckSpec kNoBottleneck;

Model With(const Model& model, const std::string& cut, const BottleneckSpec& spec) {
  auto narrow = WithBottlenecks(model, *NamedCuts(model, {cut}), {spec});
  EXPECT_TRUE(narrow.ok()) << narrow.status();
  return narrow.ok() ? *narrow : model;
}

std::string Refusal(const Model& model, const std::string& cut, const BottleneckSpec& spec) {
  const absl::Status status = WithBottlenecks(model, *NamedCuts(model, {cut}), {spec}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

std::vector<std::string> BottleneckParameters(const Model& model) {
  std::vector<std::string> names;
  for (const BlockSpec& block : model.blocks) {
    for (const ParameterSpec& parameter : Parameters(block)) {
      if (parameter.name.rfind("bottleneck.", 0) != 0) continue;
      names.push_back(block.name + ": " + parameter.name + " " + parameter.shape.ToString());
    }
  }
  return names;
}

TEST(BottleneckTest, LinearIsTwoConvolutionsOfOnePixelOnImages) {
  const Model model = With(ResNet8(), "layer2", Of(BottleneckKind::kLinear, 4));
  EXPECT_EQ(model.blocks[2].out, (Shape{1, 4, 4, 4}));
  EXPECT_EQ(model.blocks[3].in, (Shape{1, 4, 4, 4}));
  EXPECT_EQ(model.blocks[3].out, ResNet8().blocks[3].out);
  EXPECT_THAT(BottleneckParameters(model),
              ElementsAre("layer2.0: bottleneck.layer2.encode.weight [4, 32, 1, 1]",
                          "layer3.0: bottleneck.layer2.decode.weight [32, 4, 1, 1]"));
}

TEST(BottleneckTest, LinearIsTwoLinearLayersElsewhere) {
  EXPECT_THAT(BottleneckParameters(With(OfRows(), "b0", Of(BottleneckKind::kLinear, 3))),
              ElementsAre("b0: bottleneck.b0.encode.weight [3, 12]",
                          "b1: bottleneck.b0.decode.weight [12, 3]"));
}

TEST(BottleneckTest, LayerNormNormsBeforeTheMapAndTheCode) {
  EXPECT_THAT(
      BottleneckParameters(With(OfRows(), "b0", Of(BottleneckKind::kLayerNorm, 3))),
      ElementsAre("b0: bottleneck.b0.norm.weight [12]", "b0: bottleneck.b0.norm.bias [12]",
                  "b0: bottleneck.b0.encode.weight [3, 12]",
                  "b0: bottleneck.b0.code_norm.weight [3]", "b0: bottleneck.b0.code_norm.bias [3]",
                  "b1: bottleneck.b0.decode.weight [12, 3]"));
}

TEST(BottleneckTest, MaxoutKeepsOneChannelOfAGroup) {
  const Model model = With(OfRows(), "b0", Of(BottleneckKind::kMaxout, 0, /*group=*/4));
  EXPECT_EQ(model.blocks[0].out, (Shape{1, 3}));
  EXPECT_THAT(
      BottleneckParameters(model),
      ElementsAre("b0: bottleneck.b0.norm.weight [12]", "b0: bottleneck.b0.norm.bias [12]",
                  "b0: bottleneck.b0.code_norm.weight [3]", "b0: bottleneck.b0.code_norm.bias [3]",
                  "b1: bottleneck.b0.decode.weight [12, 3]"));
}

TEST(BottleneckTest, ResidualAddsABranchToTheFirstChannelsOnBothSides) {
  BottleneckSpec spec = Of(BottleneckKind::kResidual, 3);
  const Model model = With(OfRows(), "b0", spec);
  EXPECT_THAT(BottleneckParameters(model),
              ElementsAre("b0: bottleneck.b0.norm.weight [12]",
                          "b0: bottleneck.b0.encode_in.weight [12, 12]",
                          "b0: bottleneck.b0.encode.weight [3, 12]",
                          "b1: bottleneck.b0.code_norm.weight [3]",
                          "b1: bottleneck.b0.decode_in.weight [12, 3]",
                          "b1: bottleneck.b0.decode.weight [12, 12]"));
  const LayerSpec& encoder = model.blocks[0].layers.back();
  EXPECT_EQ(encoder.kind, LayerKind::kResidual);
  ASSERT_EQ(encoder.shortcut.size(), 1u);
  EXPECT_EQ(encoder.shortcut[0].kind, LayerKind::kResize);
  EXPECT_EQ(encoder.out, (Shape{1, 3}));
  const LayerSpec& decoder = model.blocks[1].layers.front();
  EXPECT_EQ(decoder.in, (Shape{1, 3}));
  EXPECT_EQ(decoder.out, (Shape{1, 12}));
  spec.hidden = 5;
  EXPECT_THAT(BottleneckParameters(With(ResNet8(), "layer1", spec)),
              Contains("layer1.0: bottleneck.layer1.encode_in.weight [5, 16, 1, 1]"));
  spec.hidden = 1 << 30;
  EXPECT_THAT(Refusal(OfRows(), "b0", spec), HasSubstr("hidden: 1073741824, want 1 to 1048576"));
}

Model Gpt2(bool tied) {
  ModelOptions options = *OptionsOf("gpt2");
  options.input = {1, 8};
  options.classes = 11;
  options.layers = 3;
  options.heads = 2;
  options.width = 12;
  options.tied = tied;
  return *NamedModel(options);
}

Model WithTwo(const Model& model, const BottleneckSpec& first, const BottleneckSpec& second) {
  auto narrow = WithBottlenecks(model, *NamedCuts(model, {"h.0", "h.1"}), {first, second});
  EXPECT_TRUE(narrow.ok()) << narrow.status();
  return narrow.ok() ? *narrow : model;
}

TEST(BottleneckTest, ALearnedSubspaceHasABasisOnBothSidesAndATableForEachSegment) {
  BottleneckSpec spec = Of(BottleneckKind::kLearnedSubspace, 3), other = spec;
  const Model model = WithTwo(Gpt2(/*tied=*/true), spec, spec);
  EXPECT_THAT(
      BottleneckParameters(model),
      ElementsAre(
          "h.0: bottleneck.h.0.anchor.weight [11, 3]", "h.0: bottleneck.h.0.anchor.factor [3, 12]",
          "h.0: bottleneck.h.0.encode.weight [3, 12]", "h.1: bottleneck.h.0.decode.weight [3, 12]",
          "h.1: bottleneck.h.0.decode_anchor.weight [11, 3]",
          "h.1: bottleneck.h.0.decode_anchor.factor [3, 12]",
          "h.1: bottleneck.h.1.encode.weight [3, 12]", "h.2: bottleneck.h.1.decode.weight [3, 12]",
          "h.2: bottleneck.h.1.decode_anchor.weight [11, 3]",
          "h.2: bottleneck.h.1.decode_anchor.factor [3, 12]"));
  const auto basis = LearnedBasisAt(model, (*NamedCuts(model, {"h.1"}))[0]);
  ASSERT_TRUE(basis.has_value());
  EXPECT_EQ(basis->name, "bottleneck.h.1.encode.weight");
  EXPECT_EQ(basis->copy, "bottleneck.h.1.decode.weight");
  EXPECT_EQ(basis->shape, (Shape{3, 12}));
  ASSERT_TRUE(FindTiedWeight(model).has_value());
  EXPECT_EQ(FindTiedWeight(model)->copy, "lm_head.weight");
  other.anchor_rank = 5;  // so the table of the second segment does not fit both its cuts
  EXPECT_THAT(BottleneckParameters(WithTwo(Gpt2(true), spec, other)),
              Contains("h.1: bottleneck.h.1.anchor.weight [11, 5]"));
  EXPECT_FALSE(FindTiedWeight(WithTwo(Gpt2(/*tied=*/false), spec, spec)).has_value());
}

TEST(BottleneckTest, ASubspaceKeepsWhatWritesToTheStreamInItsSpan) {
  const BottleneckSpec spec = Of(BottleneckKind::kSubspace, 3);
  const Model model = WithTwo(Gpt2(/*tied=*/false), spec, spec);
  EXPECT_THAT(BottleneckParameters(model),
              ElementsAre("embedding: bottleneck.h.0.anchor.weight [11, 12]",
                          "h.0: bottleneck.h.0.encode.weight [3, 12]",
                          "h.1: bottleneck.h.0.decode.weight [3, 12]",
                          "h.1: bottleneck.h.0.decode_anchor.weight [11, 12]",
                          "h.1: bottleneck.h.1.encode.weight [3, 12]",
                          "h.2: bottleneck.h.1.decode.weight [3, 12]",
                          "h.2: bottleneck.h.1.decode_anchor.weight [11, 12]"));
  std::vector<std::string> kept;
  for (const BlockSpec& block : model.blocks) {
    for (const ParameterSpec& parameter : Parameters(block)) {
      if (!parameter.within.empty()) kept.push_back(parameter.name + " < " + parameter.within);
      const bool is_fixed = parameter.name.rfind("bottleneck.", 0) == 0;
      EXPECT_EQ(parameter.is_trained(), !is_fixed) << parameter.name;
    }
  }
  const std::string first = ".weight < bottleneck.h.0.encode.weight";
  EXPECT_THAT(kept, Contains("transformer.wte" + first));
  EXPECT_THAT(kept, Contains("transformer.wpe" + first));
  EXPECT_THAT(kept, Contains("transformer.h.0.attn.c_proj" + first));
  EXPECT_THAT(kept, Contains("transformer.h.1.mlp.c_proj.bias < bottleneck.h.1.encode.weight"));
  EXPECT_EQ(kept.size(), 2u + 2 * 4);  // nothing after the last cut
  EXPECT_FALSE(LearnedBasisAt(model, (*NamedCuts(model, {"h.1"}))[0]).has_value());
}

TEST(BottleneckTest, SubspacesThatCannotBeAreRefused) {
  const BottleneckSpec fixed = Of(BottleneckKind::kSubspace, 3);
  const BottleneckSpec learned = Of(BottleneckKind::kLearnedSubspace, 3);
  EXPECT_THAT(Refusal(OfRows(), "b0", learned), HasSubstr("takes no token ids"));
  EXPECT_THAT(Refusal(Gpt2(true), "h.0", fixed), HasSubstr("want model.tied: false"));
  const Model model = Gpt2(false);
  const auto refusal = [&](const BottleneckSpec& second) {
    const auto narrow = WithBottlenecks(model, *NamedCuts(model, {"h.0", "h.1"}), {fixed, second});
    return std::string(narrow.status().message());
  };
  EXPECT_THAT(refusal(learned), HasSubstr("cut h.1: learned_subspace bottleneck of width 3, want "
                                          "subspace at all cuts or none"));
  EXPECT_THAT(refusal(Of(BottleneckKind::kSubspace, 4)), HasSubstr("width 4, want"));
  ModelOptions options = *OptionsOf("llama");
  options.input = {1, 8};
  options.layers = 2;
  options.dropout = 0.1;
  EXPECT_THAT(Refusal(*NamedModel(options), "layers.0", fixed),
              HasSubstr("block embedding: subspace bottleneck behind a layer dropout"));
}

TEST(BottleneckTest, BothMapsStartXavierUniform) {
  const Model model = With(ResNet8(), "layer2", Of(BottleneckKind::kLinear, 4));
  for (int block : {2, 3}) {
    for (const ParameterSpec& parameter : Parameters(model.blocks[block])) {
      if (parameter.name.rfind("bottleneck.", 0) != 0) continue;
      EXPECT_EQ(parameter.init, Init::kXavierUniform) << parameter.name;
      EXPECT_EQ(parameter.fan_in + parameter.fan_out, 36) << parameter.name;
    }
  }
}

TEST(BottleneckTest, ABlockBetweenTwoCutsDecodesAndEncodes) {
  const Model model = ResNet8();
  const auto narrow =
      WithBottlenecks(model, *NamedCuts(model, {"layer1", "layer2"}),
                      {Of(BottleneckKind::kLinear, 2), Of(BottleneckKind::kLinear, 8)});
  ASSERT_TRUE(narrow.ok()) << narrow.status();
  EXPECT_EQ(narrow->blocks[2].layers.front().name, "bottleneck.layer1.decode");
  EXPECT_EQ(narrow->blocks[2].layers.back().name, "bottleneck.layer2.encode");
  EXPECT_EQ(narrow->blocks[2].in, (Shape{1, 8, 8, 2}));
  EXPECT_EQ(narrow->blocks[2].out, (Shape{1, 4, 4, 8}));
}

TEST(BottleneckTest, ACutWithoutOneStaysAsItWas) {
  const Model model = With(ResNet8(), "layer1", kNoBottleneck);
  EXPECT_THAT(BottleneckParameters(model), ElementsAre());
  EXPECT_EQ(TrainableParameters(model), TrainableParameters(ResNet8()));
}

TEST(BottleneckTest, ItsLayersCostParametersAndFlopsAndTheBoundaryIsTheCode) {
  const Model plain = ResNet8(), model = With(plain, "layer1", Of(BottleneckKind::kLinear, 4));
  const std::vector<Cut> cuts = *NamedCuts(plain, {"layer1"});
  const auto before = SegmentCosts(plain, cuts), after = SegmentCosts(model, cuts);
  EXPECT_EQ(after[0].boundary_elements, 8 * 8 * 4);
  for (int segment : {0, 1}) {
    EXPECT_EQ(after[segment].parameters - before[segment].parameters, 16 * 4);
    EXPECT_EQ(after[segment].forward_flops - before[segment].forward_flops, 2 * 8 * 8 * 16 * 4);
  }
  // The encoder reads what the ReLU keeps anyway. The decoder keeps the code, and the block after
  // it keeps its input as before.
  EXPECT_EQ(after[0].kept_elements, before[0].kept_elements);
  EXPECT_EQ(after[1].kept_elements, before[1].kept_elements + 8 * 8 * 4);
}

TEST(BottleneckTest, WidthsOutOfRangeAreRefusedByCutAndValue) {
  EXPECT_EQ(Refusal(ResNet8(), "layer1", Of(BottleneckKind::kLinear, 0)),
            "cut layer1: linear bottleneck: width: 0, want 1 to 16, the channels of the cut");
  EXPECT_THAT(Refusal(ResNet8(), "layer1", Of(BottleneckKind::kLinear, 17)),
              HasSubstr("width: 17, want 1 to 16"));
  EXPECT_THAT(Refusal(ResNet8(), "layer1", Of(BottleneckKind::kLayerNorm, 1)),
              HasSubstr("width: 1, want 2 to 16"));
}

TEST(BottleneckTest, GroupsThatDoNotDivideTheChannelsAreRefused) {
  EXPECT_EQ(Refusal(ResNet8(), "layer1", Of(BottleneckKind::kMaxout, 0, 3)),
            "cut layer1: maxout bottleneck: group: 3, want a divisor of the cut's 16 channels "
            "that leaves at least 2");
  EXPECT_THAT(Refusal(ResNet8(), "layer1", Of(BottleneckKind::kMaxout, 0, 0)),
              HasSubstr("group: 0, want"));
  EXPECT_THAT(Refusal(ResNet8(), "layer1", Of(BottleneckKind::kMaxout, 0, 16)),
              HasSubstr("group: 16, want"));
}

TEST(BottleneckTest, AModelsOwnLayerOfThatNameIsRefused) {
  Model model = OfRows();
  model.blocks[0].layers[0].name = "bottleneck.b0.decode";
  EXPECT_THAT(Refusal(model, "b0", Of(BottleneckKind::kLinear, 3)),
              HasSubstr("two layers are named 'bottleneck.b0.decode'"));
}

TEST(BottleneckKindTest, AnUnknownNameGetsTheNearest) {
  BottleneckKind kind{};
  ASSERT_TRUE(FromName("layer_norm", &kind).ok());
  EXPECT_EQ(kind, BottleneckKind::kLayerNorm);
  EXPECT_THAT(std::string(FromName("layernorm", &kind).message()),
              AllOf(HasSubstr("bottleneck: unknown \"layernorm\""),
                    HasSubstr("nearest is \"layer_norm\""), HasSubstr("none, linear, ")));
}

TEST(CutOfBottleneckTest, IsReadFromTheParametersName) {
  EXPECT_EQ(CutOfBottleneck("bottleneck.layer1.0.code_norm.bias"), "layer1.0");
  EXPECT_EQ(CutOfBottleneck("bottleneck.stem.decode.weight"), "stem");
  for (const char* own :
       {"layer1.0.conv1.weight", "bottleneck.fc.weight", "bottleneck.fc", "bottleneck", ""}) {
    EXPECT_EQ(CutOfBottleneck(own), "") << own;
  }
}

}  // namespace
}  // namespace thinwire
