#include "nn/segment/recalibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "nn/segment/segment_testing.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;

// Tests one batch norm over one channel, trained on a batch so that its statistics are no defaults.
class RecalibrationTest : public ::testing::Test {
 protected:
  RecalibrationTest() {
    Saved saved;
    EXPECT_TRUE(segment_->Forward(Column({1, 2, 3, 6}), Mode::kTrain, &saved).ok());
    kept_ = Statistics();
    recalibration_ = *Recalibration::Start({segment_.get()}, CpuDevice());
  }

  static Tensor Column(const std::vector<float>& values) {
    Tensor column =
        *Tensor::Allocate(CpuDevice(), DType::kF32, {static_cast<int64_t>(values.size()), 1});
    std::copy(values.begin(), values.end(), column.floats().begin());
    return column;
  }
  void AddBatch(const std::vector<float>& values) {
    ASSERT_TRUE(segment_->Forward(Column(values), Mode::kRecalibrate, nullptr).ok());
    ASSERT_TRUE(recalibration_->AddBatch().ok());
  }
  // Returns mean and variance.
  std::vector<float> Statistics() const {
    return {segment_->parameters()[2].value.floats()[0],
            segment_->parameters()[3].value.floats()[0]};
  }

  const std::shared_ptr<Ops> ops_ = NewCpuOps(1);
  const std::unique_ptr<Segment> segment_ =
      Built(OneBlock({LayerOf(LayerKind::kBatchNorm, "b")}, {1, 1}), ops_.get());
  std::vector<float> kept_;
  std::unique_ptr<Recalibration> recalibration_;
};

TEST_F(RecalibrationTest, StatisticsArePlainMeansOverBatches) {
  AddBatch({0, 4});     // mean 2, unbiased variance 8
  AddBatch({3, 4, 5});  // mean 4, unbiased variance 1: a smaller batch counts as much
  ASSERT_TRUE(recalibration_->Apply().ok());
  EXPECT_THAT(Statistics(), ElementsAre(3.0f, 4.5f));
  const Tensor y = *segment_->Forward(Column({6}), Mode::kEvaluate, nullptr);
  EXPECT_NEAR(y.floats()[0], 3 / std::sqrt(4.5 + 1e-5), 1e-6);
}

TEST_F(RecalibrationTest, ABatchIsNormalisedByItsOwnStatistics) {
  const Tensor y = *segment_->Forward(Column({0, 4}), Mode::kRecalibrate, nullptr);
  EXPECT_NEAR(y.floats()[1], 2 / std::sqrt(4 + 1e-5), 1e-6);
}

TEST_F(RecalibrationTest, RestoreBringsBackTheBits) {
  AddBatch({0, 4});
  EXPECT_NE(Statistics(), kept_);
  ASSERT_TRUE(recalibration_->Apply().ok());
  ASSERT_TRUE(recalibration_->Restore().ok());
  EXPECT_EQ(Statistics(), kept_);
}

TEST_F(RecalibrationTest, RefusesToApplyNothing) {
  EXPECT_EQ(recalibration_->Apply().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Statistics(), kept_);
}

}  // namespace
}  // namespace thinwire
