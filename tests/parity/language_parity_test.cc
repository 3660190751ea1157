// A tiny GPT-2 and a tiny Llama against what PyTorch made of them (make_language_fixtures.py):
// logits, loss, every gradient, ten steps of AdamW with clipping.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "models/zoo.h"
#include "nn/cpu/ops.h"
#include "nn/loss.h"
#include "nn/parameters.h"
#include "nn/segment.h"
#include "tensor/cpu/device.h"
#include "tests/parity/fixture.h"

namespace thinwire {
namespace {

constexpr int64_t kBatch = 3, kPositions = 12, kVocabulary = 37;
constexpr int kSteps = 10;
// Relative to a tensor's norm. Sums in another order stay a tenth of it apart after ten steps.
constexpr double kTolerance = 1e-4;

Model Tiny(const std::string& name) {
  ModelOptions options = *OptionsOf(name);
  options.input = {1, kPositions};
  options.classes = kVocabulary;
  options.width = 32;
  options.layers = 2;
  options.heads = 4;
  if (options.family == ModelFamily::kLlama) {
    options.kv_heads = 2;
    options.hidden = 48;
    options.epsilon = 1e-6;
  } else {
    options.context = 16;
  }
  return *NamedModel(options);
}

class LanguageParityTest : public testing::TestWithParam<const char*> {
 protected:
  LanguageParityTest()
      : fixture_(ReadFixture("tests/parity/" + std::string(GetParam()) + "_tiny.safetensors")),
        ops_(NewCpuOps(2)) {
    SegmentOptions options;
    options.device = CpuDevice();
    options.ops = ops_.get();
    options.needs_input_gradient = false;
    segment_ = *BuildSegment(Tiny(GetParam()).blocks, options);
    for (Parameter& parameter : segment_->parameters()) {
      const std::vector<float> values = InOurLayout("initial.", parameter.spec);
      EXPECT_EQ(static_cast<int64_t>(values.size()), parameter.value.elements());
      std::copy(values.begin(), values.end(), parameter.value.floats().begin());
      if (!parameter.spec.tied_to.empty()) copy_ = &parameter;
    }
    EXPECT_TRUE(segment_->ParametersChanged().ok());
  }

  const std::vector<float>& Expected(const std::string& name) {
    EXPECT_EQ(fixture_.count(name), 1u) << name;
    return fixture_[name];
  }

  // A parameter of Hugging Face's files as the segment has it.
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

  // tokens [batch, positions + 1]: what `first` of 0 begins is the input, of 1 the labels.
  std::vector<int32_t> Tokens(int step, int64_t first) {
    const std::vector<float>& tokens = Expected("tokens." + std::to_string(step % 2));
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < kBatch * kPositions; ++i) {
      const int64_t row = i / kPositions, position = i % kPositions;
      ids.push_back(static_cast<int32_t>(tokens[row * (kPositions + 1) + position + first]));
    }
    return ids;
  }

  Tensor Inputs(int step) {
    const std::vector<int32_t> ids = Tokens(step, 0);
    Tensor inputs = *Tensor::Allocate(CpuDevice(), DType::kI32, {kBatch, kPositions});
    std::copy(ids.begin(), ids.end(), static_cast<int32_t*>(inputs.data()));
    return inputs;
  }

  // Returns the mean loss; leaves gradients, both copies of a tied weight with the sum.
  double ForwardAndBackward(int step) {
    constexpr int64_t kRows = kBatch * kPositions;
    Saved saved;
    logits_ = *segment_->Forward(Inputs(step), Mode::kTrain, &saved);
    const Tensor rows(logits_.buffer(), DType::kF32, {kRows, kVocabulary});
    Tensor dlogits;
    const LossSums sums = *SoftmaxCrossEntropy(rows, Tokens(step, 1), kRows, ops_.get(), &dlogits);
    const Tensor dy(dlogits.buffer(), DType::kF32, logits_.shape());
    EXPECT_TRUE(segment_->Backward(dy, &saved).ok());
    if (copy_ != nullptr) {
      const Tensor& sum = FindParameter(segment_->parameters(), copy_->spec.tied_to)->gradient;
      const Tensor& other = copy_->gradient;
      EXPECT_TRUE(ops_->Add(sum.view(), other.view(), sum.view()).ok());
      EXPECT_TRUE(ops_->Convert(sum.view(), other.view()).ok());
    }
    return sums.loss / kRows;
  }

