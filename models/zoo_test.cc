#include "models/zoo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "models/file_tensors.h"
#include "models/shapes.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Model Named(const std::string& name, Shape input = {1, 32, 32, 3}, int64_t width = 0) {
  ModelOptions options = *OptionsOf(name);
  if (width > 0) options.width = width;
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
  // He et al. (table 6) have 269,722 with identity shortcuts; two projections come on top.
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
  const absl::StatusOr<ModelOptions> options = OptionsOf("resnet1");
  EXPECT_EQ(options.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(options.status().message(), AllOf(HasSubstr("'resnet1'"), HasSubstr("did you mean"),
                                                HasSubstr("resnet20, resnet34, gpt2, ")));
}

TEST(NamedModelTest, RefusesInputsWidthsAndClassesOutOfRange) {
  ModelOptions options = *OptionsOf("resnet8");
  options.input = {1, 64};
  EXPECT_THAT(Refusal(NamedModel(options)), HasSubstr("conv1: conv on [1, 64]"));
  options.input = {2, 8, 8, 1};
  EXPECT_THAT(Refusal(NamedModel(options)), HasSubstr("model input [2, 8, 8, 1]"));
  options.input = {1, 8, 8, 1};
  options.width = -3;
  EXPECT_THAT(Refusal(NamedModel(options)), HasSubstr("width is -3"));
  options.width = 16;
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

Model LanguageModel(const std::string& name, int64_t positions, int64_t classes = 50257) {
  ModelOptions options = *OptionsOf(name);
  options.input = {1, positions};
  options.classes = classes;
  absl::StatusOr<Model> model = NamedModel(options);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : Model();
}

TEST(NamedModelTest, Gpt2HasThePublishedNumberOfParametersWithTheTiedHeadCountedOnce) {
  EXPECT_EQ(TrainableParameters(LanguageModel("gpt2", 1024)), 124439808);
  EXPECT_EQ(TrainableParameters(LanguageModel("gpt2-medium", 1024)), 354823168);
  EXPECT_EQ(TrainableParameters(LanguageModel("gpt2-large", 1024)), 774030080);
  EXPECT_EQ(TrainableParameters(LanguageModel("gpt2-xl", 1024)), 1557611200);
}

TEST(NamedModelTest, Llama2And3HaveThePublishedNumberOfParameters) {
  ModelOptions options = *OptionsOf("llama");
  options.input = {1, 128};
  options.layers = 32;
  options.heads = 32;
  options.width = 4096;
  options.classes = 32000;
  EXPECT_EQ(TrainableParameters(*NamedModel(options)), 6738415616);
  options.kv_heads = 8;
  options.hidden = 14336;
  options.classes = 128256;
  EXPECT_EQ(TrainableParameters(*NamedModel(options)), 8030261248);
}

ModelOptions LlamaOf(const std::string& name, int64_t layers, int64_t width, int64_t heads,
                     int64_t kv_heads, int64_t hidden, int64_t classes, bool tied) {
  ModelOptions options = *OptionsOf(name);
  options.input = {1, 16};
  options.layers = layers;
  options.width = width;
  options.heads = heads;
  options.kv_heads = kv_heads;
  options.hidden = hidden;
  options.classes = classes;
  options.tied = tied;
  return options;
}

int64_t ParametersOf(const ModelOptions& options) {
  const absl::StatusOr<Model> model = NamedModel(options);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? TrainableParameters(*model) : 0;
}

TEST(NamedModelTest, ModelsLikeLlamaHaveThePublishedNumberOfParameters) {
  EXPECT_EQ(ParametersOf(LlamaOf("llama", 30, 576, 9, 3, 1536, 49152, true)), 134515008)
      << "SmolLM2-135M";
  EXPECT_EQ(ParametersOf(LlamaOf("llama", 22, 2048, 32, 4, 5632, 32000, false)), 1100048384)
      << "TinyLlama-1.1B";
  EXPECT_EQ(ParametersOf(LlamaOf("llama", 16, 2048, 32, 8, 8192, 128256, true)), 1235814400)
      << "Llama-3.2-1B";
  EXPECT_EQ(ParametersOf(LlamaOf("mistral", 32, 4096, 32, 8, 14336, 32000, false)), 7241732096)
      << "Mistral-7B-v0.1";
  ModelOptions nemo = LlamaOf("mistral", 40, 5120, 32, 8, 14336, 131072, false);
  nemo.head_size = 128;
  EXPECT_EQ(ParametersOf(nemo), 12247782400) << "Mistral Nemo";
  EXPECT_EQ(ParametersOf(LlamaOf("qwen2", 24, 896, 14, 2, 4864, 151936, true)), 494032768)
      << "Qwen2.5-0.5B";
  EXPECT_EQ(ParametersOf(LlamaOf("qwen3", 28, 1024, 16, 8, 3072, 151936, true)), 596049920)
      << "Qwen3-0.6B";
  EXPECT_EQ(ParametersOf(LlamaOf("phi3", 32, 3072, 32, 32, 8192, 32064, false)), 3821079552)
      << "Phi-3-mini";
}

TEST(NamedModelTest, BiasesStandInFilesPartByPart) {
  const Model qwen2 = *NamedModel(LlamaOf("qwen2", 1, 32, 4, 2, 48, 37, true));
  EXPECT_THAT(
      ParameterNames(qwen2.blocks[1]),
      ElementsAre(
          "model.layers.0.input_layernorm.weight", "model.layers.0.self_attn.qkv_proj.weight",
          "model.layers.0.self_attn.qkv_proj.bias", "model.layers.0.self_attn.o_proj.weight",
          "model.layers.0.post_attention_layernorm.weight",
          "model.layers.0.mlp.gate_up_proj.weight", "model.layers.0.mlp.down_proj.weight"));
  const ParameterSpec bias = Parameters(qwen2.blocks[1])[2];
  ASSERT_EQ(bias.parts.size(), 3u);
  EXPECT_EQ(bias.parts[1].name, "model.layers.0.self_attn.k_proj.bias");
  EXPECT_EQ(bias.parts[1].rows, 16);
  ModelOptions all = LlamaOf("llama", 1, 32, 4, 2, 48, 37, true);
  all.attention_bias = AttentionBias::kAll;
  all.mlp_bias = true;
  std::vector<std::string> biases;
  for (const std::string& name : ParameterNames(NamedModel(all)->blocks[1])) {
    if (name.find("bias") != std::string::npos) biases.push_back(name);
  }
  EXPECT_THAT(
      biases,
      ElementsAre("model.layers.0.self_attn.qkv_proj.bias", "model.layers.0.self_attn.o_proj.bias",
                  "model.layers.0.mlp.gate_up_proj.bias", "model.layers.0.mlp.down_proj.bias"));
}

TEST(NamedModelTest, HeadsMayHaveASizeOfTheirOwn) {
  ModelOptions options = LlamaOf("llama", 1, 30, 4, 2, 48, 37, true);
  EXPECT_THAT(Refusal(NamedModel(options)),
              HasSubstr("heads is 4, want a divisor of the width 30"));
  options.head_size = 16;
  const Model model = *NamedModel(options);
  const std::vector<ParameterSpec> parameters = Parameters(model.blocks[1]);
  EXPECT_EQ(parameters[1].shape, (Shape{(4 + 2 + 2) * 16, 30}));
  EXPECT_EQ(parameters[2].shape, (Shape{30, 64}));
  EXPECT_EQ(parameters[1].parts[0].rows, 64);
  options.head_size = 15;
  EXPECT_THAT(Refusal(NamedModel(options)), HasSubstr("rope_theta is 10000 with heads of 15"));
  options.head_size = -1;
  EXPECT_THAT(Refusal(NamedModel(options)), HasSubstr("head_size is -1, want 0 to 65536"));
}

TEST(NamedModelTest, Qwen3sHeadsHaveNormsOfTheirOwn) {
  const Model model = *NamedModel(LlamaOf("qwen3", 1, 32, 4, 2, 48, 37, true));
  const std::vector<LayerSpec>& attention = model.blocks[1].layers[0].body;
  ASSERT_EQ(attention[2].kind, LayerKind::kHeadNorm);
  EXPECT_EQ(attention[2].out, attention[2].in);
  EXPECT_EQ(attention[3].kind, LayerKind::kAttention);
  const ParameterSpec scale = Parameters(attention[2])[0];
  EXPECT_EQ(scale.name, "model.layers.0.self_attn.qk_norm.weight");
  EXPECT_EQ(scale.shape, (Shape{256}));
  const std::vector<FileTensor> tensors = FileTensors(scale);
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].name, "model.layers.0.self_attn.q_norm.weight");
  EXPECT_EQ(tensors[1].name, "model.layers.0.self_attn.k_norm.weight");
  EXPECT_EQ(tensors[1].shape, std::vector<int64_t>{128});
  EXPECT_EQ(tensors[1].first_row, 128);
}

