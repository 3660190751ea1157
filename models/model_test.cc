#include "models/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thinwire {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Names(const std::vector<ParameterSpec>& parameters) {
  std::vector<std::string> names;
  for (const ParameterSpec& p : parameters) names.push_back(p.name);
  return names;
}

LayerSpec Layer(LayerKind kind, std::string name, int64_t in_features, int64_t out_features) {
  LayerSpec layer;
  layer.kind = kind;
  layer.name = std::move(name);
  layer.in_features = in_features;
  layer.out_features = out_features;
  return layer;
}

TEST(ParametersTest, ConvolutionIsOihwAndDrawsFromItsFanIn) {
  LayerSpec conv = Layer(LayerKind::kConv2d, "conv1", 3, 16);
  conv.kernel = 5;
  const std::vector<ParameterSpec> parameters = Parameters(conv);
  ASSERT_EQ(parameters.size(), 1u);
  EXPECT_EQ(parameters[0].name, "conv1.weight");
  EXPECT_EQ(parameters[0].shape, (Shape{16, 3, 5, 5}));
  EXPECT_EQ(parameters[0].init, ParameterSpec::Init::kUniformFanIn);
  EXPECT_EQ(parameters[0].fan_in, 75);
  EXPECT_TRUE(parameters[0].is_trained());
}

TEST(ParametersTest, BiasDrawsFromTheFanInOfItsWeight) {
  LayerSpec linear = Layer(LayerKind::kLinear, "fc", 512, 10);
  linear.bias = true;
  const std::vector<ParameterSpec> parameters = Parameters(linear);
  ASSERT_THAT(Names(parameters), ElementsAre("fc.weight", "fc.bias"));
  EXPECT_EQ(parameters[0].shape, (Shape{10, 512}));
  EXPECT_EQ(parameters[1].shape, (Shape{10}));
  EXPECT_EQ(parameters[1].init, ParameterSpec::Init::kUniformFanIn);
  EXPECT_EQ(parameters[1].fan_in, 512);
}

TEST(ParametersTest, BatchNormStartsAsTheIdentityAndItsStatisticsAreNotTrained) {
  const std::vector<ParameterSpec> parameters =
      Parameters(Layer(LayerKind::kBatchNorm, "bn1", 16, 16));
  ASSERT_THAT(Names(parameters),
              ElementsAre("bn1.weight", "bn1.bias", "bn1.running_mean", "bn1.running_var"));
  using Init = ParameterSpec::Init;
  const Init inits[] = {Init::kOnes, Init::kZeros, Init::kZeros, Init::kOnes};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(parameters[i].shape, (Shape{16})) << i;
    EXPECT_EQ(parameters[i].init, inits[i]) << i;
    EXPECT_EQ(parameters[i].is_trained(), i < 2) << i;
  }
}

TEST(ParametersTest, LayerNormStartsAsTheNormAloneAndHasNoStatistics) {
  LayerSpec norm = Layer(LayerKind::kLayerNorm, "ln", 16, 16);
  EXPECT_THAT(Names(Parameters(norm)), ElementsAre("ln.weight"));
  norm.bias = true;
  const std::vector<ParameterSpec> parameters = Parameters(norm);
  ASSERT_THAT(Names(parameters), ElementsAre("ln.weight", "ln.bias"));
  EXPECT_EQ(parameters[0].init, ParameterSpec::Init::kOnes);
  EXPECT_EQ(parameters[1].init, ParameterSpec::Init::kZeros);
  EXPECT_EQ(parameters[1].shape, (Shape{16}));
}

TEST(ParametersTest, MaxoutHasNone) {
  EXPECT_THAT(Parameters(Layer(LayerKind::kMaxout, "", 0, 0)), ::testing::IsEmpty());
}

