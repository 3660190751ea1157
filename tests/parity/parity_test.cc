// Compares a narrow CIFAR ResNet-18 with what PyTorch made of it on a CPU (make_fixtures.py):
// logits, loss, every gradient, ten steps of SGD, evaluation. Runs on the CPU and on the backend
// under test.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "backend/testing.h"
#include "models/zoo.h"
#include "nn/cpu/ops.h"
#include "nn/loss.h"
#include "nn/optimizer.h"
#include "nn/segment/segment.h"
#include "tensor/copy_testing.h"
#include "tensor/cpu/device.h"
#include "tests/parity/fixture.h"

namespace thinwire {
namespace {

constexpr char kFixture[] = "tests/parity/resnet18_w4.safetensors";
constexpr int64_t kBatch = 8;
constexpr int kSteps = 10;

// Place where a network is computed, and how far it may be from PyTorch's: the norm of a difference
// over that of the tensor. Sums in another order are about 3e-6 apart after ten steps on a CPU.
// cuDNN may compute convolutions with Winograd's or Fourier's transform, which loses up to two
// digits more. TF32, which is not asked for here, would lose four.
struct Place {
  const char* name;
  double tolerance;
  Device* (*device)();
  std::unique_ptr<Ops> (*new_ops)();
};
const Place kCpu = {"Cpu", 1e-4, &CpuDevice, [] { return NewCpuOps(2); }};
const Place kTested = {"BackendUnderTest", 1e-3, [] { return BackendUnderTest().device; },
                       [] { return *BackendUnderTest().NewOps(); }};

class ParityTest : public testing::TestWithParam<const Place*> {
 protected:
  ParityTest() : fixture_(ReadFixture(kFixture)), device_(GetParam()->device()) {
    ops_ = GetParam()->new_ops();
    ModelOptions model = *OptionsOf("resnet18");
    model.width = 4;
    model.input = {1, 32, 32, 3};
    SegmentOptions options;
    options.device = device_;
    options.ops = ops_.get();
    options.needs_input_gradient = false;
    segment_ = *BuildSegment(NamedModel(model)->blocks, options);
    for (Parameter& parameter : segment_->parameters()) {
      const std::vector<float>& values = Expected("initial." + parameter.spec.name);
      const size_t bytes = parameter.value.bytes();
      EXPECT_EQ(values.size() * sizeof(float), bytes) << parameter.spec.name;
      EXPECT_TRUE(device_->CopyFromHost(parameter.value.data(), values.data(), bytes).ok());
    }
    EXPECT_TRUE(segment_->ParametersChanged().ok());
  }

  const std::vector<float>& Expected(const std::string& name) {
    EXPECT_EQ(fixture_.count(name), 1u) << name;
    return fixture_[name];
  }

  void ExpectParity(const std::string& name, const Tensor& tensor) {
    const Tensor host = On(CpuDevice(), tensor);
    const absl::Span<const float> values = host.floats();
    const double distance = Distance(values, Expected(name));
    worst_ = std::max(worst_, distance);
    EXPECT_LE(distance, GetParam()->tolerance) << name;
  }
  void ExpectLoss(int step, double loss) {
    const double expected = static_cast<double>(Expected("losses")[step]);
    EXPECT_NEAR(loss, expected, GetParam()->tolerance * expected) << "step " << step;
  }

  // Converts PyTorch's [n, c, h, w] to [n, h, w, c], on the device.
  Tensor Images(int batch) {
    const std::vector<float>& nchw = Expected("images." + std::to_string(batch));
    Tensor nhwc = *Tensor::Allocate(CpuDevice(), DType::kF32, {kBatch, 32, 32, 3});
    for (int64_t i = 0; i < kBatch; ++i) {
      for (int64_t c = 0; c < 3; ++c) {
        for (int64_t pixel = 0; pixel < 1024; ++pixel) {
          nhwc.floats()[(i * 1024 + pixel) * 3 + c] = nchw[(i * 3 + c) * 1024 + pixel];
        }
      }
    }
    Tensor images = *Tensor::Allocate(device_, DType::kF32, nhwc.shape());
    EXPECT_TRUE(device_->CopyFromHost(images.data(), nhwc.data(), nhwc.bytes()).ok());
    return images;
  }

  // Returns the mean loss and leaves the gradients.
  double ForwardAndBackward(int batch, Tensor* logits) {
    const std::vector<float>& labels = Expected("labels." + std::to_string(batch));
    Saved saved;
    *logits = *segment_->Forward(Images(batch), Mode::kTrain, &saved);
    Tensor dlogits;
    const LossSums sums = *SoftmaxCrossEntropy(*logits, logits->shape()[1],
                                               std::vector<int32_t>(labels.begin(), labels.end()),
                                               kBatch, ops_.get(), &dlogits);
    EXPECT_TRUE(segment_->Backward(dlogits, &saved).ok());
    return sums.loss / kBatch;
  }

  Fixture fixture_;
  Device* const device_;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Segment> segment_;
  double worst_ = 0;
};

TEST_P(ParityTest, LogitsLossAndEveryGradientAreThoseOfPyTorch) {
  Tensor logits;
  const double loss = ForwardAndBackward(0, &logits);
  ExpectLoss(0, loss);
  ExpectParity("logits", logits);
  for (const Parameter& parameter : segment_->parameters()) {
    if (!parameter.spec.is_trained()) continue;
    ExpectParity("gradient." + parameter.spec.name, parameter.gradient);
  }
  RecordProperty("worst", std::to_string(worst_));
}

TEST_P(ParityTest, TenStepsOfSgdEndWherePyTorchEnds) {
  OptimizerSpec spec;
  spec.momentum = 0.9;
  spec.weight_decay = 5e-4;
  const auto sgd = *NewOptimizer(spec, segment_->parameters(), device_, ops_.get());
  Tensor logits;
  for (int step = 0; step < kSteps; ++step) {
    const double loss = ForwardAndBackward(step % 2, &logits);
    ExpectLoss(step, loss);
    ASSERT_TRUE(sgd->Step(0.01).ok());
    ASSERT_TRUE(segment_->ParametersChanged().ok());
  }
  for (const Parameter& parameter : segment_->parameters()) {
    ExpectParity("final." + parameter.spec.name, parameter.value);
  }
  ExpectParity("evaluated", *segment_->Forward(Images(0), Mode::kEvaluate, nullptr));
  RecordProperty("worst", std::to_string(worst_));
}

INSTANTIATE_TEST_SUITE_P(Places, ParityTest, testing::Values(&kCpu, &kTested),
                         [](const auto& place) { return std::string(place.param->name); });

}  // namespace
}  // namespace thinwire