TEST(NamedModelTest, Phi3sFilesHaveFusedWeightsAndSmollm3sLayersMayLackRope) {
  const Model phi3 = *NamedModel(LlamaOf("phi3", 1, 32, 4, 2, 48, 37, false));
  for (const ParameterSpec& parameter : Parameters(phi3.blocks[1])) {
    EXPECT_TRUE(parameter.parts.empty()) << parameter.name;
  }
  const Model smollm3 = *NamedModel(LlamaOf("smollm3", 8, 32, 4, 2, 48, 37, false));
  for (int i = 0; i < 8; ++i) {
    const LayerSpec& attention = smollm3.blocks[i + 1].layers[0].body[2];
    EXPECT_EQ(attention.rope_theta, i == 3 || i == 7 ? 0 : 10000) << i;
  }
}

TEST(NamedModelTest, SomeLayersOrAllHaveTheWindow) {
  const auto windows_of = [](const char* name, std::vector<int64_t> layers) {
    ModelOptions options = LlamaOf(name, 3, 32, 4, 2, 48, 37, false);
    options.window = 5;
    options.window_layers = std::move(layers);
    const Model model = *NamedModel(options);
    std::vector<int64_t> windows;
    for (const BlockSpec& block : model.blocks) {
      ForEachLayer(block.layers, [&](const LayerSpec& layer) {
        if (layer.kind == LayerKind::kAttention) windows.push_back(layer.window);
      });
    }
    return windows;
  };
  EXPECT_THAT(windows_of("mistral", {}), ElementsAre(5, 5, 5));
  EXPECT_THAT(windows_of("qwen2", {0, 2}), ElementsAre(5, 0, 5));
  EXPECT_THAT(windows_of("smollm3", {1}), ElementsAre(0, 5, 0));
}

