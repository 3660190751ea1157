#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/experiment.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<Experiment> Stopping(const std::vector<std::string>& overrides) {
  constexpr char kFile[] =
      "{data: {name: digits}, model: {name: resnet8}, optimizer: {lr: 0.1}, epochs: 3}";
  return ParseExperiment(kFile, "test", overrides);
}

std::string StopRefusal(const std::vector<std::string>& overrides) {
  return std::string(Stopping(overrides).status().message());
}

TEST(EarlyStopConfigTest, IsAbsentUnlessGiven) { EXPECT_FALSE(Stopping({})->has_early_stop()); }

TEST(EarlyStopConfigTest, HasDefaultsOnceAFieldIsGiven) {
  const auto experiment = Stopping({"early_stop.min_delta=0.5"});
  ASSERT_TRUE(experiment.ok()) << experiment.status();
  const EarlyStopConfig& stop = experiment->early_stop();
  EXPECT_EQ(stop.metric(), "loss");
  EXPECT_EQ(stop.patience(), 5u);
  EXPECT_EQ(stop.min_delta(), 0.5);
}

TEST(EarlyStopConfigTest, RefusesWhatCannotBe) {
  EXPECT_THAT(StopRefusal({"early_stop.metric=speed"}), HasSubstr("early_stop.metric: "));
  EXPECT_THAT(StopRefusal({"early_stop.patience=0"}),
              HasSubstr("early_stop.patience: 0, want at least 1"));
  EXPECT_THAT(StopRefusal({"early_stop.min_delta=-1"}),
              HasSubstr("early_stop.min_delta: -1, want a finite number of at least 0"));
  EXPECT_THAT(StopRefusal({"early_stop.patience=2", "evaluation.every=0"}),
              HasSubstr("early_stop: nothing is evaluated before the run's end"));
  EXPECT_THAT(StopRefusal({"early_stop.patience=2", "evaluation.compressed=false",
                           "evaluation.uncompressed=false"}),
              HasSubstr("early_stop.metric: loss, but nothing is evaluated"));
}

TEST(EarlyStopConfigTest, EndsLocalStepsWithAnEpoch) {
  const std::string local = "replicas={count: 2, sync: local, every: 4}";
  EXPECT_THAT(StopRefusal({"early_stop.patience=2", local, "evaluation.every_steps=7"}),
              HasSubstr("early_stop: evaluation.every_steps is 7 with replicas.sync: local, want"));
  EXPECT_TRUE(Stopping({"early_stop.patience=2", local}).ok());
  EXPECT_TRUE(Stopping({local, "evaluation.every_steps=7"}).ok());
  EXPECT_TRUE(Stopping({"early_stop.patience=2", "evaluation.every_steps=7"}).ok());
}

}  // namespace
}  // namespace thinwire