  // The norm of all gradients together; a tied weight's counts once.
  double Norm() {
    double squares = 0;
    for (const Parameter& parameter : segment_->parameters()) {
      double of_one = 0;
      const Tensor& gradient = parameter.gradient;
      EXPECT_TRUE(ops_->SumOfSquares(Floats(gradient), gradient.elements(), &of_one).ok());
      if (&parameter != copy_) squares += of_one;
    }
    return std::sqrt(squares);
  }

  Fixture fixture_;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Segment> segment_;
  Parameter* copy_ = nullptr;  // of a tied weight
  Tensor logits_;
};

TEST_P(LanguageParityTest, LogitsLossAndEveryGradientAreThoseOfPyTorch) {
  const double loss = ForwardAndBackward(0);
  const auto expected = static_cast<double>(Expected("losses")[0]);
  EXPECT_NEAR(loss, expected, kTolerance * expected);
  EXPECT_LE(Distance(logits_.floats(), Expected("logits")), kTolerance);
  for (const Parameter& parameter : segment_->parameters()) {
    EXPECT_LE(Distance(parameter.gradient.floats(), InOurLayout("gradient.", parameter.spec)),
              kTolerance)
        << parameter.spec.name;
  }
}

TEST_P(LanguageParityTest, TenStepsOfAdamWWithClippingEndWherePyTorchEnds) {
  constexpr double kClipNorm = 1;
  std::vector<AdamWParameter> parameters;
  std::vector<std::vector<float>> moments;
  for (const Parameter& parameter : segment_->parameters()) {
    const int64_t n = parameter.value.elements();
    const float decay = parameter.spec.shape.rank() > 1 ? 0.1f : 0.0f;
    float* const mean = moments.emplace_back(n).data();
    float* const square = moments.emplace_back(n).data();
    parameters.push_back(
        {Floats(parameter.value), Floats(parameter.gradient), mean, square, n, decay});
  }
  AdamWUpdate update;
  update.parameters = parameters.data();
  update.count = static_cast<int64_t>(parameters.size());
  update.lr = 3e-3;
  update.beta1 = 0.9;
  update.beta2 = 0.999;
  update.epsilon = 1e-6;
  for (int step = 0; step < kSteps; ++step) {
    const auto loss = static_cast<double>(Expected("losses")[step]);
    EXPECT_NEAR(ForwardAndBackward(step), loss, kTolerance * loss) << step;
    const double norm = Norm();
    EXPECT_NEAR(norm, Expected("norms")[step], kTolerance * norm) << step;
    update.step = step + 1;
    update.gradient_scale = static_cast<float>(kClipNorm / (norm + 1e-6));
    ASSERT_TRUE(ops_->AdamW(update).ok());
    ASSERT_TRUE(segment_->ParametersChanged().ok());
  }
  for (const Parameter& parameter : segment_->parameters()) {
    EXPECT_LE(Distance(parameter.value.floats(), InOurLayout("final.", parameter.spec)), kTolerance)
        << parameter.spec.name;
  }
  const Tensor evaluated = *segment_->Forward(Inputs(0), Mode::kEvaluate, nullptr);
  EXPECT_LE(Distance(evaluated.floats(), Expected("evaluated")), kTolerance);
}

INSTANTIATE_TEST_SUITE_P(Models, LanguageParityTest, testing::Values("gpt2", "llama"),
                         [](const auto& model) { return std::string(model.param); });

}  // namespace
}  // namespace thinwire