TEST(NamedModelTest, LayersOfAWindowAscendAndExist) {
  ModelOptions options = LlamaOf("qwen2", 3, 32, 4, 2, 48, 37, false);
  options.window_layers = {1};
  EXPECT_THAT(Refusal(NamedModel(options)),
              HasSubstr("qwen2: window_layers is [1], want none without a window"));
  options.window = 4;
  for (const std::vector<int64_t>& layers : {std::vector<int64_t>{3}, {2, 1}, {1, 1}}) {
    options.window_layers = layers;
    EXPECT_THAT(Refusal(NamedModel(options)), HasSubstr("want some of its layers 0 to 2, asc"));
  }
}

TEST(NamedModelTest, WhatAModelLikeLlamaDoesNotHaveIsRefused) {
  ModelOptions options = LlamaOf("mistral", 1, 32, 4, 2, 48, 37, false);
  options.attention_bias = AttentionBias::kAll;
  EXPECT_THAT(Refusal(NamedModel(options)), HasSubstr("mistral: attention_bias is all, want none"));
  options.attention_bias = AttentionBias::kNone;
  options.mlp_bias = true;
  EXPECT_THAT(Refusal(NamedModel(options)), HasSubstr("mistral: mlp_bias is true, want false"));
  options.mlp_bias = false;
  options.no_rope_every = 2;
  EXPECT_THAT(Refusal(NamedModel(options)), HasSubstr("mistral: no_rope_every is 2, want 0"));
  options.no_rope_every = 0;
  options.window = 8;
  options.window_layers = {0};
  EXPECT_THAT(Refusal(NamedModel(options)),
              HasSubstr("mistral: window_layers is [0], want none: all of its layers have"));
  options = LlamaOf("llama", 1, 32, 4, 2, 48, 37, false);
  options.attention_bias = AttentionBias::kQkv;
  EXPECT_THAT(Refusal(NamedModel(options)),
              HasSubstr("llama: attention_bias is qkv, want none or all"));
  options.attention_bias = AttentionBias::kNone;
  options.window = 8;
  EXPECT_THAT(Refusal(NamedModel(options)), HasSubstr("llama: window is 8, want 0"));
  options.window = 0;
  options.rope_scaling.kind = RopeScalingKind::kLinear;
  EXPECT_THAT(Refusal(NamedModel(options)), HasSubstr("llama: rope_scaling.factor is 0"));
}

