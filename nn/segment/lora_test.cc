// Tests linear layers with adapters: what they compute, their gradients, and that cuts change
// nothing.
#include "models/lora.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "nn/segment/segment_testing.h"

namespace thinwire {
namespace {

constexpr double kAlpha = 6;
constexpr int64_t kRank = 4;

Model AdaptedModel(const Model& model, std::vector<std::string> modules, double dropout = 0) {
  LoraSpec spec;
  spec.rank = kRank;
  spec.alpha = kAlpha;
  spec.dropout = dropout;
  spec.modules = std::move(modules);
  absl::StatusOr<Model> adapted = WithAdapters(model, spec);
  EXPECT_TRUE(adapted.ok()) << adapted.status();
  return *std::move(adapted);
}

std::unique_ptr<Segment> BuiltOf(absl::Span<const BlockSpec> blocks, Ops* ops, bool needs_dx) {
  SegmentOptions options;
  options.device = CpuDevice();
  options.ops = ops;
  options.init_seed = 3;
  options.dropout_seed = 5;
  options.needs_input_gradient = needs_dx;
  return *BuildSegment(blocks, options);
}

// Gives B, which starts as zeros, small random values.
void FillB(Segment* segment) {
  for (Parameter& parameter : segment->parameters()) {
    if (!parameter.spec.is_trained() || parameter.spec.init != ParameterSpec::Init::kZeros)
      continue;
    const Tensor random = RandomTensor(parameter.spec.shape, parameter.spec.name);
    std::transform(random.floats().begin(), random.floats().end(), parameter.value.floats().begin(),
                   [](float value) { return value / 8; });
  }
  ASSERT_TRUE(segment->ParametersChanged().ok());
}

Tensor LoraIds() { return RandomIds({2, kTinyPositions}, kTinyVocabulary, "ids"); }

struct LoraCase {
  std::string name;
  Model model;
  std::vector<std::string> modules;
};

std::vector<LoraCase> LoraCases() {
  const Model gpt2 = TinyLanguageModel("gpt2"), llama = TinyLanguageModel("llama");
  return {{"gpt2_c_attn", gpt2, {"c_attn"}},
          {"gpt2_all", gpt2, {kAllLinear}},
          {"llama_q_v", llama, {"q_proj", "v_proj"}},
          {"llama_all", llama, {kAllLinear}}};
}

class LoraTest : public testing::TestWithParam<LoraCase> {
 protected:
  const std::unique_ptr<Ops> ops_ = NewCpuOps(1);
};

// Adds s B A to the rows of the weight that an adapter belongs to.
void Merge(const Model& adapted, Segment* from, Segment* to) {
  const double scale = kAlpha / kRank;
  for (const BlockSpec& block : adapted.blocks) {
    ForEachLayer(block.layers, [&](const LayerSpec& layer) {
      for (const AdapterSpec& adapter : layer.adapters) {
        const auto a =
            FindParameter(from->parameters(), adapter.name + ".lora_A.weight")->value.floats();
        const auto b =
            FindParameter(from->parameters(), adapter.name + ".lora_B.weight")->value.floats();
        const auto w = FindParameter(to->parameters(), layer.name + ".weight")->value.floats();
        const int64_t in = layer.in_features;
        for (int64_t row = 0; row < adapter.rows.count; ++row) {
          for (int64_t column = 0; column < in; ++column) {
            double sum = 0;
            for (int64_t k = 0; k < kRank; ++k) {
              sum +=
                  static_cast<double>(b[row * kRank + k]) * static_cast<double>(a[k * in + column]);
            }
            w[(adapter.rows.first + row) * in + column] += static_cast<float>(scale * sum);
          }
        }
      }
    });
  }
  ASSERT_TRUE(to->ParametersChanged().ok());
}

TEST_P(LoraTest, StartsAsTheModelAndIsTheMergedModel) {
  const Model adapted = AdaptedModel(GetParam().model, GetParam().modules);
  const auto plain = BuiltOf(GetParam().model.blocks, ops_.get(), false);
  const auto lora = BuiltOf(adapted.blocks, ops_.get(), false);
  const std::vector<float> start = Values(*plain->Forward(LoraIds(), Mode::kEvaluate, nullptr));
  EXPECT_EQ(Values(*lora->Forward(LoraIds(), Mode::kEvaluate, nullptr)), start);
  FillB(lora.get());
  Merge(adapted, lora.get(), plain.get());
  const Tensor unmerged = *lora->Forward(LoraIds(), Mode::kEvaluate, nullptr);
  const Tensor merged = *plain->Forward(LoraIds(), Mode::kEvaluate, nullptr);
  EXPECT_GT(RelativeDistance(Values(unmerged), start), 1e-3);
  EXPECT_LT(RelativeDistance(unmerged, merged), 1e-5);
}

TEST_P(LoraTest, GradientsAgreeWithDifferences) {
  const Model adapted = AdaptedModel(GetParam().model, GetParam().modules);
  const auto segment = BuiltOf(adapted.blocks, ops_.get(), false);
  FillB(segment.get());
  const Tensor r = RandomTensor({2, kTinyPositions, kTinyVocabulary}, "dy");
  const auto loss = [&] {
    const Tensor y = *segment->Forward(LoraIds(), Mode::kEvaluate, nullptr);
    double sum = 0;
    for (int64_t i = 0; i < y.elements(); ++i) {
      sum += static_cast<double>(y.floats()[i]) * static_cast<double>(r.floats()[i]);
    }
    return sum;
  };
  Saved saved;
  ASSERT_TRUE(segment->Forward(LoraIds(), Mode::kTrain, &saved).ok());
  ASSERT_TRUE(segment->Backward(r, &saved).ok());
  EXPECT_TRUE(saved.empty());
  for (Parameter& parameter : segment->parameters()) {
    if (!parameter.spec.is_trained()) continue;
    // Along the gradient the loss rises by step times its norm.
    const std::vector<float> gradient = Values(parameter.gradient);
    double norm = 0;
    for (const float g : gradient) norm += static_cast<double>(g) * static_cast<double>(g);
    norm = std::sqrt(norm);
    ASSERT_GT(norm, 0) << parameter.spec.name;
    constexpr double kStep = 1e-2;
    const auto moved = [&](double step) {
      for (size_t i = 0; i < gradient.size(); ++i) {
        parameter.value.floats()[i] += static_cast<float>(step * gradient[i] / norm);
      }
      EXPECT_TRUE(segment->ParametersChanged().ok());
      return loss();
    };
    const double up = moved(kStep), down = moved(-2 * kStep);
    (void)moved(kStep);
    EXPECT_NEAR((up - down) / (2 * kStep) / norm, 1, 0.02) << parameter.spec.name;
  }
}

TEST_P(LoraTest, AChainOfSegmentsEqualsOneBitForBit) {
  const Model model = AdaptedModel(GetParam().model, GetParam().modules, /*dropout=*/0.2);
  const Pass pass(Mode::kTrain, /*step=*/5, /*first_sample=*/2);
  const Tensor dy = RandomTensor({2, kTinyPositions, kTinyVocabulary}, "dy");
  std::map<std::string, std::vector<float>> of_whole, of_chain;
  const auto add = [](Segment* segment, std::map<std::string, std::vector<float>>* to) {
    for (const Parameter& parameter : segment->parameters()) {
      if (parameter.spec.is_trained()) (*to)[parameter.spec.name] = Values(parameter.gradient);
    }
  };
  const auto whole = BuiltOf(model.blocks, ops_.get(), false);
  FillB(whole.get());
  Saved saved_whole;
  const Tensor y = *whole->Forward(LoraIds(), pass, &saved_whole);
  ASSERT_TRUE(whole->Backward(dy, &saved_whole).ok());
  add(whole.get(), &of_whole);
  std::vector<std::unique_ptr<Segment>> chain;
  for (size_t i = 0; i < model.blocks.size(); ++i) {
    // Nothing before the first adapter is trained.
    chain.push_back(BuiltOf(absl::MakeSpan(model.blocks).subspan(i, 1), ops_.get(), i > 1));
    FillB(chain.back().get());
  }
  std::vector<Saved> saved(chain.size());
  Tensor x = LoraIds(), back = dy;
  for (size_t i = 0; i < chain.size(); ++i) x = *chain[i]->Forward(x, pass, &saved[i]);
  EXPECT_EQ(Values(x), Values(y));
  for (size_t i = chain.size(); i-- > 1;) back = *chain[i]->Backward(back, &saved[i]);
  for (const auto& segment : chain) add(segment.get(), &of_chain);
  EXPECT_EQ(of_chain, of_whole);
}

INSTANTIATE_TEST_SUITE_P(Models, LoraTest, testing::ValuesIn(LoraCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace thinwire
