// Compares tiny models of each family with what PyTorch made of them (make_language_fixtures.py,
// make_llama_fixtures.py, make_encoder_fixtures.py): logits, loss, every gradient, ten steps of
// AdamW with clipping, and of Muon for language models. Runs on the CPU and on the backend under
// test.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "backend/testing.h"
#include "models/zoo.h"
#include "nn/cpu/ops.h"
#include "nn/gradient_norm.h"
#include "nn/loss.h"
#include "nn/optimizer.h"
#include "nn/parameters.h"
#include "nn/segment/segment.h"
#include "tensor/copy_testing.h"
#include "tensor/cpu/device.h"
#include "tests/parity/fixture.h"

namespace thinwire {
namespace {

constexpr int64_t kBatch = 3, kPositions = 12, kVocabulary = 37, kClasses = 5;
constexpr int64_t kHeight = 8, kWidth = 12, kColors = 3;
constexpr int kSteps = 10;
// Greatest distance, relative to a tensor's norm.
constexpr double kTolerance = 1e-4;

// Gives a Llama all that newer ones have and older ones do not.
void MakeNew(ModelOptions* options) {
  options->head_size = 12;
  options->attention_bias = AttentionBias::kAll;
  options->mlp_bias = true;
  RopeScaling& scaling = options->rope_scaling;
  scaling.kind = RopeScalingKind::kLlama3;
  scaling.factor = 8;
  scaling.original = 64;
}

// Returns the model of a fixture: gpt2, llama, llama3, qwen3, mistral, bert_masked, bert_classes or
// vit.
Model Tiny(const std::string& fixture) {
  const std::string name = fixture == "llama3" ? "llama" : fixture.substr(0, fixture.find('_'));
  ModelOptions options = *OptionsOf(name);
  options.input = {1, kPositions};
  options.classes = kVocabulary;
  options.width = 32;
  options.layers = 2;
  options.heads = 4;
  options.context = options.family == ModelFamily::kLlama ? 0 : 16;
  options.hidden = options.family == ModelFamily::kGpt2 ? 0 : 48;
  switch (options.family) {
    case ModelFamily::kLlama:
      options.kv_heads = 2;
      options.epsilon = 1e-6;
      if (fixture == "llama3") MakeNew(&options);
      if (fixture == "qwen3" || fixture == "mistral") options.head_size = 12;
      if (fixture == "mistral") options.window = 5;
      options.tied = fixture == "qwen3";
      break;
    case ModelFamily::kBert:
      options.head = fixture == "bert_masked" ? BertHead::kMasked : BertHead::kClasses;
      options.classes = fixture == "bert_masked" ? kVocabulary : kClasses;
      options.vocabulary = kVocabulary;
      options.pad = 0;
      options.separator = 1;
      break;
    case ModelFamily::kVit:
      options.input = {1, kHeight, kWidth, kColors};
      options.classes = kClasses;
      options.patch = 4;
      break;
    default:
      break;
  }
  return *NamedModel(options);
}

// Place where a model is computed, and how far its parameters may be from PyTorch's after ten
// steps. Some gradients, as those of keys' biases, would be zero but for rounding. AdamW makes them
// as long as others, so sums in another order end up to 9e-5 apart.
struct Place {
  const char* name;
  double tolerance;
  Device* (*device)();
  std::unique_ptr<Ops> (*new_ops)();
};
const Place kCpu = {"Cpu", 1e-4, &CpuDevice, [] { return NewCpuOps(2); }};
const Place kTested = {"BackendUnderTest", 1e-3, [] { return BackendUnderTest().device; },
                       [] { return *BackendUnderTest().NewOps(); }};

class TransformerParityTest : public testing::TestWithParam<std::tuple<const char*, const Place*>> {
 protected:
  TransformerParityTest()
      : fixture_(ReadFixture("tests/parity/" + model() + "_tiny.safetensors")),
        model_(Tiny(model())),
        device_(place().device()),
        ops_(place().new_ops()) {
    SegmentOptions options;
    options.device = device_;
    options.ops = ops_.get();
    options.needs_input_gradient = false;
    segment_ = *BuildSegment(model_.blocks, options);
    for (Parameter& parameter : segment_->parameters()) {
      const std::vector<float> values = InOurLayout("initial.", parameter.spec);
      const size_t bytes = parameter.value.bytes();
      EXPECT_EQ(values.size() * sizeof(float), bytes) << parameter.spec.name;
      EXPECT_TRUE(device_->CopyFromHost(parameter.value.data(), values.data(), bytes).ok());
      if (!parameter.spec.tied_to.empty()) copy_ = &parameter;
    }
    EXPECT_TRUE(segment_->ParametersChanged().ok());
  }