TEST(NamedModelTest, Gpt2BlocksAndParametersHaveHuggingFacesNames) {
  ModelOptions options = *OptionsOf("gpt2");
  options.input = {1, 16};
  options.layers = 2;
  options.dropout = 0.1;
  const Model model = *NamedModel(options);
  EXPECT_THAT(BlockNames(model), ElementsAre("embedding", "h.0", "h.1", "head"));
  EXPECT_THAT(ParameterNames(model.blocks[0]),
              ElementsAre("transformer.wte.weight", "transformer.wpe.weight"));
  EXPECT_THAT(ParameterNames(model.blocks[1]),
              ElementsAre("transformer.h.0.ln_1.weight", "transformer.h.0.ln_1.bias",
                          "transformer.h.0.attn.c_attn.weight", "transformer.h.0.attn.c_attn.bias",
                          "transformer.h.0.attn.c_proj.weight", "transformer.h.0.attn.c_proj.bias",
                          "transformer.h.0.ln_2.weight", "transformer.h.0.ln_2.bias",
                          "transformer.h.0.mlp.c_fc.weight", "transformer.h.0.mlp.c_fc.bias",
                          "transformer.h.0.mlp.c_proj.weight", "transformer.h.0.mlp.c_proj.bias"));
  EXPECT_THAT(ParameterNames(model.blocks[3]),
              ElementsAre("transformer.ln_f.weight", "transformer.ln_f.bias", "lm_head.weight"));
}

TEST(NamedModelTest, Gpt2WithoutBiasesHasAllElse) {
  ModelOptions options = *OptionsOf("gpt2");
  options.input = {1, 1024};
  options.classes = 50257;
  options.bias = false;
  const Model model = *NamedModel(options);
  // A block lacks biases of 3 + 1 + 4 + 1 widths and of its two norms; the last norm lacks one
  // more.
  EXPECT_EQ(TrainableParameters(model), 124439808 - 768 * (12 * 11 + 1));
  EXPECT_THAT(ParameterNames(model.blocks[1]),
              ElementsAre("transformer.h.0.ln_1.weight", "transformer.h.0.attn.c_attn.weight",
                          "transformer.h.0.attn.c_proj.weight", "transformer.h.0.ln_2.weight",
                          "transformer.h.0.mlp.c_fc.weight", "transformer.h.0.mlp.c_proj.weight"));
  EXPECT_THAT(ParameterNames(model.blocks.back()),
              ElementsAre("transformer.ln_f.weight", "lm_head.weight"));
}

TEST(NamedModelTest, Gpt2WeightsStandTransposedInFilesAndStartAsPublished) {
  const Model model = LanguageModel("gpt2", 64);
  using Init = ParameterSpec::Init;
  for (const ParameterSpec& parameter : Parameters(model.blocks[1])) {
    if (parameter.shape.rank() < 2) continue;
    EXPECT_TRUE(parameter.transposed) << parameter.name;
    EXPECT_EQ(parameter.init, Init::kNormal) << parameter.name;
    const bool ends_branch = parameter.name.find("c_proj") != std::string::npos;
    EXPECT_NEAR(parameter.deviation, ends_branch ? 0.02 / std::sqrt(24.0) : 0.02, 1e-12)
        << parameter.name;
  }
  const ParameterSpec head = Parameters(model.blocks.back()).back();
  EXPECT_EQ(head.tied_to, "transformer.wte.weight");
  EXPECT_FALSE(head.transposed);
  EXPECT_EQ(head.shape, Parameters(model.blocks.front())[0].shape);
  EXPECT_EQ(head.deviation, Parameters(model.blocks.front())[0].deviation);
}

TEST(NamedModelTest, LlamasFusedWeightsStandInFilesUnderHuggingFacesNames) {
  ModelOptions options = *OptionsOf("llama");
  options.input = {1, 16};
  options.layers = 1;
  options.heads = 4;
  options.kv_heads = 2;
  options.width = 64;
  options.hidden = 96;
  const Model model = *NamedModel(options);
  EXPECT_THAT(BlockNames(model), ElementsAre("embedding", "layers.0", "head"));
  EXPECT_THAT(ParameterNames(model.blocks[0]), ElementsAre("model.embed_tokens.weight"));
  const std::vector<ParameterSpec> parameters = Parameters(model.blocks[1]);
  EXPECT_THAT(
      ParameterNames(model.blocks[1]),
      ElementsAre("model.layers.0.input_layernorm.weight",
                  "model.layers.0.self_attn.qkv_proj.weight",
                  "model.layers.0.self_attn.o_proj.weight",
                  "model.layers.0.post_attention_layernorm.weight",
                  "model.layers.0.mlp.gate_up_proj.weight", "model.layers.0.mlp.down_proj.weight"));
  EXPECT_EQ(parameters[1].shape, (Shape{128, 64}));
  ASSERT_EQ(parameters[1].parts.size(), 3u);
  const char* const names[] = {"q_proj", "k_proj", "v_proj"};
  const int64_t rows[] = {64, 32, 32};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(parameters[1].parts[i].name,
              "model.layers.0.self_attn." + std::string(names[i]) + ".weight");
    EXPECT_EQ(parameters[1].parts[i].rows, rows[i]);
  }
  EXPECT_EQ(parameters[4].parts[0].name, "model.layers.0.mlp.gate_proj.weight");
  EXPECT_EQ(parameters[4].parts[1].name, "model.layers.0.mlp.up_proj.weight");
  EXPECT_THAT(ParameterNames(model.blocks[2]), ElementsAre("model.norm.weight", "lm_head.weight"));
  EXPECT_EQ(Parameters(model.blocks[2])[1].tied_to, "");
}

