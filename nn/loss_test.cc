#include "nn/loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "nn/cpu/ops.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

class LossTest : public testing::Test {
 protected:
  static Tensor Logits(const Shape& shape, const std::vector<float>& values) {
    Tensor logits = *Tensor::Allocate(CpuDevice(), DType::kF32, shape);
    std::copy(values.begin(), values.end(), logits.floats().begin());
    return logits;
  }
  absl::StatusOr<LossSums> Loss(const Tensor& logits, const std::vector<int32_t>& labels,
                                int64_t batch_size, Tensor* dlogits = nullptr) {
    const int64_t classes = logits.shape()[logits.shape().rank() - 1];
    return SoftmaxCrossEntropy(logits, classes, labels, batch_size, ops_.get(), dlogits);
  }

  std::unique_ptr<Ops> ops_ = NewCpuOps(1);
};

TEST_F(LossTest, SumsMinusLogProbabilities) {
  const LossSums sums = *Loss(Logits({2, 2}, {0, 0, std::log(3.0f), 0}), {0, 1}, 2);
  EXPECT_NEAR(sums.loss, std::log(2.0) + std::log(4.0), 1e-6);
}

TEST_F(LossTest, TheGradientIsSoftmaxMinusOnehotOverTheWholeBatch) {
  Tensor dlogits;
  ASSERT_TRUE(Loss(Logits({1, 2}, {std::log(3.0f), 0}), {1}, /*batch_size=*/10, &dlogits).ok());
  EXPECT_NEAR(dlogits.floats()[0], 0.075, 1e-7);
  EXPECT_NEAR(dlogits.floats()[1], -0.075, 1e-7);
}

TEST_F(LossTest, TheLowerClassWinsTies) {
  EXPECT_EQ(Loss(Logits({2, 3}, {1, 1, 0, 1, 1, 0}), {0, 1}, 2)->correct, 1);
}

TEST_F(LossTest, HugeLogitsDoNotOverflow) {
  const LossSums sums = *Loss(Logits({1, 2}, {3e38f, -3e38f}), {1}, 1);
  EXPECT_TRUE(std::isfinite(sums.loss));
  EXPECT_GT(sums.loss, 5e38);
}

TEST_F(LossTest, BF16LogitsGiveABF16Gradient) {
  const Tensor logits = Logits({1, 2}, {1, 0});
  Tensor rounded = *Tensor::Allocate(CpuDevice(), DType::kBF16, logits.shape());
  ASSERT_TRUE(ops_->Convert(logits.view(), rounded.view()).ok());
  Tensor dlogits;
  EXPECT_NEAR(Loss(rounded, {0}, 1, &dlogits)->loss, std::log(1 + std::exp(-1.0)), 1e-12);
  EXPECT_EQ(dlogits.dtype(), DType::kBF16);
}

TEST_F(LossTest, EachPositionOfASequenceHasALabel) {
  const std::vector<float> values = {0, 0, std::log(3.0f), 0, 1, 2, 2, 1};
  Tensor by_rows, by_positions;
  const LossSums rows = *Loss(Logits({4, 2}, values), {0, 1, 1, 1}, 8, &by_rows);
  const LossSums positions = *Loss(Logits({2, 2, 2}, values), {0, 1, 1, 1}, 8, &by_positions);
  EXPECT_EQ(positions.loss, rows.loss);
  EXPECT_EQ(positions.correct, 2);
  EXPECT_EQ(by_positions.shape(), (Shape{2, 2, 2}));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(by_positions.floats()[i], by_rows.floats()[i]);
}

TEST_F(LossTest, TheGradientTakesTheMemoryOfLogitsThatNobodyElseHas) {
  Tensor logits = Logits({1, 2}, {std::log(3.0f), 0}), kept = Logits({1, 2}, {std::log(3.0f), 0});
  const void* const memory = logits.data();
  Tensor in_place, beside;
  ASSERT_TRUE(SoftmaxCrossEntropy(std::move(logits), 2, {1}, 10, ops_.get(), &in_place).ok());
  ASSERT_TRUE(SoftmaxCrossEntropy(kept, 2, {1}, 10, ops_.get(), &beside).ok());
  EXPECT_EQ(in_place.data(), memory);
  EXPECT_NE(beside.data(), kept.data());
  EXPECT_EQ(kept.floats()[1], 0);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(in_place.floats()[i], beside.floats()[i]);
}

TEST_F(LossTest, WhatStandsBehindTheClassesCountsForNothing) {
  Tensor tight, longer;
  const Tensor logits = Logits({2, 2}, {1, 0, 0, 2});
  const Tensor rows = Logits({2, 4}, {1, 0, 9, NAN, 0, 2, 9, NAN});
  const LossSums want = *Loss(logits, {0, 1}, 2, &tight);
  const LossSums got = *SoftmaxCrossEntropy(rows, 2, {0, 1}, 2, ops_.get(), &longer);
  EXPECT_EQ(got.loss, want.loss);
  EXPECT_EQ(got.correct, want.correct);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(longer.floats()[i], i % 4 < 2 ? tight.floats()[i / 4 * 2 + i % 4] : 0) << i;
  }
  EXPECT_FALSE(SoftmaxCrossEntropy(rows, 5, {0, 1}, 2, ops_.get(), &longer).ok());
}

TEST_F(LossTest, RefusesALabelBeyondTheClasses) {
  const auto sums = Loss(Logits({1, 2}, {0, 0}), {2}, 1);
  EXPECT_EQ(sums.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(LossTest, RowsWithANegativeLabelAreIgnored) {
  Tensor all, counted;
  const LossSums want = *Loss(Logits({2, 2}, {0, 2, 1, 0}), {0, 0}, 2, &counted);
  const LossSums got = *Loss(Logits({4, 2}, {5, 5, 0, 2, -5, 7, 1, 0}), {-100, 0, -1, 0}, 2, &all);
  EXPECT_EQ(got.loss, want.loss);
  EXPECT_EQ(got.correct, want.correct);
  EXPECT_EQ(got.counted, 2);
  EXPECT_EQ(want.counted, 2);
  for (const int i : {0, 1, 4, 5}) EXPECT_EQ(all.floats()[i], 0);
  for (const int i : {2, 3}) EXPECT_EQ(all.floats()[i], counted.floats()[i - 2]);
  for (const int i : {6, 7}) EXPECT_EQ(all.floats()[i], counted.floats()[i - 4]);
}

TEST_F(LossTest, ScoresHaveSquaredErrors) {
  const std::vector<int32_t> scores = {8, 20};
  Tensor doutputs;
  const auto loss = SubmitMeanSquaredError(Logits({2, 3}, {1, 9, 9, 5.5f, 9, 9}), scores, 0.25,
                                           /*batch_rows=*/8, ops_.get(), &doutputs);
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_EQ(loss->sums().loss, 1 + 0.25);
  EXPECT_EQ(loss->sums().counted, 2);
  const std::vector<float> want = {-0.25f, 0, 0, 0.125f, 0, 0};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(doutputs.floats()[i], want[i]) << i;
  EXPECT_FALSE(SubmitMeanSquaredError(Logits({1, 1}, {1}), scores, 1, 8, ops_.get(), nullptr).ok());
}

TEST_F(LossTest, RefusesAsManyLabelsAsThereAreNotRows) {
  EXPECT_FALSE(Loss(Logits({1, 2}, {0, 0}), {0, 1}, 1).ok());
}

}  // namespace
}  // namespace thinwire
