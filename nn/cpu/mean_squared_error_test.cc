#include <gtest/gtest.h>

#include <cmath>

#include "nn/cpu/ops.h"
#include "nn/cpu/tensors_testing.h"

namespace thinwire::cpu {
namespace {

LossSums MeanSquaredError(const SquaredErrors& a) {
  LossSums sums;
  EXPECT_TRUE(NewCpuOps(1)->MeanSquaredError(a, &sums).ok());
  return sums;
}

TEST(MeanSquaredErrorTest, IsWhatTheFormulaSaysAndIgnoresRowsWithoutAScore) {
  for (const DType type : {DType::kF32, DType::kBF16}) {
    TestTensor outputs(type, {3, 2}, {2.5f, NAN, -1, 9, 4, 9}), doutputs(type, {3, 2});
    const std::vector<int32_t> scores = {2000, -1, 5000};
    SquaredErrors a;
    a.outputs = outputs.view();
    a.doutputs = doutputs.view();
    a.scores = scores.data();
    a.unit = 0.001;
    a.batch_size = 4;
    const LossSums sums = MeanSquaredError(a);
    EXPECT_DOUBLE_EQ(sums.loss, 0.25 + 1);
    EXPECT_EQ(sums.counted, 2);
    EXPECT_EQ(sums.correct, 0);
    EXPECT_EQ(doutputs.Read(), (Floats{0.25f, 0, 0, 0, -0.5f, 0}));
    a.doutputs = {};
    EXPECT_EQ(MeanSquaredError(a).loss, sums.loss);
  }
}

TEST(MeanSquaredErrorTest, ANaNIsInTheLoss) {
  TestTensor outputs(DType::kF32, {1, 1}, {NAN});
  const int32_t score = 1;
  SquaredErrors a;
  a.outputs = outputs.view();
  a.scores = &score;
  a.unit = a.batch_size = 1;
  EXPECT_TRUE(std::isnan(MeanSquaredError(a).loss));
}

}  // namespace
}  // namespace thinwire::cpu