  void TearDown() override { RecordProperty("worst", std::to_string(worst_)); }

  static std::string model() { return std::get<0>(GetParam()); }
  static const Place& place() { return *std::get<1>(GetParam()); }

  void ExpectNear(const std::string& name, const Tensor& tensor, const std::vector<float>& expected,
                  double tolerance = kTolerance) {
    const Tensor host = On(CpuDevice(), tensor);
    const double distance = Distance(host.floats(), expected);
    worst_ = std::max(worst_, distance);
    EXPECT_LE(distance, tolerance) << name;
  }

  const std::vector<float>& Expected(const std::string& name) {
    EXPECT_EQ(fixture_.count(name), 1u) << name;
    return fixture_[name];
  }

  // Returns a parameter from Hugging Face's files in the segment's layout.
  std::vector<float> InOurLayout(const std::string& what, const ParameterSpec& spec) {
    std::vector<float> values;
    for (const FilePart& part : spec.parts) {
      const std::vector<float>& rows = Expected(what + part.name);
      values.insert(values.end(), rows.begin(), rows.end());
    }
    if (!spec.parts.empty()) return values;
    const std::vector<float>& in_file =
        Expected(what + (spec.tied_to.empty() ? spec.name : spec.tied_to));
    if (!spec.transposed) return in_file;
    const int64_t rows = spec.shape[0], columns = spec.shape[1];
    values.resize(in_file.size());
    for (int64_t i = 0; i < rows * columns; ++i) {
      values[i] = in_file[i % columns * rows + i / columns];
    }
    return values;
  }

  // Returns the file's whole numbers of that name, for the step's batch.
  std::vector<int32_t> Ints(const std::string& name, int step) {
    const std::vector<float>& values = Expected(name + std::to_string(step % 2));
    return std::vector<int32_t>(values.begin(), values.end());
  }

  // Returns ids from the file's tokens [batch, positions + 1]: the input for `first` = 0, the
  // labels for `first` = 1.
  std::vector<int32_t> Tokens(int step, int64_t first) {
    const std::vector<int32_t> tokens = Ints("tokens.", step);
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < kBatch * kPositions; ++i) {
      const int64_t row = i / kPositions, position = i % kPositions;
      ids.push_back(tokens[row * (kPositions + 1) + position + first]);
    }
    return ids;
  }

  std::vector<int32_t> Labels(int step) {
    return is_causal() ? Tokens(step, 1) : Ints("labels.", step);
  }

  Tensor Inputs(int step) {
    if (!model_.tokens) return Images(step);
    const std::vector<int32_t> ids = is_causal() ? Tokens(step, 0) : Ints("ids.", step);
    Tensor inputs = *Tensor::Allocate(CpuDevice(), DType::kI32, {kBatch, kPositions});
    std::copy(ids.begin(), ids.end(), static_cast<int32_t*>(inputs.data()));
    return On(device_, inputs);
  }

  // Returns the file's images, which are [batch, colors, height, width], channels-last.
  Tensor Images(int step) {
    const std::vector<float>& planes = Expected("images." + std::to_string(step % 2));
    Tensor images = *Tensor::Allocate(CpuDevice(), DType::kF32, {kBatch, kHeight, kWidth, kColors});
    constexpr int64_t kPixels = kHeight * kWidth;
    for (int64_t i = 0; i < images.elements(); ++i) {
      const int64_t color = i % kColors, pixel = i / kColors % kPixels;
      const int64_t sample = i / kColors / kPixels;
      images.floats()[i] = planes[(sample * kColors + color) * kPixels + pixel];
    }
    return On(device_, images);
  }

  bool is_causal() const { return model_.is_language() && model() != "bert_masked"; }

  // Returns the result for inputs of that step.
  Tensor Forward(Mode mode, int step, Saved* saved) {
    Pass pass = mode;
    const Tensor x = Inputs(step);
    if (model_.tokens) pass.ids = x;
    return *segment_->Forward(x, pass, saved);
  }

  // Returns the mean loss and leaves the gradients; both copies of a tied weight have the sum.
  double ForwardAndBackward(int step) {
    Saved saved;
    logits_ = Forward(Mode::kTrain, step, &saved);
    const std::vector<int32_t> labels = Labels(step);
    const int64_t counted =
        std::count_if(labels.begin(), labels.end(), [](int32_t label) { return label >= 0; });
    Tensor dlogits;
    const LossSums sums =
        *SoftmaxCrossEntropy(logits_, model_.classes, labels, counted, ops_.get(), &dlogits);
    EXPECT_EQ(sums.counted, counted);
    EXPECT_TRUE(segment_->Backward(dlogits, &saved).ok());
    if (copy_ != nullptr) {
      const Parameter& embedding = *FindParameter(segment_->parameters(), copy_->spec.tied_to);
      EXPECT_TRUE(AddTiedGradients(embedding, *copy_, ops_.get()).ok());
    }
    return sums.loss / static_cast<double>(counted);
  }