TEST(ParametersTest, XavierKnowsBothFansOfItsWeight) {
  LayerSpec conv = Layer(LayerKind::kConv2d, "conv", 3, 16);
  conv.kernel = 5;
  conv.init = ParameterSpec::Init::kXavierUniform;
  const ParameterSpec weight = Parameters(conv)[0];
  EXPECT_EQ(weight.init, ParameterSpec::Init::kXavierUniform);
  EXPECT_EQ(weight.fan_in, 3 * 25);
  EXPECT_EQ(weight.fan_out, 16 * 25);
}

TEST(ParametersTest, ResidualListsItsBodyBeforeItsShortcut) {
  LayerSpec residual = Layer(LayerKind::kResidual, "", 0, 0);
  residual.body = {Layer(LayerKind::kLinear, "a", 4, 4), Layer(LayerKind::kReLU, "", 0, 0)};
  residual.shortcut = {Layer(LayerKind::kLinear, "b", 4, 4)};
  EXPECT_THAT(Names(Parameters(residual)), ElementsAre("a.weight", "b.weight"));
}

TEST(ParametersTest, ADeviationMakesTheWeightNormalAndTheBiasZero) {
  LayerSpec linear = Layer(LayerKind::kLinear, "fc", 8, 4);
  linear.bias = true;
  linear.deviation = 0.02;
  const std::vector<ParameterSpec> parameters = Parameters(linear);
  EXPECT_EQ(parameters[0].init, ParameterSpec::Init::kNormal);
  EXPECT_EQ(parameters[0].deviation, 0.02);
  EXPECT_EQ(parameters[1].init, ParameterSpec::Init::kZeros);
}

TEST(ParametersTest, AFusedWeightAndItsBiasStandInFilesAsTheirParts) {
  LayerSpec linear = Layer(LayerKind::kLinear, "qkv", 8, 12);
  linear.bias = linear.transposed = true;
  linear.parts = {{"q", 8}, {"k", 4}};
  const std::vector<ParameterSpec> parameters = Parameters(linear);
  EXPECT_TRUE(parameters[0].transposed);
  EXPECT_FALSE(parameters[1].transposed);
  for (const ParameterSpec& parameter : parameters) ASSERT_EQ(parameter.parts.size(), 2u);
  EXPECT_EQ(parameters[0].parts[0].name, "q.weight");
  EXPECT_EQ(parameters[0].parts[1].rows, 4);
  EXPECT_EQ(parameters[1].parts[1].name, "k.bias");
}

TEST(ParametersTest, ATiedWeightNamesWhatItCopiesAndIsNotCounted) {
  LayerSpec linear = Layer(LayerKind::kLinear, "head", 8, 100);
  linear.tied_to = "wte";
  EXPECT_EQ(Parameters(linear)[0].tied_to, "wte.weight");
  LayerSpec embedding = DefaultLayer(LayerKind::kEmbedding);
  embedding.name = "wte";
  embedding.out_features = 8;
  embedding.vocabulary = 100;
  EXPECT_EQ(Parameters(embedding)[0].shape, (Shape{100, 8}));
  EXPECT_EQ(Parameters(embedding)[0].init, ParameterSpec::Init::kNormal);
  Model model;
  model.blocks = {{"a", {embedding}, {}, {}}, {"b", {linear}, {}, {}}};
  EXPECT_EQ(TrainableParameters(model), 800);
}

TEST(ParametersTest, ARmsNormHasAWeightOnly) {
  const std::vector<ParameterSpec> parameters =
      Parameters(Layer(LayerKind::kRmsNorm, "norm", 16, 16));
  ASSERT_THAT(Names(parameters), ElementsAre("norm.weight"));
  EXPECT_EQ(parameters[0].init, ParameterSpec::Init::kOnes);
}

TEST(LayerKindTest, NamesLeadBack) {
  for (const LayerKind kind : AllLayerKinds()) {
    LayerKind back = LayerKind::kReLU;
    ASSERT_TRUE(FromName(Name(kind), &back).ok()) << Name(kind);
    EXPECT_EQ(back, kind);
  }
}