LayerSpec EmbeddingOf(int64_t features) {
  LayerSpec embedding = DefaultLayer(LayerKind::kEmbedding);
  embedding.name = "wte";
  embedding.out_features = features;
  return embedding;
}

LayerSpec AttentionOf(int64_t heads, int64_t kv_heads) {
  LayerSpec attention = Of(LayerKind::kAttention, "attn");
  attention.heads = heads;
  attention.kv_heads = kv_heads;
  return attention;
}

ModelOptions SmallBert(BertHead head) {
  ModelOptions options = *OptionsOf("bert");
  options.input = {1, 16};
  options.layers = 1;
  options.heads = 4;
  options.width = 64;
  options.head = head;
  options.vocabulary = 100;
  options.classes = head == BertHead::kMasked ? 100 : 3;
  return options;
}

std::vector<std::string> FileNames(const BlockSpec& block) {
  std::vector<std::string> names;
  for (const ParameterSpec& parameter : Parameters(block)) {
    for (const FileTensor& tensor : FileTensors(parameter)) names.push_back(tensor.name);
  }
  return names;
}

TEST(NamedModelTest, EncodersHaveThePublishedNumberOfParameters) {
  ModelOptions bert = *OptionsOf("bert");
  bert.input = {1, 128};
  bert.context = 512;
  bert.classes = 30522;
  EXPECT_EQ(TrainableParameters(*NamedModel(bert)), 109514298);  // BertForMaskedLM
  bert.head = BertHead::kClasses;
  bert.vocabulary = 30522;
  bert.classes = 2;
  EXPECT_EQ(TrainableParameters(*NamedModel(bert)), 109483778);  // ...SequenceClassification
  ModelOptions vit = *OptionsOf("vit");
  vit.input = {1, 224, 224, 3};
  vit.classes = 1000;
  EXPECT_EQ(TrainableParameters(*NamedModel(vit)), 86567656);
}

TEST(NamedModelTest, BertsTensorsHaveHuggingFacesNames) {
  const Model model = *NamedModel(SmallBert(BertHead::kMasked));
  EXPECT_THAT(BlockNames(model), ElementsAre("embedding", "layer.0", "head"));
  EXPECT_THAT(FileNames(model.blocks[0]),
              ElementsAre("bert.embeddings.word_embeddings.weight",
                          "bert.embeddings.position_embeddings.weight",
                          "bert.embeddings.token_type_embeddings.weight",
                          "bert.embeddings.LayerNorm.weight", "bert.embeddings.LayerNorm.bias"));
  const std::string at = "bert.encoder.layer.0.";
  EXPECT_THAT(
      FileNames(model.blocks[1]),
      ElementsAre(at + "attention.self.query.weight", at + "attention.self.key.weight",
                  at + "attention.self.value.weight", at + "attention.self.query.bias",
                  at + "attention.self.key.bias", at + "attention.self.value.bias",
                  at + "attention.output.dense.weight", at + "attention.output.dense.bias",
                  at + "attention.output.LayerNorm.weight", at + "attention.output.LayerNorm.bias",
                  at + "intermediate.dense.weight", at + "intermediate.dense.bias",
                  at + "output.dense.weight", at + "output.dense.bias",
                  at + "output.LayerNorm.weight", at + "output.LayerNorm.bias"));
  EXPECT_THAT(
      FileNames(model.blocks[2]),
      ElementsAre("cls.predictions.transform.dense.weight", "cls.predictions.transform.dense.bias",
                  "cls.predictions.transform.LayerNorm.weight",
                  "cls.predictions.transform.LayerNorm.bias",
                  "bert.embeddings.word_embeddings.weight", "cls.predictions.bias"));
  EXPECT_THAT(FileNames(NamedModel(SmallBert(BertHead::kClasses))->blocks[2]),
              ElementsAre("bert.pooler.dense.weight", "bert.pooler.dense.bias", "classifier.weight",
                          "classifier.bias"));
}