  Fixture fixture_;
  const Model model_;
  Device* const device_;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Segment> segment_;
  Parameter* copy_ = nullptr;  // the copy of a tied weight; null without one
  Tensor logits_;
  double worst_ = 0;
};

TEST_P(TransformerParityTest, LogitsLossAndEveryGradientAreThoseOfPyTorch) {
  const double loss = ForwardAndBackward(0);
  const auto expected = static_cast<double>(Expected("losses")[0]);
  EXPECT_NEAR(loss, expected, kTolerance * expected);
  ExpectNear("logits", logits_, Expected("logits"));
  for (const Parameter& parameter : segment_->parameters()) {
    ExpectNear(parameter.spec.name, parameter.gradient, InOurLayout("gradient.", parameter.spec));
  }
}

TEST_P(TransformerParityTest, TenStepsOfAdamWWithClippingEndWherePyTorchEnds) {
  OptimizerSpec spec;
  spec.kind = OptimizerKind::kAdamW;
  spec.beta2 = 0.999;
  spec.epsilon = 1e-6;
  spec.weight_decay = 0.1;
  spec.decay = DecayKind::kMatrices;
  spec.clip_norm = is_causal() ? 1 : 0.2;
  const auto adamw = *NewOptimizer(spec, segment_->parameters(), device_, ops_.get());
  for (int step = 0; step < kSteps; ++step) {
    const auto loss = static_cast<double>(Expected("losses")[step]);
    EXPECT_NEAR(ForwardAndBackward(step), loss, place().tolerance * loss) << step;
    double squares = 0;
    ASSERT_TRUE(AddSquares(segment_->parameters(), ops_.get(), &squares).ok());
    const double norm = std::sqrt(squares);
    EXPECT_NEAR(norm, Expected("norms")[step], place().tolerance * norm) << step;
    ASSERT_TRUE(adamw->Step(3e-3, ClipScale(squares, spec.clip_norm)).ok());
    ASSERT_TRUE(segment_->ParametersChanged().ok());
  }
  for (const Parameter& parameter : segment_->parameters()) {
    ExpectNear(parameter.spec.name, parameter.value, InOurLayout("final.", parameter.spec),
               place().tolerance);
  }
  ExpectNear("evaluated", Forward(Mode::kEvaluate, 0, nullptr), Expected("evaluated"),
             place().tolerance);
}

using LanguageParityTest = TransformerParityTest;

// Muon makes singular values near zero some hundred times as large, and with them the errors of
// their vectors. So the bounds are ten times as wide.
TEST_P(LanguageParityTest, TenStepsOfMuonEndWherePyTorchEnds) {
  OptimizerSpec spec = DefaultOptimizer(OptimizerKind::kMuon);
  spec.lr = 0.02;
  spec.adamw_lr = 3e-3;
  spec.beta2 = 0.999;
  spec.epsilon = 1e-6;
  spec.weight_decay = 0.1;
  const auto muon = *NewOptimizer(spec, segment_->parameters(), device_, ops_.get());
  const double tolerance = 10 * place().tolerance;
  for (int step = 0; step < kSteps; ++step) {
    const auto loss = static_cast<double>(Expected("muon.losses")[step]);
    EXPECT_NEAR(ForwardAndBackward(step), loss, tolerance * loss) << step;
    ASSERT_TRUE(muon->Step(spec.lr).ok());
    ASSERT_TRUE(segment_->ParametersChanged().ok());
  }
  for (const Parameter& parameter : segment_->parameters()) {
    ExpectNear(parameter.spec.name, parameter.value, InOurLayout("muon.final.", parameter.spec),
               tolerance);
  }
}

std::string NameOf(const testing::TestParamInfo<TransformerParityTest::ParamType>& info) {
  return std::string(std::get<0>(info.param)) + std::get<1>(info.param)->name;
}

INSTANTIATE_TEST_SUITE_P(Models, TransformerParityTest,
                         testing::Combine(testing::Values("gpt2", "llama", "llama3", "qwen3",
                                                          "mistral", "bert_masked", "bert_classes",
                                                          "vit"),
                                          testing::Values(&kCpu, &kTested)),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Models, LanguageParityTest,
                         testing::Combine(testing::Values("gpt2", "llama"),
                                          testing::Values(&kCpu, &kTested)),
                         NameOf);

}  // namespace
}  // namespace thinwire
