#include "coordinator/run/generation.h"

#include <optional>
#include <string>

#include "coordinator/run/run_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

// One generation of the run on the two stages, without a loop around it.
class GenerationTest : public RunTest {
 protected:
  // With `end` it ends before its first step.
  absl::Status RunOne(const std::optional<Failure>& end = std::nullopt, bool keeps_state = false) {
    FleetOptions options;
    options.grace = absl::Milliseconds(50);
    Fleet fleet({first_.address(), last_.address()}, "run", options);
    if (end) fleet.EndAfterStep(*end);
    const CommonToGenerations run{experiment_, options_, reports_, observer_, summary_, base_};
    GenerationStart start;
    start.fleet = &fleet;
    start.keeps_state = keeps_state;
    const absl::Status status = Generation(run, start).Run();
    acquired_ = fleet.acquired();
    fleet.Release();
    return status;
  }

  RunOptions options_;
  TrainingReports reports_{{"layer1"}, {2}, std::nullopt, &observer_, &summary_};
  std::optional<CheckpointBase> base_;
  bool acquired_ = false;
};

TEST_F(GenerationTest, TrainsAndEvaluatesAllEpochs) {
  const absl::Status status = RunOne();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(summary_.epochs_size(), 2);
  EXPECT_EQ(reports_.step(), 4u);
  EXPECT_TRUE(acquired_);
}

TEST_F(GenerationTest, ALossEndsItAndTheReportsKeepHowFarItCame) {
  auto train = last_.train;
  last_.train = [train](const TrainRequest& request, grpc::ServerContext* context,
                        FakeStage::Writer* writer) {
    if (request.epoch() == 1) return train(request, context, writer);
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "Socket closed");
  };
  EXPECT_THAT(std::string(RunOne().message()), HasSubstr("Socket closed"));
  EXPECT_EQ(summary_.epochs_size(), 1);
  EXPECT_EQ(reports_.step(), 2u);
}

TEST_F(GenerationTest, AnotherOneWithoutACheckpointBeginsAnew) {
  ASSERT_TRUE(RunOne().ok());
  ASSERT_TRUE(RunOne().ok());
  EXPECT_EQ(summary_.epochs_size(), 2);
  EXPECT_EQ(summary_.provenance().stages_size(), 2);
  EXPECT_EQ(observer_.steps.size(), 8u);
}

TEST_F(GenerationTest, NoModelIsSavedWhereTheRunGoesOnWithWhatStagesKeep) {
  int saved = 0;
  options_.save_model = [&saved] {
    ++saved;
    return absl::OkStatus();
  };
  const auto end_by = [&](Failure::Kind kind, bool keeps_state) {
    const Failure end = {0, kind, absl::UnavailableError("another server")};
    EXPECT_TRUE(absl::IsCancelled(RunOne(end, keeps_state)));
    return saved;
  };
  EXPECT_EQ(end_by(Failure::Kind::kJoins, /*keeps_state=*/true), 0);
  EXPECT_EQ(end_by(Failure::Kind::kSpeeds, /*keeps_state=*/true), 0);
  EXPECT_EQ(end_by(Failure::Kind::kJoins, /*keeps_state=*/false), 1);
  EXPECT_EQ(end_by(Failure::Kind::kEnds, /*keeps_state=*/true), 2) << "nobody else has its state";
}

TEST_F(GenerationTest, WithoutItsStagesItIsNotAcquired) {
  first_.acquire = [] { return grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "not for you"); };
  EXPECT_THAT(std::string(RunOne().message()), HasSubstr("not for you"));
  EXPECT_FALSE(acquired_);
}

}  // namespace
}  // namespace thinwire
