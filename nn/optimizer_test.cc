#include "nn/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "nn/cpu/ops.h"
#include "nn/gradient_norm.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

// 37 elements: whole vectors and a remainder for every instruction set.
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
  // Returns the value after a step with this gradient; all elements are equal.
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

TEST_F(OptimizerTest, TheGradientIsScaledBeforeWeightDecayIsAdded) {
  OptimizerSpec spec;
  spec.weight_decay = 0.5;
  const auto sgd = *New(spec);
  for (float& g : parameters_[0].gradient.floats()) g = 4;
  ASSERT_TRUE(sgd->Step(/*lr=*/0.25, /*gradient_scale=*/0.125).ok());
  EXPECT_FLOAT_EQ(parameters_[0].value.floats()[0], 0.75);  // 1 - 0.25 (4 / 8 + 0.5)
}

TEST_F(OptimizerTest, MomentumIsReadableByPyTorchsName) {
  OptimizerSpec spec;
  EXPECT_TRUE((*New(spec))->state().empty());
  spec.momentum = 0.5;
  const auto sgd = *New(spec);
  Step(sgd.get(), 1, 0.25);
  Step(sgd.get(), 1, 0.25);
  EXPECT_EQ(sgd->steps(), 2);
  const std::vector<OptimizerState> state = sgd->state();
  ASSERT_EQ(state.size(), 1u);
  EXPECT_EQ(state[0].parameter, "p");
  EXPECT_EQ(state[0].name, "momentum_buffer");
  for (float velocity : state[0].tensor.floats()) EXPECT_EQ(velocity, 1.5f);
}

// A weight [2, 3] and a bias [2] whose gradients grow and shrink from step to step.
class AdamWTest : public testing::Test {
 protected:
  AdamWTest() : parameters_(2) {
    Make("fc.weight", {2, 3}, {0.5, -1, 2, 0.25, 0, -3}, &parameters_[0]);
    Make("fc.bias", {2}, {1, -0.5}, &parameters_[1]);
    spec_.kind = OptimizerKind::kAdamW;
    spec_.weight_decay = 0.1;
  }

  static void Make(const char* name, const Shape& shape, const std::vector<float>& values,
                   Parameter* parameter) {
    parameter->spec.name = name;
    parameter->spec.shape = shape;
    parameter->value = *Tensor::Allocate(CpuDevice(), DType::kF32, shape);
    parameter->gradient = *Tensor::Allocate(CpuDevice(), DType::kF32, shape);
    std::copy(values.begin(), values.end(), parameter->value.floats().begin());
  }

  // Trains five steps with rate 0.1.
  std::unique_ptr<Optimizer> Train() {
    auto optimizer = *NewOptimizer(spec_, absl::MakeSpan(parameters_), CpuDevice(), ops_.get());
    constexpr float kWeight[] = {1, -2, 0.5, 0, 3, -1.5}, kBias[] = {0.125, -4};
    for (int t = 1; t <= 5; ++t) {
      for (int i = 0; i < 6; ++i) parameters_[0].gradient.floats()[i] = kWeight[i] * t;
      for (int i = 0; i < 2; ++i) parameters_[1].gradient.floats()[i] = kBias[i] / t;
      double squares = 0;
      EXPECT_TRUE(AddSquares(parameters_, ops_.get(), &squares).ok());
      const double scale = spec_.clip_norm > 0 ? ClipScale(squares, spec_.clip_norm) : 1;
      EXPECT_TRUE(optimizer->Step(0.1, scale).ok());
      for (const Parameter& parameter : parameters_) {
        for (float g : parameter.gradient.floats()) EXPECT_EQ(g, 0) << "not cleared";
      }
    }
    return optimizer;
  }

  static void ExpectNear(const Tensor& tensor, const std::vector<double>& wanted) {
    ASSERT_EQ(tensor.elements(), static_cast<int64_t>(wanted.size()));
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_NEAR(tensor.floats()[i], wanted[i], 2e-5 * std::max(0.1, std::abs(wanted[i]))) << i;
    }
  }

  OptimizerSpec spec_;
  std::unique_ptr<Ops> ops_ = NewCpuOps(2);
  std::vector<Parameter> parameters_;
};

