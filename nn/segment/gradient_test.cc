// Checks every layer's gradients against numeric ones. For L = sum(r y) with a random r, dL/dv is
// (L(v + h) - L(v - h)) / 2h, summed in fp64, for the input and every parameter.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <ostream>
#include <set>

#include "models/bottleneck.h"
#include "models/parts.h"
#include "nn/segment/segment_testing.h"

namespace thinwire {
namespace {

struct Case {
  std::string name;
  std::vector<LayerSpec> layers;
  Shape input;
  int64_t batch = 2;
  double step = 0.25;                 // h; may be large where the function is linear
  double tolerance = 2e-5;            // relative to the greatest element of the gradient
  std::vector<BlockSpec> model = {};  // instead of `layers`
  int64_t vocabulary = 0;             // of the input, if that is token ids
  bool is_padded = false;             // whether the ids are PaddedIds
  // Tolerance of the result in bf16, relative to its norm.
  double bf16_tolerance = 0.01;

  std::vector<BlockSpec> blocks() const { return model.empty() ? OneBlock(layers, input) : model; }
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

LayerSpec BatchNormSpec(std::string name) {
  return LayerOf(LayerKind::kBatchNorm, std::move(name));
}
LayerSpec LayerNormSpec(std::string name, bool bias = true) {
  LayerSpec spec = LayerOf(LayerKind::kLayerNorm, std::move(name));
  spec.bias = bias;
  return spec;
}
LayerSpec RmsNormSpec(std::string name) { return LayerOf(LayerKind::kRmsNorm, std::move(name)); }
LayerSpec HeadNormSpec(int64_t heads, int64_t kv_heads) {
  LayerSpec spec = LayerOf(LayerKind::kHeadNorm, "qk");
  spec.heads = heads;
  spec.kv_heads = kv_heads;
  return spec;
}
LayerSpec ReluSpec() { return LayerOf(LayerKind::kReLU); }

LayerSpec MaxPoolSpec(int64_t kernel, int64_t stride, int64_t padding) {
  LayerSpec spec = LayerOf(LayerKind::kMaxPool);
  spec.kernel = kernel;
  spec.stride = stride;
  spec.padding = padding;
  return spec;
}

LayerSpec GeluSpec(GeluForm form) {
  LayerSpec spec = LayerOf(LayerKind::kGelu);
  spec.gelu = form;
  return spec;
}

LayerSpec PositionsSpec(int64_t context) {
  LayerSpec spec = DefaultLayer(LayerKind::kPositionEmbedding);
  spec.name = "p";
  spec.context = context;
  return spec;
}

LayerSpec ClassTokenSpec(std::string name) {
  LayerSpec spec = DefaultLayer(LayerKind::kClassToken);
  spec.name = std::move(name);
  return spec;
}

LayerSpec TypesSpec(std::string name) {
  LayerSpec spec = DefaultLayer(LayerKind::kTypeEmbedding);
  spec.name = std::move(name);
  return spec;
}

Case EmbeddingCase(std::string name, std::vector<LayerSpec> behind = {}) {
  LayerSpec spec = DefaultLayer(LayerKind::kEmbedding);
  spec.name = "e";
  spec.vocabulary = 5;
  spec.out_features = 7;
  behind.insert(behind.begin(), std::move(spec));
  Case c{std::move(name), std::move(behind), {1, 4}, 3};
  c.vocabulary = 5;
  return c;
}

Case LanguageCase(std::string name, const Model& model) {
  Case c{std::move(name), {}, model.input, 3};
  c.model = model.blocks;
  c.vocabulary = model.classes;
  return c;
}

Case BertCase(std::string name, const Model& model) {
  Case c = LanguageCase(std::move(name), model);
  c.batch = 6;
  c.is_padded = true;
  return c;
}

Case ImageCase(std::string name, const Model& model) {
  Case c{std::move(name), {}, model.input, 3};
  c.model = model.blocks;
  return c;
}

// Returns a Llama with such bottlenecks behind its embedding and its first block.
Case BottleneckCase(std::string name, BottleneckKind kind) {
  const Model model = TinyLanguageModel("llama", /*dropout=*/0, /*tied=*/false);
  BottleneckSpec spec;
  spec.kind = kind;
  spec.width = 5;
  const auto narrow =
      WithBottlenecks(model, *NamedCuts(model, {"embedding", "layers.0"}), {spec, spec});
  EXPECT_TRUE(narrow.ok()) << narrow.status();
  Case c = LanguageCase(std::move(name), *narrow);
  c.bf16_tolerance = 0.02;  // more results are rounded, and sums cancel
  return c;
}

// Sets a small step, as curved functions and kinks (ReLU, maximum) need; fp32 limits how small.
Case Curved(Case c) {
  c.step = 2e-3;
  c.tolerance = 1e-2;
  return c;
}

std::vector<Case> Cases() {
  const std::vector<LayerSpec> body = {ConvSpec("c1", 6, 3, 1, 1), BatchNormSpec("b1"), ReluSpec(),
                                       ConvSpec("c2", 6, 3, 1, 1), BatchNormSpec("b2")};
  const std::vector<LayerSpec> strided = {ConvSpec("c1", 6, 3, 2, 1), BatchNormSpec("b1")};
  const std::vector<LayerSpec> projection = {ConvSpec("p", 6, 1, 2, 0), BatchNormSpec("pb")};
  return {
      {"Conv3x3", {ConvSpec("c", 4, 3, 1, 1)}, {1, 5, 6, 3}, 3},
      {"Conv3x3OneImage", {ConvSpec("c", 4, 3, 1, 1)}, {1, 5, 6, 3}, 1},
      {"Conv3x3WithBias", {ConvSpec("c", 5, 3, 1, 1, true)}, {1, 5, 5, 3}},
      {"Conv3x3Stride2", {ConvSpec("c", 16, 3, 2, 1)}, {1, 7, 8, 16}},
      {"Conv3x3NoPadding", {ConvSpec("c", 4, 3, 1, 0)}, {1, 6, 5, 4}},
      {"Conv5x5", {ConvSpec("c", 3, 5, 1, 2)}, {1, 6, 6, 2}},
      {"Conv1x1Stride2", {ConvSpec("c", 8, 1, 2, 0)}, {1, 6, 6, 16}, 3},
      {"Linear", {LinearLayerSpec("l", 7)}, {1, 10}, 3},
      {"LinearOneRowNoBias", {LinearLayerSpec("l", 7, false)}, {1, 10}, 1},
      {"LinearOnSequences", {LinearLayerSpec("l", 7)}, {1, 4, 10}, 3},
      {"LinearOnImages", {LinearLayerSpec("l", 3, false)}, {1, 2, 4, 5}},
      {"FlattenThenLinear", {LayerOf(LayerKind::kFlatten), LinearLayerSpec("l", 4)}, {1, 3, 2, 5}},
      {"GlobalAvgPool", {LayerOf(LayerKind::kGlobalAvgPool)}, {1, 3, 4, 5}, 3},
      Curved({"MaxPoolOverlapping", {MaxPoolSpec(3, 2, 1)}, {1, 7, 6, 3}, 3}),
      Curved({"Relu", {ConvSpec("c", 4, 1, 1, 0), ReluSpec()}, {1, 4, 4, 3}}),
      Curved({"Maxout", {MaxoutSpec(3)}, {1, 4, 15}, 3}),
      Curved({"LayerNorm", {LayerNormSpec("n")}, {1, 37}, 4}),
      Curved({"LayerNormOnSequences", {LayerNormSpec("n")}, {1, 40, 5}, 3}),
      Curved({"LayerNormOnImages", {LayerNormSpec("n")}, {1, 4, 4, 16}, 3}),
      Curved({"LayerNormOneRow", {LayerNormSpec("n")}, {1, 48}, 1}),
      Curved({"LayerNormWithoutBias", {LayerNormSpec("n", /*bias=*/false)}, {1, 40, 5}, 3}),
      Curved({"HeadNorm", {HeadNormSpec(4, 2)}, {1, 5, 8 * 6}, 3}),
      Curved({"HeadNormsBeforeAttention",
              {HeadNormSpec(2, 1), AttentionOf(2, 1, /*rope_theta=*/100)},
              {1, 5, 4 * 8},
              3}),
      Curved({"BatchNorm", {BatchNormSpec("b")}, {1, 4, 4, 5}, 3}),
      Curved({"BatchNormOneImage", {BatchNormSpec("b")}, {1, 5, 5, 16}, 1}),
      Curved({"BatchNormRelu", {BatchNormSpec("b"), ReluSpec()}, {1, 4, 4, 16}, 3}),
      Curved({"BatchNormReluOddChannels", {BatchNormSpec("b"), ReluSpec()}, {1, 3, 3, 7}, 3}),
      Curved({"ResidualIdentity", {ResidualSpec(body), ReluSpec()}, {1, 4, 4, 6}, 3}),
      Curved({"ResidualOneImage", {ResidualSpec(body), ReluSpec()}, {1, 4, 4, 6}, 1}),
      Curved({"ResidualWithoutRelu", {ResidualSpec(body)}, {1, 4, 4, 6}}),
      Curved(
          {"ResidualProjected", {ResidualSpec(strided, projection), ReluSpec()}, {1, 6, 6, 3}, 3}),
      Curved({"ResidualBehindRelu",
              {ResidualSpec(body), ReluSpec(), ResidualSpec({ConvSpec("d", 6, 3, 1, 1)})},
              {1, 4, 4, 6},
              3}),
      Curved({"ResidualsBehindBatchNorm",
              {ResidualSpec(body), ResidualSpec({ConvSpec("d", 6, 3, 1, 1)}),
               ResidualSpec({ConvSpec("e", 6, 3, 1, 1)})},
              {1, 4, 4, 6},
              3}),
      {"ResidualWithoutBatchNorm", {ResidualSpec({ConvSpec("c", 3, 3, 1, 1)})}, {1, 4, 4, 3}},
      Curved({"ResidualWithoutBatchNormThenRelu",
              {ResidualSpec({ConvSpec("c", 3, 3, 1, 1)}), ReluSpec()},
              {1, 4, 4, 3}}),
      {"ResizeNarrower", {ResizeSpec(3)}, {1, 4, 10}, 3},
      {"ResizeWider", {ResizeSpec(9)}, {1, 2, 4, 5}, 3},
      {"ResidualOfNothing", {ResidualSpec({})}, {1, 2, 2, 3}},
      Curved({"ResidualOfANorm", {ResidualSpec({LayerNormSpec("n")})}, {1, 4, 12}, 3}),
      Curved({"ResidualsThatBeginWithNorms",
              {ResidualSpec({LayerNormSpec("n"), LinearLayerSpec("a", 12)}),
               ResidualSpec({RmsNormSpec("m"), LinearLayerSpec("b", 12)}), LayerNormSpec("last")},
              {1, 4, 12},
              3}),
      Curved({"ResidualFromNormToBatchNorm",
              {ResidualSpec({LayerNormSpec("n", false), LinearLayerSpec("a", 12, false),
                             BatchNormSpec("b")}),
               ReluSpec(), ResidualSpec({LinearLayerSpec("c", 12)}),
               ResidualSpec({LinearLayerSpec("d", 12)})},
              {1, 4, 12},
              3}),
      Curved({"ResidualBottleneck",
              {ResidualSpec({RmsNormSpec("n"), LinearLayerSpec("e_in", 12, false),
                             GeluSpec(GeluForm::kTanh), LinearLayerSpec("e", 4, false)},
                            {ResizeSpec(4)}),
               ResidualSpec({RmsNormSpec("m"), LinearLayerSpec("d_in", 12, false),
                             GeluSpec(GeluForm::kTanh), LinearLayerSpec("d", 10, false)},
                            {ResizeSpec(10)})},
              {1, 4, 10},
              3}),
      Curved({"RmsNorm", {RmsNormSpec("n")}, {1, 37}, 4}),
      Curved({"RmsNormOnSequences", {RmsNormSpec("n")}, {1, 40, 5}, 3}),
      Curved({"GeluTanh", {GeluSpec(GeluForm::kTanh)}, {1, 5, 19}, 3}),
      Curved({"GeluExact", {GeluSpec(GeluForm::kExact)}, {1, 5, 19}, 3}),
      Curved({"GeluBetweenLinears",
              {LinearLayerSpec("a", 9), GeluSpec(GeluForm::kTanh), LinearLayerSpec("b", 5)},
              {1, 4, 6},
              3}),
      Curved({"GeluExactBetweenLinears",
              {LinearLayerSpec("a", 9), GeluSpec(GeluForm::kExact), LinearLayerSpec("b", 5)},
              {1, 4, 6},
              3}),
      Curved({"GeluBehindLinear",
              {LinearLayerSpec("a", 9, false), GeluSpec(GeluForm::kTanh), ReluSpec()},
              {1, 4, 6},
              3}),
      Curved({"Swiglu", {LayerOf(LayerKind::kSwiglu)}, {1, 5, 38}, 3}),
      {"Dropout", {LinearLayerSpec("l", 9), DropoutOf(0.3)}, {1, 4, 6}, 3},
      {"DropoutOnBothBranches",
       {DropoutOf(0.3, "before"), ResidualSpec({DropoutOf(0.5, "body")}, {DropoutOf(0.2, "cut")})},
       {1, 4, 6},
       3},
      EmbeddingCase("Embedding"),
      EmbeddingCase("EmbeddingWithPositions", {PositionsSpec(0)}),
      {"PositionsOfALongerContext", {PositionsSpec(9)}, {1, 4, 6}, 3},
      Curved({"Attention", {AttentionOf(3, 0)}, {1, 7, 45}}),
      Curved({"AttentionOneHeadOnePosition", {AttentionOf(1, 0)}, {1, 1, 12}}),
      Curved({"AttentionSharedKeysAndValues", {AttentionOf(4, 2)}, {1, 6, 48}}),
      Curved({"AttentionRotary", {AttentionOf(2, 0, 100)}, {1, 7, 48}}),
      Curved({"AttentionRotaryShared", {AttentionOf(4, 1, 10000)}, {1, 6, 48}}),
      Curved({"AttentionDropout", {AttentionOf(2, 0, 0, 0.4)}, {1, 7, 48}}),
      Curved({"AttentionLong", {AttentionOf(2, 1, 10000, 0.1)}, {1, 150, 32}}),
      Curved({"AttentionWindow", {WithWindow(AttentionOf(2, 1), 3)}, {1, 7, 32}}),
      Curved(
          {"AttentionLongWindow", {WithWindow(AttentionOf(2, 1, 10000, 0.1), 70)}, {1, 150, 32}}),
      Curved({"AttentionWithoutCausality", {WithoutCausality(AttentionOf(3, 0))}, {1, 7, 45}}),
      Curved({"AttentionWithoutCausalityLong",
              {WithoutCausality(AttentionOf(2, 1, 10000, 0.1))},
              {1, 150, 32}}),
      {"Sequence", {LayerOf(LayerKind::kSequence), LinearLayerSpec("l", 4)}, {1, 3, 2, 5}},
      {"ClassToken", {ClassTokenSpec("c")}, {1, 4, 7}, 3},
      {"First", {LayerOf(LayerKind::kFirst)}, {1, 4, 7}, 3},
      {"FirstOfOnePosition", {LayerOf(LayerKind::kFirst)}, {1, 1, 7}, 3},
      Curved({"Tanh", {LayerOf(LayerKind::kTanh)}, {1, 5, 19}, 3}),
      {"TypesThatAreAllZero", {TypesSpec("t")}, {1, 4, 7}, 3},
      Curved(BertCase("BertMasked", TinyBert(BertHead::kMasked))),
      Curved(BertCase("BertClasses", TinyBert(BertHead::kClasses))),
      Curved(BertCase("BertDropout", TinyBert(BertHead::kClasses, /*dropout=*/0.2))),
      Curved(ImageCase("Vit", TinyVit())),
      Curved(ImageCase("VitDropout", TinyVit(/*dropout=*/0.2))),
      Curved(LanguageCase("Gpt2", TinyLanguageModel("gpt2"))),
      Curved(LanguageCase("Gpt2InParts",
                          *DividedIntoParts(TinyLanguageModel("gpt2", /*dropout=*/0.2), 2))),
      Curved(LanguageCase("Gpt2InPartsWithCodes",
                          *WithCodesOfSums(*DividedIntoParts(TinyLanguageModel("gpt2"), 2),
                                           /*width=*/5, /*first=*/1))),
      Curved(LanguageCase("Gpt2Dropout", TinyLanguageModel("gpt2", /*dropout=*/0.2))),
      Curved(BottleneckCase("LearnedSubspaces", BottleneckKind::kLearnedSubspace)),
      Curved(BottleneckCase("Subspaces", BottleneckKind::kSubspace)),
      Curved(LanguageCase("Llama", TinyLanguageModel("llama", /*dropout=*/0, /*tied=*/false))),
  };
}

void AddKinds(const std::vector<LayerSpec>& layers, std::set<LayerKind>* kinds) {
  for (const LayerSpec& layer : layers) {
    kinds->insert(layer.kind);
    AddKinds(layer.body, kinds);
    AddKinds(layer.shortcut, kinds);
  }
}

TEST(CasesTest, HaveEveryLayer) {
  std::set<LayerKind> kinds;
  for (const Case& c : Cases()) {
    for (const BlockSpec& block : c.blocks()) AddKinds(block.layers, &kinds);
  }
  for (const LayerKind kind : AllLayerKinds()) {
    EXPECT_EQ(kinds.count(kind), 1u) << "extend Cases() by " << Name(kind);
  }
}

class GradientTest : public testing::TestWithParam<Case> {
 protected:
  GradientTest()
      : ops_(NewCpuOps(2)),
        segment_(Built(GetParam().blocks(), ops_.get())),
        takes_ids_(GetParam().vocabulary > 0) {
    const Shape input = GetParam().input.WithBatch(GetParam().batch);
    x_ = takes_ids_ ? RandomIds(input, GetParam().vocabulary, "x") : RandomTensor(input, "x");
    if (GetParam().is_padded) x_ = PaddedIds(GetParam().batch);
    // Replaces scales of 1 and biases of 0, which would hide mistakes.
    for (Parameter& parameter : segment_->parameters()) {
      if (parameter.spec.init == ParameterSpec::Init::kUniformFanIn) continue;
      if (parameter.spec.init == ParameterSpec::Init::kOrthonormal) continue;
      RandomStream random(RandomKey(5, parameter.spec.name));
      const float least = parameter.spec.init == ParameterSpec::Init::kNormal ? -0.25f : 0.0f;
      for (float& value : parameter.value.floats()) value += least + 0.5f * random.NextFloat();
    }
    EXPECT_TRUE(segment_->ParametersChanged().ok());
  }