TEST(IsRandomTest, FindsDropoutInABranch) {
  LayerSpec residual = Layer(LayerKind::kResidual, "", 0, 0);
  residual.body = {Layer(LayerKind::kAttention, "attn", 0, 0)};
  EXPECT_FALSE(IsRandom({residual}));
  residual.body[0].dropout = 0.1;
  EXPECT_TRUE(IsRandom({Layer(LayerKind::kReLU, "", 0, 0), residual}));
}

TEST(ForwardFlopsTest, AnAttentionCountsThePositionsThatItSees) {
  LayerSpec attention = Layer(LayerKind::kAttention, "attn", 0, 0);
  attention.heads = 4;
  attention.kv_heads = 2;
  attention.in = {1, 3, (4 + 2 * 2) * 5};
  BlockSpec block;
  block.layers = {attention};
  // 4 heads of 5 features; 1 + 2 + 3 pairs of positions; scores, then a weighted sum.
  EXPECT_EQ(ForwardFlops(block), 2.0 * 4 * 5 * 6 * 2);
  EXPECT_EQ(AttentionFlops(block), ForwardFlops(block));
  block.layers[0].window = 2;  // 1 + 2 + 2 pairs
  EXPECT_EQ(ForwardFlops(block), 2.0 * 4 * 5 * 5 * 2);
  block.layers[0].window = 7;
  EXPECT_EQ(ForwardFlops(block), 2.0 * 4 * 5 * 6 * 2);
  block.layers[0].window = 0;
  block.layers[0].causal = false;  // 9 pairs
  EXPECT_EQ(ForwardFlops(block), 2.0 * 4 * 5 * 9 * 2);
}

TEST(ReadsIdsTest, FindsPaddingAndSeparatorsInBranches) {
  LayerSpec residual = Layer(LayerKind::kResidual, "", 0, 0);
  residual.body = {Layer(LayerKind::kAttention, "attn", 0, 0)};
  EXPECT_FALSE(ReadsIds({residual}));
  residual.body[0].pad = 0;
  EXPECT_TRUE(ReadsIds({Layer(LayerKind::kReLU, "", 0, 0), residual}));
  LayerSpec types = Layer(LayerKind::kTypeEmbedding, "types", 0, 0);
  EXPECT_FALSE(ReadsIds({types}));
  types.separator = 2;
  EXPECT_TRUE(ReadsIds({types}));
}

TEST(NeedsWholeSequencesTest, FindsAttentionThatIsNotCausalInABranch) {
  LayerSpec residual = Layer(LayerKind::kResidual, "", 0, 0);
  residual.body = {Layer(LayerKind::kAttention, "attn", 0, 0)};
  EXPECT_EQ(NeedsWholeSequences({residual}), nullptr);
  residual.body[0].causal = false;
  const std::vector<LayerSpec> layers = {Layer(LayerKind::kReLU, "", 0, 0), residual};
  ASSERT_NE(NeedsWholeSequences(layers), nullptr);
  EXPECT_EQ(NeedsWholeSequences(layers)->name, "attn");
  EXPECT_NE(NeedsWholeSequences({Layer(LayerKind::kFirst, "", 0, 0)}), nullptr);
}

TEST(ForwardFlopsTest, CountsTwoForEveryMultiplyAddOfConvolutionsAndLinears) {
  LayerSpec conv = Layer(LayerKind::kConv2d, "conv", 3, 16);
  conv.kernel = 3;
  conv.out = {1, 8, 8, 16};
  LayerSpec linear = Layer(LayerKind::kLinear, "fc", 100, 10);
  linear.out = {1, 10};
  LayerSpec residual = Layer(LayerKind::kResidual, "", 0, 0);
  residual.body = {conv};
  BlockSpec block;
  block.layers = {residual, Layer(LayerKind::kReLU, "", 0, 0), linear};
  EXPECT_EQ(ForwardFlops(block), 2.0 * (8 * 8 * 16 * 3 * 3 * 3 + 10 * 100));
}

}  // namespace
}  // namespace thinwire