TEST(NamedModelTest, VitsTensorsHaveHuggingFacesNames) {
  ModelOptions options = *OptionsOf("vit");
  options.input = {1, 32, 32, 3};
  options.layers = 1;
  options.patch = 4;
  const Model model = *NamedModel(options);
  EXPECT_THAT(BlockNames(model), ElementsAre("embedding", "layer.0", "head"));
  EXPECT_EQ(model.blocks[0].out, (Shape{1, 65, 768}));
  EXPECT_THAT(FileNames(model.blocks[0]),
              ElementsAre("vit.embeddings.patch_embeddings.projection.weight",
                          "vit.embeddings.patch_embeddings.projection.bias",
                          "vit.embeddings.cls_token", "vit.embeddings.position_embeddings"));
  EXPECT_EQ(FileTensors(Parameters(model.blocks[0])[2])[0].shape,
            (std::vector<int64_t>{1, 1, 768}));
  EXPECT_EQ(FileTensors(Parameters(model.blocks[0])[3])[0].shape,
            (std::vector<int64_t>{1, 65, 768}));
  const std::string at = "vit.encoder.layer.0.";
  EXPECT_THAT(
      FileNames(model.blocks[1]),
      ElementsAre(at + "layernorm_before.weight", at + "layernorm_before.bias",
                  at + "attention.attention.query.weight", at + "attention.attention.key.weight",
                  at + "attention.attention.value.weight", at + "attention.attention.query.bias",
                  at + "attention.attention.key.bias", at + "attention.attention.value.bias",
                  at + "attention.output.dense.weight", at + "attention.output.dense.bias",
                  at + "layernorm_after.weight", at + "layernorm_after.bias",
                  at + "intermediate.dense.weight", at + "intermediate.dense.bias",
                  at + "output.dense.weight", at + "output.dense.bias"));
  EXPECT_THAT(FileNames(model.blocks[2]), ElementsAre("vit.layernorm.weight", "vit.layernorm.bias",
                                                      "classifier.weight", "classifier.bias"));
}

TEST(NamedModelTest, AnEncoderOfTokensHasOneLabelOrOneForEachPosition) {
  const Model masked = *NamedModel(SmallBert(BertHead::kMasked));
  EXPECT_EQ(masked.positions, 16);
  EXPECT_TRUE(masked.is_language());
  const Model classes = *NamedModel(SmallBert(BertHead::kClasses));
  EXPECT_EQ(classes.positions, 1);
  EXPECT_TRUE(classes.tokens);
  EXPECT_FALSE(classes.is_language());
}

TEST(NamedModelTest, EncodersRefuseWhatDoesNotFit) {
  ModelOptions bert = SmallBert(BertHead::kClasses);
  bert.vocabulary = 0;
  EXPECT_EQ(Refusal(NamedModel(bert)),
            "bert: vocabulary is 0, want the number of the data's token ids, with head classes");
  bert = SmallBert(BertHead::kMasked);
  bert.vocabulary = 99;
  EXPECT_EQ(Refusal(NamedModel(bert)), "bert: vocabulary is 99, want the 100 classes");
  bert = SmallBert(BertHead::kMasked);
  bert.pad = 100;
  EXPECT_EQ(Refusal(NamedModel(bert)),
            "bert: pad is 100, want one of the vocabulary's 100 token ids");
  bert.pad = 0;
  bert.separator = 2;
  bert.types = 1;
  EXPECT_THAT(Refusal(NamedModel(bert)), HasSubstr("types is 1, want 2 to "));
  ModelOptions vit = *OptionsOf("vit");
  vit.input = {1, 32, 32, 3};
  vit.patch = 5;
  EXPECT_EQ(Refusal(NamedModel(vit)),
            "vit: patch is 5, want a divisor of the image's sides, 32 and 32 pixels");
  vit.patch = 0;
  EXPECT_EQ(Refusal(NamedModel(vit)), "vit: patch is 0, want at least 1");
  vit.patch = 4;
  vit.input = {1, 64};
  EXPECT_THAT(Refusal(NamedModel(vit)), HasSubstr("projection: conv on [1, 64]: want an input"));
}

