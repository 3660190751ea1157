// Checks that an update on the host has the bits of one on the device.
#include "nn/host_adamw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/random.h"
#include "nn/cpu/ops.h"
#include "nn/cuda/tested_ops_testing.h"
#include "nn/optimizer.h"
#include "tensor/copy_testing.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

Tensor RandomOnDevice(int64_t n, uint64_t seed) {
  const Tensor tensor = *Tensor::Allocate(CpuDevice(), DType::kF32, {n});
  RandomStream random(RandomKey(seed, "test"));
  for (float& value : tensor.floats()) value = random.NextFloat() - 0.5f;
  return On(TestedDevice(), tensor);
}

// A hidden weight of more elements than the host takes at once, and one that keeps numbers.
class TrainedAt {
 public:
  TrainedAt(OptimizerPlace place, MomentFormat moments)
      : ops_(NewTestedOps()), host_ops_(NewCpuOps(2)), parameters_(2) {
    const int64_t sizes[] = {(int64_t{1} << 20) + 300, 77};
    for (size_t i = 0; i < 2; ++i) {
      parameters_[i].spec.name = i == 0 ? "large" : "small";
      parameters_[i].spec.shape = {sizes[i]};
      parameters_[i].spec.hidden = true;
      parameters_[i].value = RandomOnDevice(sizes[i], i);
      parameters_[i].gradient = RandomOnDevice(sizes[i], i + 2);
    }
    OptimizerSpec spec = DefaultOptimizer(OptimizerKind::kAdamW);
    spec.weight_decay = 0.1;
    spec.place = place;
    spec.moments = moments;
    optimizer_ = *NewOptimizer(spec, absl::MakeSpan(parameters_), TestedDevice(), ops_.get(),
                               host_ops_.get());
  }

  void Step(double scale) {
    EXPECT_TRUE(optimizer_->Step(0.01, scale).ok());
    for (const Parameter& parameter : parameters_) {
      const Tensor gradient = On(CpuDevice(), parameter.gradient);
      for (const float g : gradient.floats()) ASSERT_EQ(g, 0) << "not cleared";
    }
  }
  void SetGradients(uint64_t seed) {
    for (Parameter& parameter : parameters_) {
      const Tensor values = On(CpuDevice(), RandomOnDevice(parameter.value.elements(), seed++));
      EXPECT_TRUE(TestedDevice()
                      ->CopyFromHost(parameter.gradient.data(), values.data(), values.bytes())
                      .ok());
    }
  }
  std::vector<std::vector<uint8_t>> Everything() const {
    std::vector<std::vector<uint8_t>> all;
    for (const Parameter& parameter : parameters_) all.push_back(BytesOf(parameter.value));
    for (const OptimizerState& state : optimizer_->state()) all.push_back(BytesOf(state.tensor));
    return all;
  }
  const Optimizer& optimizer() const { return *optimizer_; }

 private:
  const std::unique_ptr<Ops> ops_, host_ops_;
  std::vector<Parameter> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
};

class HostAdamWTest : public ::testing::TestWithParam<MomentFormat> {};

TEST_P(HostAdamWTest, HasTheBitsOfTheDevice) {
  TrainedAt device(OptimizerPlace::kDevice, GetParam()), host(OptimizerPlace::kHost, GetParam());
  EXPECT_TRUE(device.optimizer().takes_scale_on_device());
  EXPECT_FALSE(host.optimizer().takes_scale_on_device());
  for (const OptimizerState& state : host.optimizer().state()) {
    EXPECT_TRUE(state.tensor.device()->is_host()) << state.parameter;
  }
  for (const double scale : {1.0, 0.3}) {
    for (TrainedAt* trained : {&device, &host}) {
      trained->SetGradients(7);
      trained->Step(scale);
    }
    EXPECT_TRUE(host.Everything() == device.Everything());
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, HostAdamWTest,
                         ::testing::Values(MomentFormat::kFP32, MomentFormat::kInt8));

}  // namespace
}  // namespace thinwire
