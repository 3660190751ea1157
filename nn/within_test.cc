// Checks that a model whose stream stays in a subspace loses nothing at its cuts, however long it
// is trained.
#include "nn/within.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "models/bottleneck.h"
#include "models/partition.h"
#include "nn/loss.h"
#include "nn/optimizer.h"
#include "nn/segment/segment_testing.h"

namespace thinwire {
namespace {

constexpr int64_t kBatch = 4, kWidth = 5;

Model Narrow(const std::string& name) {
  const Model model = TinyLanguageModel(name, /*dropout=*/0, /*tied=*/false);
  const std::string block = name == "llama" ? "layers.0" : "h.0";
  BottleneckSpec spec;
  spec.kind = BottleneckKind::kSubspace;
  spec.width = kWidth;
  return *WithBottlenecks(model, *NamedCuts(model, {"embedding", block}), {spec, spec});
}

// Returns the same blocks without what stands at the cuts.
std::vector<BlockSpec> Uncut(const Model& model) {
  std::vector<BlockSpec> blocks = model.blocks;
  bool is_first_anchor = true;
  for (BlockSpec& block : blocks) {
    auto& layers = block.layers;
    layers.erase(std::remove_if(layers.begin(), layers.end(),
                                [&](LayerSpec& layer) {
                                  layer.within.clear();
                                  for (LayerSpec& inner : layer.body) inner.within.clear();
                                  if (layer.kind == LayerKind::kAnchor && is_first_anchor) {
                                    is_first_anchor = false;
                                    return false;
                                  }
                                  return layer.kind == LayerKind::kProject ||
                                         layer.kind == LayerKind::kExpand ||
                                         layer.kind == LayerKind::kAnchor;
                                }),
                 layers.end());
  }
  Model uncut;
  uncut.blocks = blocks;
  uncut.input = model.input;
  uncut.classes = model.classes;
  EXPECT_TRUE(FillShapes(&uncut).ok());
  return uncut.blocks;
}

const Parameter& Find(Segment& segment, const std::string& name) {
  for (const Parameter& parameter : segment.parameters()) {
    if (parameter.spec.name == name) return parameter;
  }
  ADD_FAILURE() << name;
  return segment.parameters()[0];
}

class WithinTest : public testing::TestWithParam<std::tuple<const char*, OptimizerKind>> {};

TEST_P(WithinTest, ACutLosesNothingBeforeAndBehindTraining) {
  const auto [name, kind] = GetParam();
  const Model model = Narrow(name);
  const auto ops = NewCpuOps(1);
  const auto narrow = Built(model.blocks, ops.get()), uncut = Built(Uncut(model), ops.get());
  OptimizerSpec spec = DefaultOptimizer(kind);
  spec.weight_decay = 0.1;
  spec.lr = spec.adamw_lr = 0.01;
  const auto optimizer = *NewOptimizer(spec, narrow->parameters(), CpuDevice(), ops.get());
  const Shape shape = model.input.WithBatch(kBatch);
  Pass pass = Mode::kTrain;
  pass.ids = RandomIds(shape, model.classes, "ids");
  const std::vector<int32_t> labels(kBatch * kTinyPositions, 3);
  std::vector<double> losses;
  for (int step = 0; step < 20; ++step) {
    for (const Parameter& to : uncut->parameters()) {
      const Tensor& from = Find(*narrow, to.spec.name).value;
      std::copy(from.floats().begin(), from.floats().end(), to.value.floats().begin());
    }
    ASSERT_TRUE(uncut->ParametersChanged().ok());
    Saved saved, unused;
    const Tensor y = *narrow->Forward(pass.ids, pass, &saved);
    EXPECT_LT(RelativeDistance(y, *uncut->Forward(pass.ids, pass, &unused)), 2e-5) << step;
    const Tensor rows(y.buffer(), DType::kF32, {kBatch * kTinyPositions, kTinyVocabulary});
    Tensor dlogits;
    losses.push_back(SoftmaxCrossEntropy(rows, kTinyVocabulary, labels, kBatch * kTinyPositions,
                                         ops.get(), &dlogits)
                         ->loss);
    const Tensor dy(dlogits.buffer(), DType::kF32, y.shape());
    ASSERT_TRUE(narrow->Backward(dy, &saved).ok());
    ASSERT_TRUE(optimizer->Step(0.01).ok());
    ASSERT_TRUE(narrow->ParametersChanged().ok());
  }
  EXPECT_LT(losses.back(), 0.7 * losses.front());
}

TEST_P(WithinTest, BasesAndAnchorsAreOneAndStayAsTheyStart) {
  const auto [name, kind] = GetParam();
  const Model model = Narrow(name);
  const auto ops = NewCpuOps(1);
  const auto segment = Built(model.blocks, ops.get());
  const std::string second = std::string(name) == "llama" ? "layers.0" : "h.0";
  const std::vector<float> basis =
      Values(Find(*segment, "bottleneck.embedding.encode.weight").value);
  const std::vector<float> anchor =
      Values(Find(*segment, "bottleneck.embedding.anchor.weight").value);
  const auto optimizer =
      *NewOptimizer(DefaultOptimizer(kind), segment->parameters(), CpuDevice(), ops.get());
  ASSERT_TRUE(optimizer->Step(0.1).ok());
  for (const std::string& copy : {std::string("embedding.encode"), std::string("embedding.decode"),
                                  second + ".encode", second + ".decode"}) {
    EXPECT_EQ(Values(Find(*segment, "bottleneck." + copy + ".weight").value), basis) << copy;
  }
  for (const std::string& copy : {std::string("embedding.anchor"), second + ".decode_anchor"}) {
    EXPECT_EQ(Values(Find(*segment, "bottleneck." + copy + ".weight").value), anchor) << copy;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, WithinTest,
                         testing::Combine(testing::Values("gpt2", "llama"),
                                          testing::Values(OptimizerKind::kAdamW,
                                                          OptimizerKind::kMuon)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "_" +
                                  Name(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace thinwire