TEST(CustomModelTest, PaddingNeedsIdsAndNoCausality) {
  LayerSpec attention = AttentionOf(4, 0);
  attention.pad = 0;
  EXPECT_THAT(Refusal(OneBlock({EmbeddingOf(24), attention, Linear("head", 10)}, {1, 16}, 10)),
              HasSubstr("pad is 0 with causal true, want causal: false"));
  attention.causal = false;
  EXPECT_TRUE(OneBlock({EmbeddingOf(24), attention, Linear("head", 10)}, {1, 16}, 10).ok());
  EXPECT_THAT(
      Refusal(OneBlock({attention, Of(LayerKind::kFirst), Linear("head", 10)}, {1, 16, 24}, 10)),
      HasSubstr("block only reads token ids, want an embedding"));
  attention.pad = 10;
  EXPECT_THAT(Refusal(OneBlock({EmbeddingOf(24), attention, Linear("head", 10)}, {1, 16}, 10)),
              HasSubstr("pad is 10, want 0 to 9"));
  attention.pad = 0;
  LayerSpec token = Of(LayerKind::kClassToken);
  token.name = "token";
  EXPECT_THAT(Refusal(OneBlock(
                  {EmbeddingOf(24), token, attention, Of(LayerKind::kFirst), Linear("head", 10)},
                  {1, 16}, 10)),
              HasSubstr("positions is 17, want 16 to 16"));
}

TEST(NamedModelTest, ALanguageModelTakesTokensAndGivesLogitsForEachPosition) {
  const Model model = LanguageModel("gpt2", 64, /*classes=*/65);
  EXPECT_TRUE(model.tokens);
  EXPECT_EQ(model.positions, 64);
  EXPECT_EQ(model.blocks[0].out, (Shape{1, 64, 768}));
  EXPECT_EQ(model.blocks.back().out, (Shape{1, 64, 65}));
  EXPECT_FALSE(Named("resnet8").tokens);
  EXPECT_EQ(Named("resnet8").positions, 1);
}

TEST(NamedModelTest, LearnedPositionsMayBeMoreThanASampleHas) {
  ModelOptions options = *OptionsOf("gpt2");
  options.input = {1, 64};
  options.context = 1024;
  EXPECT_EQ(Parameters(NamedModel(options)->blocks[0])[1].shape, (Shape{1024, 768}));
  options.context = 32;
  EXPECT_THAT(Refusal(NamedModel(options)),
              HasSubstr("context is 32, want at least the 64 positions of a sample"));
}

TEST(NamedModelTest, LanguageModelsRefuseSizesThatDoNotFit) {
  const auto refusal = [](const std::string& name, int64_t ModelOptions::*field, int64_t value) {
    ModelOptions options = *OptionsOf(name);
    options.input = {1, 16};
    options.*field = value;
    return Refusal(NamedModel(options));
  };
  EXPECT_EQ(refusal("gpt2", &ModelOptions::heads, 7),
            "gpt2: heads is 7, want a divisor of the width 768");
  EXPECT_EQ(refusal("gpt2", &ModelOptions::layers, 0), "gpt2: layers is 0, want 1 to 4096");
  EXPECT_EQ(refusal("llama", &ModelOptions::kv_heads, 3),
            "llama: kv_heads is 3, want a divisor of the 8 heads");
  EXPECT_EQ(refusal("llama", &ModelOptions::width, 1 << 20),
            "llama: width is 1048576, want 1 to 65536");
  ModelOptions options = *OptionsOf("gpt2");
  options.input = {1, 8, 8, 1};
  EXPECT_THAT(Refusal(NamedModel(options)),
              HasSubstr("transformer.wte: embedding on [1, 8, 8, 1]: want it first in a model, on "
                        "token ids [1, positions]"));
  options.input = {1, 16};
  options.dropout = 1;
  EXPECT_THAT(Refusal(NamedModel(options)), HasSubstr("rate is 1, want at least 0 and under 1"));
}

TEST(CustomModelTest, AnEmbeddingIsFirstAndHasTheVocabularyOfTheClasses) {
  const absl::StatusOr<Model> model = OneBlock({EmbeddingOf(8), Linear("head", 10)}, {1, 16}, 10);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->blocks[0].layers[0].vocabulary, 10);
  LayerSpec few = EmbeddingOf(8);
  few.vocabulary = 9;
  EXPECT_THAT(Refusal(OneBlock({few, Linear("head", 10)}, {1, 16}, 10)),
              HasSubstr("wte: vocabulary is 9, want at least the 10 classes"));
  EXPECT_THAT(Refusal(OneBlock({Linear("fc", 10), EmbeddingOf(8)}, {1, 16}, 10)),
              HasSubstr("wte: embedding on [1, 10]: want it first in a model"));
  EXPECT_THAT(Refusal(OneBlock({Of(LayerKind::kPositionEmbedding, "wpe")}, {1, 10}, 10)),
              HasSubstr("want an input of shape [1, positions, features]"));
}

