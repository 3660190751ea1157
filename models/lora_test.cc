#include "models/lora.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/cost.h"
#include "models/frozen.h"
#include "models/zoo.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Model SmallModel(const std::string& name) {
  ModelOptions options = *OptionsOf(name);
  options.input = {1, 8};
  options.classes = 50;
  options.layers = 2;
  options.heads = 4;
  if (options.family == ModelFamily::kLlama) options.kv_heads = 2;
  options.width = 16;
  options.hidden = 24;
  return *NamedModel(options);
}

LoraSpec SpecOf(std::vector<std::string> modules, std::vector<int64_t> layers = {}) {
  LoraSpec spec;
  spec.rank = 4;
  spec.alpha = 8;
  spec.modules = std::move(modules);
  spec.layers = std::move(layers);
  return spec;
}

std::vector<std::string> TrainedOf(const Model& model) {
  std::vector<std::string> names;
  for (const BlockSpec& block : model.blocks) {
    for (const ParameterSpec& parameter : Parameters(block)) {
      if (parameter.is_trained()) {
        names.push_back(parameter.name + " " + parameter.shape.ToString());
      }
    }
  }
  return names;
}

std::string ErrorWithAdapters(const LoraSpec& spec) {
  const absl::Status status = WithAdapters(SmallModel("llama"), spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(WithAdaptersTest, EachModuleOfTheFilesHasItsOwn) {
  const std::string at = "model.layers.1.self_attn.";
  EXPECT_THAT(TrainedOf(*WithAdapters(SmallModel("llama"), SpecOf({"q_proj", "v_proj"}, {1}))),
              ElementsAre(at + "q_proj.lora_A.weight [4, 16]", at + "q_proj.lora_B.weight [16, 4]",
                          at + "v_proj.lora_A.weight [4, 16]", at + "v_proj.lora_B.weight [8, 4]"));
  EXPECT_THAT(TrainedOf(*WithAdapters(SmallModel("gpt2"), SpecOf({"c_attn"}, {0}))),
              ElementsAre("transformer.h.0.attn.c_attn.lora_A.weight [4, 16]",
                          "transformer.h.0.attn.c_attn.lora_B.weight [48, 4]"));
}

TEST(WithAdaptersTest, LinearIsAllLinearLayersButTheHead) {
  EXPECT_THAT(TrainedOf(*WithAdapters(SmallModel("llama"), SpecOf({kAllLinear}))),
              SizeIs(2 * 2 * 7));
  EXPECT_THAT(TrainedOf(*WithAdapters(SmallModel("gpt2"), SpecOf({kAllLinear}))),
              SizeIs(2 * 2 * 4));
}

TEST(WithAdaptersTest, LinearAmongOthersIsAllLinearLayersToo) {
  EXPECT_EQ(TrainedOf(*WithAdapters(SmallModel("llama"), SpecOf({"q_proj", kAllLinear}))),
            TrainedOf(*WithAdapters(SmallModel("llama"), SpecOf({kAllLinear}))));
}

TEST(WithAdaptersTest, WhatStandsBeforeTheFirstAdapterGoesForwardOnly) {
  EXPECT_EQ(FirstTrainedBlock(*WithAdapters(SmallModel("llama"), SpecOf({"q_proj"}))), 1);
  EXPECT_EQ(FirstTrainedBlock(*WithAdapters(SmallModel("llama"), SpecOf({"q_proj"}, {1}))), 2);
}

TEST(WithAdaptersTest, RefusesWhatNoLayerHas) {
  EXPECT_THAT(ErrorWithAdapters(SpecOf({"c_attn"})),
              HasSubstr("modules: c_attn, want one of down_proj, gate_proj, k_proj, o_proj"));
  EXPECT_THAT(ErrorWithAdapters(SpecOf({"lm_head"})), HasSubstr("between embedding and head"));
  EXPECT_THAT(ErrorWithAdapters(SpecOf({"q_proj"}, {7})), HasSubstr("layers: 7, which"));
}

TEST(WithAdaptersTest, RefusesAModelWithoutLinearLayersBetweenItsEnds) {
  ModelOptions options = *OptionsOf("resnet8");
  options.input = {1, 8, 8, 1};
  const absl::Status status = WithAdapters(*NamedModel(options), SpecOf({kAllLinear})).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("modules: linear, want a linear layer between embedding and head; model "
                        "resnet8 has no such layer"));
}

// q_proj makes 16 features of 16, for 8 positions.
constexpr double kPositions = 8, kWidth = 16, kRank = 4;

TEST(BackwardFlopsTest, AdaptersHaveGradientsOfTheirWeights) {
  const Model plain = SmallModel("llama");
  const Model adapted = *WithAdapters(plain, SpecOf({"q_proj"}));
  const double adapters = 2 * kPositions * kRank * (kWidth + kWidth);
  EXPECT_EQ(ForwardFlops(adapted.blocks[1]), ForwardFlops(plain.blocks[1]) + adapters);
  // Linear layers have the gradient of their input alone, an attention has all of it.
  EXPECT_EQ(BackwardFlops(adapted, 1),
            ForwardFlops(plain.blocks[1]) + AttentionFlops(plain.blocks[1]) + 2 * adapters);
}

TEST(SegmentCostsTest, AnAdapterKeepsWhatItMakesOfItsInput) {
  const auto kept = [](const std::vector<std::string>& modules) {
    return SegmentCosts(*WithAdapters(SmallModel("llama"), SpecOf(modules)), {})[0].kept_elements;
  };
  // Both are modules of one layer, which keeps its input for either.
  EXPECT_EQ(kept({"q_proj", "v_proj"}) - kept({"q_proj"}), 2 * kPositions * kRank);
}

}  // namespace
}  // namespace thinwire
