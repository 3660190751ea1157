#include "nn/optimizer.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "nn/cpu/ops.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

// 37 elements: whole vectors and a rest for every instruction set.
constexpr int64_t kElements = 37;

class OptimizerTest : public testing::Test {
 protected:
  OptimizerTest() : parameters_(1) {
    parameters_[0].spec.name = "p";
    parameters_[0].value = *Tensor::Allocate(CpuDevice(), DType::kF32, {kElements});
    parameters_[0].gradient = *Tensor::Allocate(CpuDevice(), DType::kF32, {kElements});
    for (float& value : parameters_[0].value.floats()) value = 1;
  }

  absl::StatusOr<std::unique_ptr<Optimizer>> New(const OptimizerSpec& spec) {
    return NewOptimizer(spec, absl::MakeSpan(parameters_), CpuDevice(), ops_.get());
  }
  // The value after a step with this gradient; all elements are alike.
  float Step(Optimizer* optimizer, float gradient, double lr) {
    for (float& g : parameters_[0].gradient.floats()) g = gradient;
    EXPECT_TRUE(optimizer->Step(lr).ok());
    for (float g : parameters_[0].gradient.floats()) EXPECT_EQ(g, 0) << "not cleared";
    const auto values = parameters_[0].value.floats();
    for (float value : values) EXPECT_EQ(value, values[0]);
    return values[0];
  }

  std::unique_ptr<Ops> ops_ = NewCpuOps(2);
  std::vector<Parameter> parameters_;
};

TEST_F(OptimizerTest, PlainSgdGoesAgainstTheGradient) {
  const auto sgd = *New({});
  EXPECT_FLOAT_EQ(Step(sgd.get(), 2, 0.25), 0.5);
}

TEST_F(OptimizerTest, WeightDecayAddsTheValueToTheGradient) {
  OptimizerSpec spec;
  spec.weight_decay = 0.5;
  const auto sgd = *New(spec);
  EXPECT_FLOAT_EQ(Step(sgd.get(), 0, 0.5), 0.75);
}

TEST_F(OptimizerTest, MomentumStartsWithTheFirstGradientAndGathers) {
  OptimizerSpec spec;
  spec.momentum = 0.5;
  const auto sgd = *New(spec);
  EXPECT_FLOAT_EQ(Step(sgd.get(), 1, 0.25), 0.75);    // v = 1
  EXPECT_FLOAT_EQ(Step(sgd.get(), 1, 0.25), 0.375);   // v = 1.5
  EXPECT_FLOAT_EQ(Step(sgd.get(), 0, 0.25), 0.1875);  // v = 0.75
}

TEST_F(OptimizerTest, NesterovLooksAhead) {
  OptimizerSpec spec;
  spec.momentum = 0.5;
  spec.nesterov = true;
  const auto sgd = *New(spec);
  EXPECT_FLOAT_EQ(Step(sgd.get(), 1, 0.25), 0.625);  // g + 0.5 v = 1.5
}

TEST_F(OptimizerTest, EveryParameterIsUpdatedWithItsOwnGradientAndVelocity) {
  parameters_.resize(2);
  parameters_[1].spec.name = "q";
  parameters_[1].value = *Tensor::Allocate(CpuDevice(), DType::kF32, {2});
  parameters_[1].gradient = *Tensor::Allocate(CpuDevice(), DType::kF32, {2});
  for (float& value : parameters_[1].value.floats()) value = 4;
  OptimizerSpec spec;
  spec.momentum = 0.5;
  const auto sgd = *New(spec);
  for (float want : {3.0f, 1.5f}) {  // v = 4, then 6
    for (float& g : parameters_[1].gradient.floats()) g = 4;
    Step(sgd.get(), 1, 0.25);
    EXPECT_FLOAT_EQ(parameters_[1].value.floats()[1], want);
    EXPECT_EQ(parameters_[1].gradient.floats()[1], 0);
  }
  EXPECT_FLOAT_EQ(parameters_[0].value.floats()[0], 0.375f);  // v = 1, then 1.5
}

TEST_F(OptimizerTest, RunningStatisticsAreLeftAlone) {
  parameters_[0].spec.trainable = false;
  const auto sgd = *New({});
  ASSERT_TRUE(sgd->Step(1).ok());
  EXPECT_EQ(parameters_[0].value.floats()[0], 1);
}

TEST_F(OptimizerTest, RefusesNesterovWithoutMomentumAndNegativeNumbers) {
  OptimizerSpec nesterov, negative;
  nesterov.nesterov = true;
  negative.momentum = -0.5;
  EXPECT_EQ(New(nesterov).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(New(negative).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace thinwire
