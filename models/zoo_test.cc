#include "models/zoo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/shapes.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Model Named(const std::string& name, Shape input = {1, 32, 32, 3}, int64_t width = 0) {
  ModelOptions options;
  options.name = name;
  options.width = width;
  options.input = input;
  absl::StatusOr<Model> model = NamedModel(options);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : Model();
}

std::vector<std::string> BlockNames(const Model& model) {
  std::vector<std::string> names;
  for (const BlockSpec& block : model.blocks) names.push_back(block.name);
  return names;
}

std::vector<std::string> ParameterNames(const BlockSpec& block) {
  std::vector<std::string> names;
  for (const ParameterSpec& p : Parameters(block)) names.push_back(p.name);
  return names;
}

LayerSpec Linear(std::string name, int64_t out_features) {
  LayerSpec layer;
  layer.kind = LayerKind::kLinear;
  layer.name = std::move(name);
  layer.out_features = out_features;
  return layer;
}

LayerSpec Window(LayerKind kind, int64_t kernel, int64_t stride, int64_t padding) {
  LayerSpec layer;
  layer.kind = kind;
  layer.name = kind == LayerKind::kConv2d ? "conv" : "";
  layer.out_features = kind == LayerKind::kConv2d ? 4 : 0;
  layer.kernel = kernel;
  layer.stride = stride;
  layer.padding = padding;
  return layer;
}

LayerSpec Of(LayerKind kind, std::string name = "") {
  LayerSpec layer;
  layer.kind = kind;
  layer.name = std::move(name);
  return layer;
}

absl::StatusOr<Model> OneBlock(std::vector<LayerSpec> layers, Shape input, int64_t classes) {
  BlockSpec block;
  block.name = "only";
  block.layers = std::move(layers);
  return CustomModel("mine", {block}, input, classes);
}

std::string Refusal(const absl::StatusOr<Model>& model) {
  EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument) << model.status();
  return std::string(model.status().message());
}

TEST(NamedModelTest, ResNetsHaveThePublishedNumberOfParameters) {
  EXPECT_EQ(TrainableParameters(Named("resnet18")), 11173962);
  EXPECT_EQ(TrainableParameters(Named("resnet34")), 21282122);
  // 269,722 with identity shortcuts (He et al., table 6) and two projections.
  EXPECT_EQ(TrainableParameters(Named("resnet20")), 269722 + (16 * 32 + 64) + (32 * 64 + 128));
  EXPECT_EQ(TrainableParameters(Named("resnet8")), 78042);
}

TEST(NamedModelTest, ResNet18BlocksAndCutShapesAreThoseOfTheCifarForm) {
  const Model model = Named("resnet18");
  EXPECT_THAT(BlockNames(model),
              ElementsAre("stem", "layer1.0", "layer1.1", "layer2.0", "layer2.1", "layer3.0",
                          "layer3.1", "layer4.0", "layer4.1", "head"));
  EXPECT_EQ(model.blocks[2].out, (Shape{1, 32, 32, 64}));
  EXPECT_EQ(model.blocks[4].out, (Shape{1, 16, 16, 128}));
  EXPECT_EQ(model.blocks[6].out, (Shape{1, 8, 8, 256}));
  EXPECT_EQ(model.blocks[8].out, (Shape{1, 4, 4, 512}));
  EXPECT_EQ(model.blocks[9].out, (Shape{1, 10}));
}

TEST(NamedModelTest, ParameterNamesAreTorchvisions) {
  const Model model = Named("resnet18");
  EXPECT_THAT(ParameterNames(model.blocks[0]), ElementsAre("conv1.weight", "bn1.weight", "bn1.bias",
                                                           "bn1.running_mean", "bn1.running_var"));
  EXPECT_THAT(
      ParameterNames(model.blocks[3]),
      ElementsAre("layer2.0.conv1.weight", "layer2.0.bn1.weight", "layer2.0.bn1.bias",
                  "layer2.0.bn1.running_mean", "layer2.0.bn1.running_var", "layer2.0.conv2.weight",
                  "layer2.0.bn2.weight", "layer2.0.bn2.bias", "layer2.0.bn2.running_mean",
                  "layer2.0.bn2.running_var", "layer2.0.downsample.0.weight",
                  "layer2.0.downsample.1.weight", "layer2.0.downsample.1.bias",
                  "layer2.0.downsample.1.running_mean", "layer2.0.downsample.1.running_var"));
  EXPECT_THAT(ParameterNames(model.blocks.back()), ElementsAre("fc.weight", "fc.bias"));
}