// The numbers of this test and the next come from torch.optim.AdamW's formula in fp64.
TEST_F(AdamWTest, DecaysValuesAndCorrectsTheBiasOfItsMeans) {
  const auto adamw = Train();
  ExpectNear(parameters_[0].value,
             {8.5851195e-05, -0.47558087, 1.4265709, 0.23774751, -0.47540918, -2.377561});
  ExpectNear(parameters_[1].value, {0.5201119, -0.044616827});
}

TEST_F(AdamWTest, MayDecayMatricesOnlyAndClip) {
  spec_.decay = DecayKind::kMatrices;
  spec_.clip_norm = 2;
  const auto adamw = Train();
  ExpectNear(parameters_[0].value,
             {-0.015222837, -0.46027218, 1.4112622, 0.23774751, -0.49071787, -2.3622523});
  ExpectNear(parameters_[1].value, {0.61013377, -0.11013364});
}

TEST_F(AdamWTest, ItsMeansAreReadableByPyTorchsNames) {
  const auto adamw = Train();
  EXPECT_EQ(adamw->steps(), 5);
  const std::vector<OptimizerState> state = adamw->state();
  ASSERT_EQ(state.size(), 4u);
  EXPECT_EQ(state[0].parameter, "fc.weight");
  EXPECT_EQ(state[0].name, "exp_avg");
  ExpectNear(state[0].tensor, {1.31441, -2.62882, 0.657205, 0, 3.94323, -1.971615});
  EXPECT_EQ(state[1].parameter, "fc.weight");
  EXPECT_EQ(state[1].name, "exp_avg_sq");
  ExpectNear(state[1].tensor, {0.054950027, 0.21980011, 0.013737507, 0, 0.49455024, 0.12363756});
  EXPECT_EQ(state[3].parameter, "fc.bias");
  EXPECT_EQ(state[3].name, "exp_avg_sq");
  EXPECT_EQ(state[3].tensor.shape(), Shape{2});
}

// 1 - beta2 must be 0.001 to the last bit of fp32; computed from an fp32 beta2 it would be
// 0.00099998713.
TEST_F(AdamWTest, TakesItsNumbersInFp64) {
  spec_.beta2 = 0.999;
  const auto adamw = *NewOptimizer(spec_, absl::MakeSpan(parameters_), CpuDevice(), ops_.get());
  for (Parameter& parameter : parameters_) {
    for (float& g : parameter.gradient.floats()) g = 1;
  }
  ASSERT_TRUE(adamw->Step(0.1).ok());
  EXPECT_EQ(adamw->state()[1].tensor.floats()[0], 0.001f);
}

TEST(OptimizerSpecTest, CountsWhatIsRememberedOfAnElement) {
  const auto buffers = [](const OptimizerSpec& spec) {
    return std::pair(OptimizerBuffers(spec, /*hidden=*/false),
                     OptimizerBuffers(spec, /*hidden=*/true));
  };
  OptimizerSpec sgd;
  EXPECT_EQ(buffers(sgd), std::pair(0.0, 0.0));
  sgd.momentum = 0.9;
  EXPECT_EQ(buffers(sgd), std::pair(1.0, 1.0));
  EXPECT_EQ(buffers(DefaultOptimizer(OptimizerKind::kAdamW)), std::pair(2.0, 2.0));
  EXPECT_EQ(buffers(DefaultOptimizer(OptimizerKind::kMuon)), std::pair(2.0, 1.0));
}