  Pass pass() const {
    Pass pass = Mode::kTrain;
    if (takes_ids_) pass.ids = x_;
    return pass;
  }

  // Returns L at the present values; the first call makes the weights r.
  double Loss() {
    Saved saved;
    const Tensor y = *segment_->Forward(x_, pass(), &saved);
    if (r_.empty()) r_ = RandomTensor(y.shape(), "r");
    double loss = 0;
    for (int64_t i = 0; i < y.elements(); ++i) {
      loss += static_cast<double>(r_.floats()[i]) * static_cast<double>(y.floats()[i]);
    }
    return loss;
  }

  // Returns L with `value` in place of *element.
  double LossAt(float value, float* element) {
    const float before = *element;
    *element = value;
    EXPECT_TRUE(segment_->ParametersChanged().ok());
    const double loss = Loss();
    *element = before;
    EXPECT_TRUE(segment_->ParametersChanged().ok());
    return loss;
  }

  // Returns the distance of `gradient` from the nearest of three differences. A kink of a ReLU
  // within one step on either side spoils two of them.
  double Distance(double gradient, float* element) {
    const float h = static_cast<float>(GetParam().step), here = *element;
    const float up = here + h, down = here - h;
    const double above = LossAt(up, element), middle = Loss(), below = LossAt(down, element);
    const double up_step = static_cast<double>(up) - static_cast<double>(here);
    const double down_step = static_cast<double>(here) - static_cast<double>(down);
    return std::min({std::abs(gradient - (above - below) / (up_step + down_step)),
                     std::abs(gradient - (above - middle) / up_step),
                     std::abs(gradient - (middle - below) / down_step)});
  }

