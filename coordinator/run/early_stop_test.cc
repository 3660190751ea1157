#include "coordinator/run/early_stop.h"

#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace thinwire {
namespace {

class EarlyStopTest : public testing::Test {
 protected:
  EarlyStopTest() {
    config_.set_metric("loss");
    config_.set_patience(2);
    config_.set_min_delta(0);
  }
  // Returns why to stop after epochs with these losses; empty: the run goes on.
  std::string After(const std::vector<double>& losses) const {
    Summary summary;
    EpochRecord latest;
    for (const double loss : losses) {
      if (latest.epoch() > 0) *summary.add_epochs() = latest;
      latest.set_epoch(latest.epoch() + 1);
      latest.mutable_test()->mutable_compressed()->set_loss(loss);
      latest.mutable_test()->mutable_compressed()->set_accuracy(loss);
    }
    return WhyToStop(config_, summary.epochs(), latest).value_or("");
  }

  EarlyStopConfig config_;
};

TEST_F(EarlyStopTest, ARunThatGetsBetterGoesOn) {
  EXPECT_EQ(After({5}), "");
  EXPECT_EQ(After({5, 4, 3, 2, 1}), "");
  EXPECT_EQ(After({5, 6, 4, 6, 3}), "") << "one without a gain is fewer than two";
}

TEST_F(EarlyStopTest, SoManyInARowWithoutAGainEndIt) {
  EXPECT_EQ(After({5, 4, 4.5, 4.25}),
            "loss was no better than the 4 after epoch 2 in 2 evaluations");
  EXPECT_EQ(After({5, 5, 5}), "loss was no better than the 5 after epoch 1 in 2 evaluations")
      << "equal is no better";
  config_.set_patience(1);
  EXPECT_EQ(After({5, 6}), "loss was no better than the 5 after epoch 1 in 1 evaluation");
}

TEST_F(EarlyStopTest, AGainIsMoreThanTheLeastDifferenceFromTheLastGain) {
  config_.set_min_delta(1);
  EXPECT_EQ(After({5, 4.5, 4}),
            "loss was no better than the 5 after epoch 1 by more than 1 in 2 evaluations");
  EXPECT_EQ(After({5, 4.5, 3.5}), "") << "small gains add up";
}

TEST_F(EarlyStopTest, AHigherAccuracyIsBetter) {
  config_.set_metric("accuracy");
  EXPECT_EQ(After({0.5, 0.75, 0.875}), "");
  EXPECT_EQ(After({0.5, 0.25, 0.125}),
            "accuracy was no better than the 0.5 after epoch 1 in 2 evaluations");
}

TEST_F(EarlyStopTest, NumbersThatAreNoneAreNoGain) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(After({nan, nan}), "loss was no better in 2 evaluations");
}

TEST_F(EarlyStopTest, EvaluationsAfterStepsCountAndEpochsWithoutOneDoNot) {
  Summary summary;
  summary.add_epochs()->set_epoch(1);
  EpochRecord latest;
  for (const uint64_t step : {7, 14, 21}) {
    EvaluationRecord* const evaluation = latest.add_evaluations();
    evaluation->set_step(step);
    evaluation->mutable_test()->mutable_uncompressed()->set_loss(3);
  }
  EXPECT_EQ(WhyToStop(config_, summary.epochs(), latest),
            "loss was no better than the 3 after step 7 in 2 evaluations");
}

}  // namespace
}  // namespace thinwire