TEST(OptimizerSpecTest, CodesTakeAQuarterOfHiddenParametersAndTheHostTakesAll) {
  OptimizerSpec spec = DefaultOptimizer(OptimizerKind::kAdamW);
  spec.moments = MomentFormat::kInt8;
  EXPECT_EQ(OptimizerBuffers(spec, /*hidden=*/false), 2);
  EXPECT_EQ(OptimizerBuffers(spec, /*hidden=*/true), 2 * (0.25 + 1.0 / 256));
  spec.place = OptimizerPlace::kHost;
  for (const bool hidden : {false, true}) {
    EXPECT_GT(OptimizerBuffers(spec, hidden, /*on_gpu=*/false), 0);
    EXPECT_EQ(OptimizerBuffers(spec, hidden, /*on_gpu=*/true), 0);
  }
}

TEST_F(AdamWTest, OnlyLargeHiddenWeightsHaveCodes) {
  spec_.moments = MomentFormat::kInt8;
  parameters_.resize(3);
  const Shape shapes[] = {{64, 64}, {64, 64}, {63, 65}};
  for (size_t i = 0; i < 3; ++i) {
    Make("weight", shapes[i], {1, 2, 3}, &parameters_[i]);
    parameters_[i].spec.hidden = i != 1;
  }
  const auto adamw = *NewOptimizer(spec_, absl::MakeSpan(parameters_), CpuDevice(), ops_.get());
  const std::vector<OptimizerState> state = adamw->state();
  ASSERT_EQ(state.size(), 6u);
  EXPECT_EQ(state[0].code, &kSignedMoments);
  EXPECT_EQ(state[1].code, &kUnsignedMoments);
  EXPECT_EQ(state[0].tensor.shape(), Shape({16 + 1024}));
  EXPECT_EQ(state[0].shape, Shape({64, 64}));
  for (size_t i = 2; i < 6; ++i) EXPECT_EQ(state[i].code, nullptr) << i;
}

TEST_F(AdamWTest, CodesAreReadAndWrittenAsTheirNumbers) {
  spec_.moments = MomentFormat::kInt8;
  spec_.beta1 = 0;
  parameters_.resize(1);
  Make("weight", {64, 64}, {}, &parameters_[0]);
  parameters_[0].spec.hidden = true;
  const auto adamw = *NewOptimizer(spec_, absl::MakeSpan(parameters_), CpuDevice(), ops_.get());
  for (int i = 0; i < 4096; ++i) parameters_[0].gradient.floats()[i] = 1 + (i % 7);
  ASSERT_TRUE(adamw->Step(0.1).ok());
  const OptimizerState mean = adamw->state()[0];
  const Tensor numbers = *NumbersOf(mean);
  EXPECT_EQ(numbers.shape(), Shape({64, 64}));
  for (int i = 0; i < 4096; ++i) EXPECT_NEAR(numbers.floats()[i], 1 + (i % 7), 0.05);
  std::fill(numbers.floats().begin(), numbers.floats().end(), -2.5f);
  ASSERT_TRUE(SetNumbers(mean, numbers).ok());
  const Tensor now = *NumbersOf(adamw->state()[0]);
  for (const float number : now.floats()) EXPECT_EQ(number, -2.5f);
}

// A hidden matrix [2, 3] of two parts, or of one, and a bias [2].
class MuonTest : public AdamWTest {
 protected:
  MuonTest() {
    spec_ = DefaultOptimizer(OptimizerKind::kMuon);
    spec_.adamw_lr = 0.01;
    spec_.lr = 0.1;  // of Train's steps
    parameters_[0].spec.hidden = true;
  }
};

TEST_F(MuonTest, AStepOfAMatrixWithOneRowHasTheLengthOfTheRate) {
  parameters_[0].spec.parts = {{"first", 1}, {"second", 1}};
  auto muon = *NewOptimizer(spec_, absl::MakeSpan(parameters_), CpuDevice(), ops_.get());
  const std::vector<float> before(parameters_[0].value.floats().begin(),
                                  parameters_[0].value.floats().end());
  const std::vector<float> gradient = {3, 0, 4, 0, 0, -0.5f};
  std::copy(gradient.begin(), gradient.end(), parameters_[0].gradient.floats().begin());
  ASSERT_TRUE(muon->Step(/*lr=*/0.1).ok());
  // Five applications of the polynomial map a singular value of 1 to 0.69644.
  const double length = 0.1 * 0.69644;
  const double wanted[] = {0.6, 0, 0.8, 0, 0, -1};
  for (int i = 0; i < 6; ++i) {
    const auto moved = static_cast<double>(before[i] - parameters_[0].value.floats()[i]);
    EXPECT_NEAR(moved, length * wanted[i], 2e-4 * length) << i;
    EXPECT_EQ(parameters_[0].gradient.floats()[i], 0) << "not cleared";
  }
}