TEST(CustomModelTest, AnAttentionsFeaturesAreItsHeadsQueriesKeysAndValues) {
  const auto with = [](LayerSpec attention) {
    return OneBlock({EmbeddingOf(24), attention, Linear("head", 10)}, {1, 16}, 10);
  };
  EXPECT_EQ(with(AttentionOf(4, 1))->blocks[0].layers[1].out, (Shape{1, 16, 16}));
  EXPECT_EQ(with(AttentionOf(4, 0))->blocks[0].layers[1].out, (Shape{1, 16, 8}));
  EXPECT_THAT(Refusal(with(AttentionOf(4, 3))),
              HasSubstr("kv_heads is 3, which does not divide 4 heads"));
  EXPECT_THAT(Refusal(with(AttentionOf(5, 5))), HasSubstr("want equal heads: 24 features"));
  EXPECT_THAT(Refusal(with(AttentionOf(0, 0))), HasSubstr("heads is 0, want 1 to 24"));
  LayerSpec odd = AttentionOf(8, 0);
  odd.rope_theta = 10000;
  EXPECT_THAT(Refusal(with(odd)), HasSubstr("rope_theta is 10000 with heads of 1"));
  LayerSpec random = AttentionOf(4, 1);
  random.dropout = -1;
  EXPECT_THAT(Refusal(with(random)), HasSubstr("dropout is -1"));
  EXPECT_THAT(Refusal(OneBlock({AttentionOf(4, 1)}, {1, 24}, 10)),
              HasSubstr("want an input of shape [1, positions, features]"));
}

TEST(CustomModelTest, SwigluHalvesTheFeatures) {
  EXPECT_EQ(OneBlock({EmbeddingOf(20), Of(LayerKind::kSwiglu)}, {1, 16}, 10)->blocks[0].out,
            (Shape{1, 16, 10}));
  EXPECT_THAT(Refusal(OneBlock({EmbeddingOf(9), Of(LayerKind::kSwiglu)}, {1, 16}, 10)),
              HasSubstr("want an even number of features, not 9"));
}

TEST(CustomModelTest, ATiedLayerCopiesTheEmbeddingFromTheLastBlock) {
  LayerSpec head = Linear("head", 10);
  head.tied_to = "wte";
  const auto with = [](const LayerSpec& embedding, const LayerSpec& last) {
    return CustomModel("mine", {{"a", {embedding}, {}, {}}, {"b", {last}, {}, {}}}, {1, 16}, 10);
  };
  LayerSpec embedding = EmbeddingOf(8);
  embedding.deviation = 0.5;
  const absl::StatusOr<Model> model = with(embedding, head);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->blocks[1].layers[0].deviation, 0.5);
  embedding.vocabulary = 12;
  EXPECT_THAT(Refusal(with(embedding, head)),
              HasSubstr("head: tied_to is wte, whose weight is [12, 8], want [10, 8]"));
  head.tied_to = "wpe";
  EXPECT_THAT(Refusal(with(EmbeddingOf(8), head)),
              HasSubstr("head: tied_to is wpe, want wte, the model's embedding"));
  EXPECT_THAT(Refusal(OneBlock({head}, {1, 8}, 10)), HasSubstr("but the model has no embedding"));
  head.tied_to = "wte";
  EXPECT_THAT(Refusal(CustomModel(
                  "mine", {{"a", {EmbeddingOf(8), head}, {}, {}}, {"b", {Linear("l", 10)}, {}, {}}},
                  {1, 16}, 10)),
              HasSubstr("which only a layer of the last block may be"));
}

TEST(CustomModelTest, ALanguageModelEndsWithLogitsForEachPosition) {
  EXPECT_THAT(Refusal(OneBlock({EmbeddingOf(8)}, {1, 16}, 10)),
              HasSubstr("gives [1, 16, 8], want [1, 16, 10]"));
}

TEST(CustomModelTest, EpsilonIsASmallPositiveNumber) {
  LayerSpec norm = Of(LayerKind::kRmsNorm, "n");
  norm.epsilon = 0;
  EXPECT_THAT(Refusal(OneBlock({norm}, {1, 10}, 10)), HasSubstr("epsilon is 0"));
}

}  // namespace
}  // namespace thinwire