  // Compares at most 48 elements of `values`, evenly spread.
  void Compare(const std::string& what, absl::Span<float> values,
               absl::Span<const float> gradient) {
    double greatest = 1e-3;
    for (float g : gradient) greatest = std::max(greatest, std::abs(static_cast<double>(g)));
    const size_t stride = values.size() / 48 + 1;
    for (size_t i = 0; i < values.size(); i += stride) {
      EXPECT_LE(Distance(static_cast<double>(gradient[i]), &values[i]) / greatest,
                GetParam().tolerance)
          << what << "[" << i << "]";
    }
  }

  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Segment> segment_;
  const bool takes_ids_;
  Tensor x_, r_;
};

TEST_P(GradientTest, AgreesWithDifferences) {
  Loss();
  Saved saved;
  ASSERT_TRUE(segment_->Forward(x_, pass(), &saved).ok());
  const Tensor dx = *segment_->Backward(r_, &saved);
  EXPECT_TRUE(saved.empty());
  EXPECT_EQ(dx.empty(), takes_ids_);
  if (!takes_ids_) Compare("x", x_.floats(), dx.floats());
  for (Parameter& parameter : segment_->parameters()) {
    if (!parameter.spec.is_trained()) continue;
    Compare(parameter.spec.name, parameter.value.floats(), parameter.gradient.floats());
  }
}

// Weights and activations are rounded to 8 bits of mantissa. If that moves a value across a ReLU's
// kink, its gradient appears or vanishes.
TEST_P(GradientTest, BF16StaysCloseToFP32) {
  if (!ops_->CheckComputeType(DType::kBF16).ok()) GTEST_SKIP() << "no AVX512-BF16 here";
  Loss();
  const Tensor x16 = takes_ids_ ? x_ : Converted(x_, DType::kBF16, ops_.get());
  const Tensor x32 = takes_ids_ ? x_ : Converted(x16, DType::kF32, ops_.get());
  const Tensor r16 = Converted(r_, DType::kBF16, ops_.get());
  const auto segment16 = Built(GetParam().blocks(), ops_.get(), DType::kBF16);
  for (size_t i = 0; i < segment16->parameters().size(); ++i) {
    const auto from = segment_->parameters()[i].value.floats();
    std::copy(from.begin(), from.end(), segment16->parameters()[i].value.floats().begin());
  }
  ASSERT_TRUE(segment16->ParametersChanged().ok());
  Saved saved, saved16;
  const Tensor y = *segment_->Forward(x32, pass(), &saved);
  const Tensor y16 = *segment16->Forward(x16, pass(), &saved16);
  const Tensor dx = *segment_->Backward(Converted(r16, DType::kF32, ops_.get()), &saved);
  const Tensor dx16 = *segment16->Backward(r16, &saved16);

  EXPECT_LT(RelativeDistance(Converted(y16, DType::kF32, ops_.get()), y),
            GetParam().bf16_tolerance);
  if (!takes_ids_) {
    EXPECT_LT(RelativeDistance(Converted(dx16, DType::kF32, ops_.get()), dx), 0.08);
  }
  for (size_t i = 0; i < segment16->parameters().size(); ++i) {
    const Parameter& parameter = segment_->parameters()[i];
    if (!parameter.spec.is_trained()) continue;
    EXPECT_LT(RelativeDistance(segment16->parameters()[i].gradient, parameter.gradient), 0.08)
        << parameter.spec.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, GradientTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace thinwire
