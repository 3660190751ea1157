#include "models/parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/cost.h"
#include "models/file_tensors.h"
#include "models/zoo.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModelOptions Small(const std::string& name) {
  ModelOptions options = *OptionsOf(name);
  options.input = {1, 8};
  options.classes = 20;
  options.layers = 2;
  options.heads = 4;
  options.width = 16;
  return options;
}

std::vector<std::string> NamesOf(const std::vector<ParameterSpec>& parameters) {
  std::vector<std::string> names;
  for (const ParameterSpec& parameter : parameters) names.push_back(parameter.name);
  return names;
}

TEST(PartsTest, ABlocksParametersAreThoseOfItsPartsAndOfWhatIsWhole) {
  const Model model = *DividedIntoParts(*NamedModel(Small("gpt2")), 2);
  EXPECT_THAT(
      NamesOf(Parameters(model.blocks[1].layers[0])),
      ElementsAre(
          "transformer.h.0.ln_1.weight", "transformer.h.0.ln_1.bias",
          "transformer.h.0.attn.c_attn.part0.weight", "transformer.h.0.attn.c_attn.part0.bias",
          "transformer.h.0.attn.c_proj.part0.weight", "transformer.h.0.attn.c_attn.part1.weight",
          "transformer.h.0.attn.c_attn.part1.bias", "transformer.h.0.attn.c_proj.part1.weight",
          "transformer.h.0.attn.c_proj.bias"));
  ASSERT_EQ(SumsOf(model.blocks[1]).size(), 2u);
  EXPECT_EQ(SumsOf(model.blocks[1])[1]->name, "transformer.h.0.mlp.c_proj");
  EXPECT_TRUE(SumsOf(model.blocks[0]).empty());
}

TEST(PartsTest, NumbersOfParametersFlopsAndKeptElementsAreThoseOfTheWhole) {
  for (const char* name : {"gpt2", "llama", "qwen2", "qwen3", "phi3", "bert"}) {
    const Model whole = *NamedModel(Small(name)), divided = *DividedIntoParts(whole, 4);
    EXPECT_EQ(TrainableParameters(divided), TrainableParameters(whole)) << name;
    const SegmentCost a = SegmentCosts(whole, {})[0];
    const SegmentCost b = SegmentCosts(divided, {})[0];
    EXPECT_EQ(b.forward_flops, a.forward_flops) << name;
    EXPECT_EQ(b.kept_elements, a.kept_elements) << name;
  }
}

TEST(PartsTest, ABiasInThreeTensorsIsDividedHeadByHead) {
  ModelOptions options = Small("qwen2");
  options.kv_heads = 2;
  const Model model = *DividedIntoParts(*NamedModel(options), 2);
  const std::vector<ParameterSpec> parameters = Parameters(model.blocks[1].layers[0]);
  ASSERT_EQ(parameters[2].name, "model.layers.0.self_attn.qkv_proj.part0.bias");
  const ParameterSpec of_second = parameters[5];
  ASSERT_EQ(of_second.name, "model.layers.0.self_attn.qkv_proj.part1.bias");
  const std::vector<FileTensor> tensors = FileTensors(of_second);
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors[1].name, "model.layers.0.self_attn.k_proj.bias");
  EXPECT_EQ(tensors[1].shape, std::vector<int64_t>{8});
  EXPECT_EQ(tensors[1].slice_rows[0].first, 4);
  EXPECT_EQ(tensors[1].slice_rows[0].count, 4);
}

// The norms of heads have the same scales in all parts.
TEST(PartsTest, AttentionsWithNormsOfHeadsStayWhole) {
  const Model model = *DividedIntoParts(*NamedModel(Small("qwen3")), 2);
  ASSERT_EQ(SumsOf(model.blocks[1]).size(), 1u);
  EXPECT_EQ(SumsOf(model.blocks[1])[0]->name, "model.layers.0.mlp.down_proj");
}

// A BERT's pooler and classifier have an activation between them, as an MLP has.
TEST(PartsTest, TheHeadStaysWhole) {
  ModelOptions options = Small("bert");
  options.head = BertHead::kClasses;
  options.vocabulary = 20;
  options.classes = 4;
  const Model model = *DividedIntoParts(*NamedModel(options), 2);
  EXPECT_TRUE(SumsOf(model.blocks.back()).empty());
  EXPECT_EQ(SumsOf(model.blocks[1]).size(), 2u);
}

TEST(PartsTest, CodesOfSumsHaveAnEncoderForEachPartAndOneDecoder) {
  const Model divided = *DividedIntoParts(*NamedModel(Small("gpt2")), 2);
  const Model model = *WithCodesOfSums(divided, /*width=*/4, /*first=*/1);
  EXPECT_EQ(SumsOf(model.blocks[1])[0]->out, (Shape{1, 8, 16}));  // the first block has none
  const LayerSpec& sum = *SumsOf(model.blocks[2])[0];
  EXPECT_EQ(sum.out, (Shape{1, 8, 4}));
  EXPECT_EQ(sum.body[1].body.back().name, "transformer.h.1.attn.c_proj.encoder.part1");
  const std::vector<LayerSpec>& branch = model.blocks[2].layers[0].body;
  EXPECT_EQ(branch.back().name, "transformer.h.1.attn.c_proj.decoder");
  EXPECT_EQ(branch.back().out, (Shape{1, 8, 16}));
  // Files have the bias under its own name.
  EXPECT_EQ(Parameters(branch.back())[1].parts.front().name, "transformer.h.1.attn.c_proj.bias");
  EXPECT_THAT(std::string(WithCodesOfSums(divided, 16, 0).status().message()),
              HasSubstr("width is 16, want 1 to 15: transformer.h.0.attn.c_proj has 16 features"));
}

TEST(PartsTest, SomeOfThemAloneHaveTheirOwnParameters) {
  Model model = *DividedIntoParts(*NamedModel(Small("gpt2")), 4);
  KeepParts(1, 3, &model.blocks);
  const LayerSpec* const sum = SumsOf(model.blocks[1])[0];
  ASSERT_EQ(sum->body.size(), 2u);
  EXPECT_EQ(sum->body[0].part, 1);
  EXPECT_EQ(sum->body[1].part, 2);
  EXPECT_THAT(NamesOf(Parameters(*sum)).front(), HasSubstr("part1"));
}

std::string Refusal(const ModelOptions& options, int64_t parts) {
  return std::string(DividedIntoParts(*NamedModel(options), parts).status().message());
}

TEST(PartsTest, WhatCannotBeDividedIsRefusedByName) {
  EXPECT_EQ(Refusal(Small("gpt2"), 3),
            "tensor.parts is 3: transformer.h.0.attn has 4 heads, want a multiple of the parts");
  ModelOptions shared = Small("llama");
  shared.kv_heads = 1;
  EXPECT_EQ(Refusal(shared, 2),
            "tensor.parts is 2: model.layers.0.self_attn has 1 heads of keys and values, want a "
            "multiple of the parts");
  ModelOptions narrow = Small("bert");
  narrow.hidden = 42;
  EXPECT_THAT(Refusal(narrow, 4),
              HasSubstr("bert.encoder.layer.0.output.dense has 42 hidden features"));
  ModelOptions resnet = *OptionsOf("resnet18");
  resnet.input = {1, 32, 32, 3};
  EXPECT_EQ(Refusal(resnet, 2),
            "tensor.parts is 2: model resnet18 has no attention and no MLP to divide, want 1");
}

}  // namespace
}  // namespace thinwire
