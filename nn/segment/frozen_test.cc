// Tests segments with frozen blocks: what is trained has the gradients that it has without them.
#include "models/frozen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "nn/segment/segment_testing.h"

namespace thinwire {
namespace {

struct FrozenCase {
  std::string name;
  Model model;
  Tensor x;
  std::vector<std::string> frozen;
};

Model TinyResNet() {
  ModelOptions options = *OptionsOf("resnet8");
  options.input = {1, 8, 8, 3};
  options.classes = 4;
  options.width = 8;
  return *NamedModel(options);
}

std::vector<FrozenCase> FrozenCases() {
  const Tensor ids = RandomIds({2, kTinyPositions}, kTinyVocabulary, "ids");
  const Tensor image = RandomTensor({2, 8, 8, 3}, "image");
  const Model gpt2 = TinyLanguageModel("gpt2"), llama = TinyLanguageModel("llama", 0, false);
  return {
      {"gpt2_between", TinyLanguageModel("gpt2", /*dropout=*/0.1), ids, {"h.1"}},
      {"gpt2_first", gpt2, ids, {"embedding", "h.0"}},
      {"gpt2_head", gpt2, ids, {"embedding", "h.1", "head"}},
      {"llama_between", llama, ids, {"layers.1", "head"}},
      {"llama_all_but_the_head", llama, ids, {"embedding", "layers"}},
      {"bert", TinyBert(BertHead::kClasses), PaddedIds(2), {"embedding", "layer.1"}},
      {"vit", TinyVit(), RandomTensor({2, 4, 6, 3}, "picture"), {"embedding", "layer.1"}},
      {"resnet_between", TinyResNet(), image, {"layer1", "layer3"}},
      {"resnet_first", TinyResNet(), image, {"stem", "layer1"}},
  };
}

// Results of one pass.
struct FrozenPass {
  std::vector<float> y;
  std::map<std::string, std::vector<float>> gradients, frozen;
  size_t kept_bytes = 0;
};

FrozenPass PassOf(const Model& model, const Tensor& x, bool recomputes = false,
                  bool splits = false) {
  const auto ops = NewCpuOps(2);
  SegmentOptions options;
  options.device = CpuDevice();
  options.ops = ops.get();
  options.init_seed = 3;
  options.dropout_seed = 4;
  options.needs_input_gradient = false;
  options.splits_backward = splits;
  if (recomputes) options.recompute = Recompute::kBlocks;
  const auto segment = *BuildSegment(model.blocks, options);
  Pass pass(Mode::kTrain, /*step=*/5);
  if (model.tokens) pass.ids = x;
  Saved saved;
  FrozenPass done;
  const Tensor y = *segment->Forward(x, pass, &saved);
  done.y = Values(y);
  done.kept_bytes = saved.bytes();
  EXPECT_TRUE(segment->Backward(RandomTensor(y.shape(), "dy"), &saved)->empty());
  EXPECT_TRUE(segment->BackwardWeights(&saved).ok());
  EXPECT_TRUE(saved.empty());
  for (const Parameter& parameter : segment->parameters()) {
    const std::string& name = parameter.spec.name;
    EXPECT_EQ(parameter.gradient.empty(), !parameter.spec.is_trained()) << name;
    if (parameter.spec.is_trained()) done.gradients[name] = Values(parameter.gradient);
    const bool is_frozen = parameter.spec.role == ParameterSpec::Role::kFrozen;
    if (is_frozen) done.frozen[name] = Values(parameter.value);
  }
  return done;
}

class FrozenTest : public testing::TestWithParam<FrozenCase> {};

TEST_P(FrozenTest, TheOthersHaveTheGradientsOfAWholePass) {
  const FrozenCase& a = GetParam();
  const FrozenPass whole = PassOf(a.model, a.x);
  const FrozenPass some = PassOf(*WithFrozen(a.model, a.frozen), a.x);
  EXPECT_EQ(some.y, whole.y);
  EXPECT_FALSE(some.gradients.empty());
  EXPECT_FALSE(some.frozen.empty());
  for (const auto& [name, gradient] : some.gradients) {
    EXPECT_EQ(gradient, whole.gradients.at(name)) << name;
  }
  EXPECT_LT(some.kept_bytes, whole.kept_bytes);
}

TEST_P(FrozenTest, RecomputingAndSplittingChangeNothing) {
  const Model model = *WithFrozen(GetParam().model, GetParam().frozen);
  const FrozenPass plain = PassOf(model, GetParam().x);
  EXPECT_EQ(PassOf(model, GetParam().x, /*recomputes=*/true).gradients, plain.gradients);
  EXPECT_EQ(PassOf(model, GetParam().x, false, /*splits=*/true).gradients, plain.gradients);
}

INSTANTIATE_TEST_SUITE_P(Models, FrozenTest, testing::ValuesIn(FrozenCases()),
                         [](const auto& info) { return info.param.name; });

TEST(ForwardOnlyTest, WhatStandsBeforeAllThatIsTrainedKeepsNothing) {
  const Tensor ids = RandomIds({2, kTinyPositions}, kTinyVocabulary, "ids");
  const Model model = *WithFrozen(TinyLanguageModel("gpt2"), {"embedding", "h.0"});
  const auto ops = NewCpuOps(1);
  const auto first = Built(absl::MakeSpan(model.blocks).subspan(0, 2), ops.get(), DType::kF32,
                           /*needs_input_gradient=*/false);
  Saved saved;
  ASSERT_TRUE(first->Forward(ids, Mode::kTrain, &saved).ok());
  EXPECT_EQ(saved.bytes(), 0u);
}

}  // namespace
}  // namespace thinwire