TEST(NamedModelTest, ForwardFlopsOfResNet18AreThePublished556MillionMultiplyAdds) {
  double flops = 0;
  for (const BlockSpec& block : Named("resnet18").blocks) flops += ForwardFlops(block);
  EXPECT_NEAR(flops / 2, 555.42e6, 0.01e6);
}

TEST(NamedModelTest, TakesSmallGreyImages) {
  const Model model = Named("resnet20", {1, 8, 8, 1}, /*width=*/8);
  EXPECT_EQ(model.blocks.front().layers[0].in_features, 1);
  EXPECT_EQ(model.blocks[model.blocks.size() - 2].out, (Shape{1, 2, 2, 32}));
}

TEST(NamedModelTest, UnknownNameIsRefusedWithTheNearestOne) {
  ModelOptions options;
  options.name = "resnet1";
  options.input = {1, 32, 32, 3};
  EXPECT_THAT(Refusal(NamedModel(options)), AllOf(HasSubstr("'resnet1'"), HasSubstr("did you mean"),
                                                  HasSubstr("resnet20, resnet34")));
}

TEST(NamedModelTest, RefusesInputsWidthsAndClassesOutOfRange) {
  ModelOptions options;
  options.name = "resnet8";
  options.input = {1, 64};
  EXPECT_THAT(Refusal(NamedModel(options)), HasSubstr("conv1: conv on [1, 64]"));
  options.input = {2, 8, 8, 1};
  EXPECT_THAT(Refusal(NamedModel(options)), HasSubstr("model input [2, 8, 8, 1]"));
  options.input = {1, 8, 8, 1};
  options.width = -3;
  EXPECT_THAT(Refusal(NamedModel(options)), HasSubstr("width is -3"));
  options.width = 0;
  options.classes = 0;
  EXPECT_THAT(Refusal(NamedModel(options)), HasSubstr("classes is 0"));
}

TEST(CustomModelTest, FillsShapesAndOpenInputFeatures) {
  const absl::StatusOr<Model> model =
      OneBlock({Window(LayerKind::kConv2d, 3, 1, 1), Of(LayerKind::kBatchNorm, "bn"),
                Window(LayerKind::kMaxPool, 2, 2, 0), Of(LayerKind::kFlatten), Linear("fc", 10)},
               {1, 9, 8, 1}, 10);
  ASSERT_TRUE(model.ok()) << model.status();
  const std::vector<LayerSpec>& layers = model->blocks[0].layers;
  EXPECT_EQ(layers[0].in, (Shape{1, 9, 8, 1}));
  EXPECT_EQ(layers[0].out, (Shape{1, 9, 8, 4}));
  EXPECT_EQ(layers[1].in_features, 4);
  EXPECT_EQ(layers[2].out, (Shape{1, 4, 4, 4}));  // the ninth row is dropped, as in PyTorch
  EXPECT_EQ(layers[3].out, (Shape{1, 64}));
  EXPECT_EQ(layers[4].in_features, 64);
}

TEST(CustomModelTest, WrongFeaturesNameBlockLayerAndShape) {
  LayerSpec fc = Linear("fc", 10);
  fc.in_features = 32;
  EXPECT_THAT(
      Refusal(OneBlock({fc}, {1, 64}, 10)),
      AllOf(HasSubstr("block only: fc: linear on [1, 64]"), HasSubstr("in_features is 32")));
}

TEST(CustomModelTest, LinearNormAndMaxoutWorkOnTheLastAxisOfAnyRank) {
  LayerSpec maxout = Of(LayerKind::kMaxout);
  maxout.group = 3;
  for (const Shape& input : {Shape{1, 8}, Shape{1, 5, 8}, Shape{1, 5, 5, 8}}) {
    BlockSpec rows;
    rows.name = "rows";
    rows.layers = {Of(LayerKind::kLayerNorm, "ln"), Linear("map", 12), maxout};
    Model model;
    model.input = input;
    model.blocks = {rows};
    ASSERT_TRUE(FillShapes(&model).ok()) << input.ToString();
    const std::vector<LayerSpec>& layers = model.blocks[0].layers;
    EXPECT_EQ(layers[0].in_features, 8);
    EXPECT_EQ(layers[0].out, input);
    EXPECT_EQ(layers[1].out.rank(), input.rank());
    EXPECT_EQ(layers[1].out.elements() * 8, input.elements() * 12);
    EXPECT_EQ(layers[2].out.rank(), input.rank());
    EXPECT_EQ(layers[2].out.elements() * 2, input.elements());
  }
}