TEST_F(MuonTest, WhatIsNotHiddenTakesAdamWsStepsWithItsOwnRate) {
  const auto muon = Train();
  const std::vector<float> bias(parameters_[1].value.floats().begin(),
                                parameters_[1].value.floats().end());
  Make("fc.bias", {2}, {1, -0.5}, &parameters_[1]);
  OptimizerSpec adamw = DefaultOptimizer(OptimizerKind::kAdamW);
  adamw.beta2 = 0.95;
  adamw.epsilon = 1e-10;
  const auto alone =
      *NewOptimizer(adamw, absl::MakeSpan(parameters_).subspan(1), CpuDevice(), ops_.get());
  constexpr float kBias[] = {0.125, -4};
  for (int t = 1; t <= 5; ++t) {
    for (int i = 0; i < 2; ++i) parameters_[1].gradient.floats()[i] = kBias[i] / t;
    ASSERT_TRUE(alone->Step(0.01).ok());
  }
  for (int i = 0; i < 2; ++i) EXPECT_EQ(parameters_[1].value.floats()[i], bias[i]);
}

TEST_F(MuonTest, RemembersMomentumOfTheHiddenAndMeansOfTheRest) {
  const auto muon = Train();
  const std::vector<OptimizerState> state = muon->state();
  ASSERT_EQ(state.size(), 3u);
  EXPECT_EQ(state[0].parameter + " " + state[0].name, "fc.weight momentum_buffer");
  EXPECT_EQ(state[1].parameter + " " + state[1].name, "fc.bias exp_avg");
  EXPECT_EQ(state[2].parameter + " " + state[2].name, "fc.bias exp_avg_sq");
  // The state is the sum of t 0.95^(5 - t) for t from 1 to 5.
  ExpectNear(state[0].tensor, {14.036756, -28.073512, 7.0183781, 0, 42.110269, -21.055134});
}

TEST_F(MuonTest, GoesOnFromWhatItRemembers) {
  const auto once = Train();
  const std::vector<float> middle(parameters_[0].value.floats().begin(),
                                  parameters_[0].value.floats().end());
  std::vector<std::vector<float>> remembered;
  for (const OptimizerState& state : once->state()) {
    remembered.emplace_back(state.tensor.floats().begin(), state.tensor.floats().end());
  }
  const auto step = [&](Optimizer* optimizer) {
    for (float& g : parameters_[0].gradient.floats()) g = 0.3f;
    ASSERT_TRUE(optimizer->Step(0.1).ok());
  };
  step(once.get());
  const std::vector<float> end(parameters_[0].value.floats().begin(),
                               parameters_[0].value.floats().end());
  std::copy(middle.begin(), middle.end(), parameters_[0].value.floats().begin());
  const auto other = *NewOptimizer(spec_, absl::MakeSpan(parameters_), CpuDevice(), ops_.get());
  for (size_t i = 0; i < remembered.size(); ++i) {
    Tensor tensor = other->state()[i].tensor;
    std::copy(remembered[i].begin(), remembered[i].end(), tensor.floats().begin());
  }
  other->set_steps(once->steps() - 1);
  step(other.get());
  for (int i = 0; i < 6; ++i) EXPECT_EQ(parameters_[0].value.floats()[i], end[i]);
}

TEST_F(OptimizerTest, RunningStatisticsAreLeftAlone) {
  parameters_[0].spec.role = ParameterSpec::Role::kStatistics;
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
