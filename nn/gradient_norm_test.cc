#include "nn/gradient_norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "nn/cpu/ops.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

Parameter WithGradient(const std::string& name, const std::vector<float>& gradient) {
  Parameter parameter;
  parameter.spec.name = name;
  parameter.gradient =
      *Tensor::Allocate(CpuDevice(), DType::kF32, {static_cast<int64_t>(gradient.size())});
  std::copy(gradient.begin(), gradient.end(), parameter.gradient.floats().begin());
  return parameter;
}

class GradientNormTest : public testing::Test {
 protected:
  const std::unique_ptr<Ops> ops_ = NewCpuOps(1);
};

TEST_F(GradientNormTest, AddsToWhatWasThereBefore) {
  const std::vector<Parameter> parameters = {WithGradient("a", {3, 4}), WithGradient("b", {-2})};
  double sum = 0.5;
  ASSERT_TRUE(AddSquares(parameters, ops_.get(), &sum).ok());
  EXPECT_EQ(sum, 29.5);
}

TEST_F(GradientNormTest, LeavesOutRunningStatisticsAndTiedCopies) {
  std::vector<Parameter> parameters(3);
  parameters[0] = WithGradient("wte.weight", {2});
  parameters[1].spec.role = ParameterSpec::Role::kStatistics;
  parameters[2] = WithGradient("head.weight", {2});
  parameters[2].spec.tied_to = "wte.weight";
  double sum = 0;
  ASSERT_TRUE(AddSquares(parameters, ops_.get(), &sum).ok());
  EXPECT_EQ(sum, 4);
}

TEST_F(GradientNormTest, SumsThatAreNoNumberNameTheParameter) {
  for (float value : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    double sum = 0;
    const absl::Status status =
        AddSquares(std::vector<Parameter>{WithGradient("a", {1}), WithGradient("b", {1, value})},
                   ops_.get(), &sum);
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(std::string(status.message()), HasSubstr("with the gradient of b"));
  }
}

TEST_F(GradientNormTest, OnlyLongerGradientsAreScaled) {
  EXPECT_EQ(ClipScale(/*sum_of_squares=*/0, /*clip_norm=*/1), 1);
  EXPECT_EQ(ClipScale(0.25, 1), 1);
  EXPECT_DOUBLE_EQ(ClipScale(16, 1), 1 / 4.000001);
}

}  // namespace
}  // namespace thinwire