TEST(CustomModelTest, AMaxoutGroupMustDivideTheFeatures) {
  LayerSpec maxout = Of(LayerKind::kMaxout);
  EXPECT_THAT(Refusal(OneBlock({maxout}, {1, 64}, 10)), HasSubstr("group is 0, want 1 to 64"));
  maxout.group = 5;
  EXPECT_THAT(Refusal(OneBlock({maxout}, {1, 64}, 10)),
              HasSubstr("group is 5, which does not divide 64 features"));
}

TEST(CustomModelTest, OnlyImagesAreFlattened) {
  EXPECT_THAT(Refusal(OneBlock({Of(LayerKind::kFlatten), Linear("fc", 10)}, {1, 8}, 10)),
              HasSubstr("flatten on [1, 8]: want an input of shape [1, height, width, channels]"));
}

TEST(CustomModelTest, LogitsPerPixelAreRefused) {
  EXPECT_THAT(Refusal(OneBlock({Linear("fc", 10)}, {1, 8, 8, 1}, 10)), HasSubstr("flatten"));
}

TEST(CustomModelTest, KernelMustFitAndPoolPaddingMustNotMakeEmptyWindows) {
  EXPECT_THAT(Refusal(OneBlock({Window(LayerKind::kConv2d, 5, 1, 0)}, {1, 4, 4, 1}, 10)),
              HasSubstr("kernel 5 with padding 0 does not fit"));
  EXPECT_THAT(Refusal(OneBlock({Window(LayerKind::kConv2d, 3, 0, 0)}, {1, 4, 4, 1}, 10)),
              HasSubstr("stride is 0"));
  EXPECT_THAT(Refusal(OneBlock({Window(LayerKind::kMaxPool, 2, 2, 2)}, {1, 4, 4, 1}, 10)),
              HasSubstr("padding is 2, want 0 to 1"));
}

TEST(CustomModelTest, BothBranchesOfAResidualMustGiveTheSameShape) {
  LayerSpec residual = Of(LayerKind::kResidual);
  residual.body = {Linear("fc", 10)};
  EXPECT_THAT(Refusal(OneBlock({residual}, {1, 64}, 10)),
              HasSubstr("the body gives [1, 10], the shortcut [1, 64]"));
}

TEST(CustomModelTest, TheEndMustBeTheClasses) {
  EXPECT_THAT(Refusal(OneBlock({Linear("fc", 12)}, {1, 64}, 10)),
              HasSubstr("block only gives [1, 12], want [1, 10]"));
}

TEST(CustomModelTest, NamesMustBeThereOnce) {
  EXPECT_THAT(Refusal(OneBlock({Linear("", 10)}, {1, 64}, 10)),
              HasSubstr("a linear layer has no name"));
  EXPECT_THAT(Refusal(OneBlock({Linear("fc", 10), Linear("fc", 10)}, {1, 64}, 10)),
              HasSubstr("two layers are named 'fc'"));
  BlockSpec a, b;
  a.name = b.name = "same";
  a.layers = {Linear("a", 10)};
  b.layers = {Linear("b", 10)};
  EXPECT_THAT(Refusal(CustomModel("mine", {a, b}, {1, 4}, 10)),
              HasSubstr("two blocks are named 'same'"));
  EXPECT_THAT(Refusal(CustomModel("mine", {}, {1, 4}, 10)), HasSubstr("mine has no blocks"));
}

TEST(CustomModelTest, HugeExtentsAreRefusedBeforeAnyProductOverflows) {
  EXPECT_THAT(Refusal(OneBlock({Linear("fc", int64_t{1} << 40)}, {1, 64}, 10)),
              HasSubstr("out_features is 1099511627776"));
  EXPECT_THAT(Refusal(OneBlock({Of(LayerKind::kFlatten)}, {1, 4096, 4096, 4096}, 10)),
              HasSubstr("features is 68719476736"));
}

}  // namespace
}  // namespace thinwire
