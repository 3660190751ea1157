#include "coordinator/run/pace.h"

#include "gtest/gtest.h"

namespace thinwire {
namespace {

Pace TwoOfTenStepsDone() {
  Pace pace;
  pace.Start({/*epochs=*/5, /*steps_per_epoch=*/2, /*train_samples=*/20});
  StepRecord step;
  step.set_samples(10);
  step.set_seconds(4);
  for (const uint64_t number : {1, 2}) {
    step.set_step(number);
    pace.Add(step);
  }
  return pace;
}

TEST(PaceTest, TheStepsToComeTakeAsLongAsThoseDone) {
  EXPECT_EQ(TwoOfTenStepsDone().EtaSeconds(), 32.0);
  EXPECT_EQ(TwoOfTenStepsDone().SamplesPerSecond(), 2.5);
}

TEST(PaceTest, EvaluationsToComeCount) {
  Pace pace = TwoOfTenStepsDone();
  EpochRecord epoch;
  epoch.set_epoch(1);
  epoch.set_evaluation_seconds(3);
  pace.Add(epoch);
  EXPECT_EQ(pace.EtaSeconds(), 32.0 + 4 * 3.0);
}

TEST(PaceTest, ARunThatGoesOnHasFewerStepsToCome) {
  Pace pace;
  pace.Start({/*epochs=*/5, /*steps_per_epoch=*/2, /*train_samples=*/20});
  StepRecord step;
  step.set_step(7);
  step.set_seconds(4);
  pace.Add(step);
  EXPECT_EQ(pace.EtaSeconds(), 12.0);
}

TEST(PaceTest, NothingIsKnownBeforeTheFirstStep) { EXPECT_EQ(Pace().EtaSeconds(), 0.0); }

}  // namespace
}  // namespace thinwire
