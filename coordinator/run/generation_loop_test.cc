#include "coordinator/run/generation_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;

// Generations that do what the test says, on fleets that nobody calls.
class GenerationLoopTest : public ::testing::Test {
 protected:
  GenerationLoopTest() {
    restarts_.set_max(2);
    restarts_.set_window(600);
    options_.checkpoints = ::testing::TempDir() + "/generation_loop_test";
    options_.next_generation = [this](const Failure& loss) -> absl::StatusOr<Fleet*> {
      losses_.push_back(loss.stage);
      return NewFleet();
    };
  }

  Fleet* NewFleet() {
    fleet_ =
        std::make_unique<Fleet>(std::vector<std::string>{"unix:nobody"}, "run", FleetOptions());
    return fleet_.get();
  }
  absl::Status Run(const GenerationLoop::RunGeneration& run) {
    return GenerationLoop(options_, restarts_, kept_step_, run, &observer_, &summary_)
        .Run(NewFleet());
  }
  // Ends a generation as the death of its stage does.
  static absl::Status Die(Fleet* fleet) {
    const absl::Status died = absl::UnavailableError("stage 0 died");
    fleet->Fail({0, Failure::Kind::kDead, died});
    return died;
  }

  RunOptions options_;
  RestartsConfig restarts_;
  GenerationLoop::KeptStep kept_step_;
  RunObserver observer_;
  Summary summary_;
  std::unique_ptr<Fleet> fleet_;
  std::vector<int> losses_;  // stages
};

TEST_F(GenerationLoopTest, ARunWithoutALossIsOneGeneration) {
  int generations = 0;
  EXPECT_TRUE(Run([&](const GenerationStart& start) {
                ++generations;
                EXPECT_EQ(start.from, nullptr);
                EXPECT_FALSE(start.lost_at);
                return absl::OkStatus();
              }).ok());
  EXPECT_EQ(generations, 1);
  EXPECT_EQ(summary_.events_size(), 0);
}

TEST_F(GenerationLoopTest, TheNextGenerationHasAnotherFleetAndTheTimeOfTheLoss) {
  std::vector<bool> are_after_a_loss;
  EXPECT_TRUE(Run([&](const GenerationStart& start) {
                EXPECT_EQ(start.fleet, fleet_.get());
                are_after_a_loss.push_back(start.lost_at.has_value());
                return losses_.empty() ? Die(start.fleet) : absl::OkStatus();
              }).ok());
  EXPECT_THAT(are_after_a_loss, ElementsAre(false, true));
  EXPECT_THAT(losses_, ElementsAre(0));
  ASSERT_EQ(summary_.events_size(), 1);
  EXPECT_EQ(summary_.events(0).type(), "restarted");
  EXPECT_EQ(summary_.events(0).reason(), "dead");
}

TEST_F(GenerationLoopTest, AResumedRunBeginsWithItsCheckpointAndItsEvents) {
  options_.from.emplace();
  options_.from->manifest.set_step(7);
  options_.from->manifest.mutable_progress()->add_events()->set_type("restarted");
  EXPECT_TRUE(Run([&](const GenerationStart& start) {
                EXPECT_EQ(start.from->manifest.step(), 7u);
                return absl::OkStatus();
              }).ok());
  ASSERT_EQ(summary_.events_size(), 2);
  EXPECT_EQ(summary_.events(0).type(), "restarted");
  EXPECT_EQ(summary_.events(1).type(), "resumed");
}

TEST_F(GenerationLoopTest, MoreLossesThanAreAllowedEndTheRunWithTheLast) {
  const absl::Status status = Run([](const GenerationStart& start) { return Die(start.fleet); });
  EXPECT_EQ(status.message(), "stage 0 died");
  EXPECT_EQ(losses_.size(), 2u);
}

TEST_F(GenerationLoopTest, WhereStagesKeepTheirStateOnlyLossesWithoutProgressAreCounted) {
  uint64_t step = 1;
  kept_step_ = [&step] { return step; };
  int generations = 0;
  const absl::Status status = Run([&](const GenerationStart& start) {
    EXPECT_EQ(start.loss != nullptr, generations > 0);
    if (start.loss != nullptr) {
      EXPECT_EQ(start.loss->reason(), "dead");
    }
    if (++generations < 10) ++step;
    return Die(start.fleet);
  });
  EXPECT_EQ(status.message(), "stage 0 died");
  EXPECT_EQ(generations, 12) << "ten of them with progress, and two restarts";
  EXPECT_EQ(summary_.events_size(), 0) << "a generation tells of its loss";
}

TEST_F(GenerationLoopTest, ADealBySpeedIsNoLossAndGivesWayToAServerThatEnds) {
  kept_step_ = [] { return uint64_t{7}; };
  restarts_.set_max(0);
  std::vector<std::string> reasons;
  const absl::Status status = Run([&](const GenerationStart& start) {
    if (start.loss != nullptr) {
      reasons.push_back(start.loss->reason());
      EXPECT_EQ(start.loss->has_stage(), reasons.size() == 2);
    }
    const absl::Status why = absl::UnavailableError("why");
    if (reasons.size() < 2) start.fleet->EndAfterStep({0, Failure::Kind::kSpeeds, why});
    if (reasons.size() == 1) start.fleet->EndAfterStep({0, Failure::Kind::kEnds, why});
    return start.fleet->TrainOnAll([](StageClient&) { return absl::OkStatus(); });
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(reasons, ElementsAre("speeds", "ends"));
}

TEST_F(GenerationLoopTest, AfterAnInterruptionTheRunDoesNotGoOn) {
  const absl::Status status = Run([](const GenerationStart& start) {
    start.fleet->Interrupt();
    return Die(start.fleet);
  });
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(losses_.empty());
}

TEST_F(GenerationLoopTest, AnErrorOfTheWorkOrOfTheNextFleetEndsTheRun) {
  EXPECT_EQ(Run([](const GenerationStart& start) {
              const absl::Status nan = absl::OutOfRangeError("the loss is nan");
              start.fleet->Fail({0, Failure::Kind::kError, nan});
              return nan;
            }).message(),
            "the loss is nan");
  options_.next_generation = [](const Failure&) -> absl::StatusOr<Fleet*> {
    return absl::UnavailableError("nobody came back");
  };
  EXPECT_EQ(Run([](const GenerationStart& start) { return Die(start.fleet); }).message(),
            "nobody came back");
}

}  // namespace
}  // namespace thinwire
