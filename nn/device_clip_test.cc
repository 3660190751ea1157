// Checks that an update with a factor from the device equals one with the host's, bit for bit.
#include "nn/device_clip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "nn/cuda/tested_ops_testing.h"
#include "nn/gradient_norm.h"
#include "nn/optimizer.h"
#include "tensor/copy_testing.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

Tensor Ramp(int64_t n, float step) {
  const Tensor tensor = *Tensor::Allocate(CpuDevice(), DType::kF32, {n});
  for (int64_t i = 0; i < n; ++i) tensor.floats()[i] = step * static_cast<float>(i % 97 - 40);
  return On(TestedDevice(), tensor);
}

std::vector<float> Read(const Tensor& tensor) {
  const Tensor host = On(CpuDevice(), tensor);
  return {host.floats().begin(), host.floats().end()};
}

// Two parameters in training, with a tied copy of the first, which does not count.
class Trained {
 public:
  Trained(OptimizerKind kind, float step) : ops_(NewTestedOps()), parameters_(3) {
    const int64_t sizes[] = {30001, 7, 30001};
    for (int i = 0; i < 3; ++i) {
      parameters_[i].spec.name = std::string(1, static_cast<char>('a' + i));
      parameters_[i].spec.shape = {sizes[i]};
      parameters_[i].value = Ramp(sizes[i], 0.01f);
      parameters_[i].gradient = Ramp(sizes[i], step * static_cast<float>(i + 1));
    }
    parameters_[2].spec.tied_to = "a";
    parameters_[2].follows = true;
    OptimizerSpec spec;
    spec.kind = kind;
    if (kind == OptimizerKind::kSgd) spec.momentum = 0.9;
    optimizer_ = *NewOptimizer(spec, absl::MakeSpan(parameters_), TestedDevice(), ops_.get());
    clip_ = *DeviceClip::New(parameters_, kClipNorm, TestedDevice(), ops_.get());
  }

  void StepByHost() {
    double sum = 0;
    ASSERT_TRUE(AddSquares(parameters_, ops_.get(), &sum).ok());
    ASSERT_TRUE(optimizer_->Step(0.1, ClipScale(sum, kClipNorm)).ok());
  }
  absl::Status StepByDevice() {
    EXPECT_TRUE(optimizer_->takes_scale_on_device());
    EXPECT_TRUE(clip_->Submit().ok());
    EXPECT_TRUE(optimizer_->Step(0.1, GradientScale(clip_->factor())).ok());
    EXPECT_TRUE(TestedDevice()->Finish().ok());
    return clip_->Check();
  }
  // Returns parameters, gradients and optimizer state, one after the other.
  std::vector<float> Everything() const {
    std::vector<float> all;
    const auto add = [&all](const Tensor& tensor) {
      for (const float value : Read(tensor)) all.push_back(value);
    };
    for (const Parameter& parameter : parameters_) {
      add(parameter.value);
      add(parameter.gradient);
    }
    for (const OptimizerState& state : optimizer_->state()) add(state.tensor);
    return all;
  }
  void Break(int parameter, float value) {
    const Tensor host = On(CpuDevice(), parameters_[parameter].gradient);
    host.floats()[3] = value;
    parameters_[parameter].gradient = On(TestedDevice(), host);
    clip_ = *DeviceClip::New(parameters_, kClipNorm, TestedDevice(), ops_.get());
  }

 private:
  static constexpr double kClipNorm = 1;

  const std::unique_ptr<Ops> ops_;
  std::vector<Parameter> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<DeviceClip> clip_;
};

class DeviceClipTest : public ::testing::TestWithParam<OptimizerKind> {};

TEST_P(DeviceClipTest, LongAndShortGradientsHaveTheBitsOfTheHostsFactor) {
  for (const float step : {1e-6f, 1e-3f, 3.0f}) {
    Trained by_host(GetParam(), step), by_device(GetParam(), step);
    by_host.StepByHost();
    EXPECT_TRUE(by_device.StepByDevice().ok());
    EXPECT_THAT(by_device.Everything(), ElementsAreArray(by_host.Everything())) << step;
  }
}

TEST_P(DeviceClipTest, ASumThatIsNoNumberIsNamedAndChangesNothing) {
  for (const float value : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    Trained trained(GetParam(), 1);
    trained.Break(/*parameter=*/1, value);
    const std::vector<float> before = trained.Everything();
    const absl::Status status = trained.StepByDevice();
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(std::string(status.message()), HasSubstr("with the gradient of b"));
    const std::vector<float> after = trained.Everything();
    for (size_t i = 0; i < before.size(); ++i) {
      ASSERT_TRUE(before[i] == after[i] || std::isnan(before[i])) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, DeviceClipTest,
                         ::testing::Values(OptimizerKind::kSgd, OptimizerKind::kAdamW));

TEST(DeviceClipTest, MuonWantsTheFactorOnTheHost) {
  const auto ops = NewTestedOps();
  std::vector<Parameter> parameters(1);
  parameters[0].spec.name = "w";
  parameters[0].spec.shape = {4, 4};
  parameters[0].spec.hidden = true;
  parameters[0].value = *Tensor::Allocate(TestedDevice(), DType::kF32, {4, 4});
  parameters[0].gradient = *Tensor::Allocate(TestedDevice(), DType::kF32, {4, 4});
  const auto optimizer = *NewOptimizer(DefaultOptimizer(OptimizerKind::kMuon),
                                       absl::MakeSpan(parameters), TestedDevice(), ops.get());
  EXPECT_FALSE(optimizer->takes_scale_on_device());
}

}  // namespace
}  // namespace thinwire
