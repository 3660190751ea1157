#include "coordinator/fleet/heartbeat.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/steady_time.h"
#include "coordinator/fleet/fake_stage_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

// A stage's answer to a renewal, and how much time has passed by then.
struct Answer {
  int seconds;
  grpc::StatusCode code;
};

constexpr grpc::StatusCode kNothing = grpc::StatusCode::UNAVAILABLE;

// The heartbeat of a stage that gives a list of answers and repeats the last one. A silence of ten
// seconds is a failure.
class HeartbeatTest : public ::testing::Test {
 protected:
  // Keeps the heartbeat until it fails or has had `renewals` answers. `before` is called during
  // each renewal but the last, with its number, from 1.
  void Beat(
      const std::vector<Answer>& answers, size_t renewals,
      const std::function<void(size_t renewal)>& before = [](size_t) {}) {
    stage_.renew = [this, answers, renewals, before] {
      if (renewals_ + 1 < renewals) before(renewals_ + 1);
      const Answer answer = answers[std::min(renewals_.load(), answers.size() - 1)];
      seconds_ += answer.seconds;
      if (++renewals_ == renewals) end_.Notify();
      return grpc::Status(answer.code, "");
    };
    StageClient client({1, 1}, stage_.address(), Lease(), Security());
    HeartbeatOptions options;
    options.interval = absl::Milliseconds(1);
    options.now = [this] { return SteadyTime() + absl::Seconds(seconds_.load()); };
    Heartbeat heartbeat(&client, options, &advances_, [this](Failure failure) {
      failure_ = std::make_unique<Failure>(std::move(failure));
      end_.Notify();
    });
    end_.WaitForNotification();
  }

  std::atomic<int> seconds_{0};
  std::atomic<uint64_t> advances_{0};
  std::atomic<size_t> renewals_{0};
  absl::Notification end_;
  std::unique_ptr<Failure> failure_;
  FakeStage stage_;
};

TEST_F(HeartbeatTest, TenSecondsWithoutAnAnswerAreAFailure) {
  Beat({{0, grpc::StatusCode::OK}, {1, kNothing}}, /*renewals=*/100);
  ASSERT_NE(failure_, nullptr);
  EXPECT_EQ(failure_->kind, Failure::Kind::kSilent);
  EXPECT_EQ(renewals_, 11u);
  EXPECT_EQ(std::string(failure_->status.message()),
            absl::StrCat("stage 1 (", stage_.address(), ") has not answered for 10 s"));
}

TEST_F(HeartbeatTest, AnAnswerEndsASilence) {
  Beat({{6, kNothing},
        {3, kNothing},
        {0, grpc::StatusCode::OK},
        {6, kNothing},
        {3, kNothing},
        {0, grpc::StatusCode::OK}},
       /*renewals=*/8);
  EXPECT_EQ(failure_, nullptr);
}

TEST_F(HeartbeatTest, WhatTheStageHasAdvancedByIsAddedAndToldToIt) {
  stage_.advances = 7;
  advances_ = 100;  // progress of other stages
  Beat({{0, grpc::StatusCode::OK}}, /*renewals=*/5);
  EXPECT_EQ(advances_, 107u);
  EXPECT_EQ(stage_.run_advances, 107u);
}

TEST_F(HeartbeatTest, AStageThatIsConfiguredAnewCountsFromZero) {
  stage_.advances = 7;
  Beat({{0, grpc::StatusCode::OK}}, /*renewals=*/5, [this](size_t renewal) {
    if (renewal == 3) stage_.advances = 2;
  });
  EXPECT_EQ(advances_, 9u);
}

TEST_F(HeartbeatTest, APauseOfOurOwnIsNoSilence) {
  Beat({{0, grpc::StatusCode::OK},
        {1, kNothing},
        {12, kNothing},
        {1, kNothing},
        {0, grpc::StatusCode::OK}},
       /*renewals=*/8);
  EXPECT_EQ(failure_, nullptr);
}

TEST_F(HeartbeatTest, AfterAPauseAStageHasAllOfTheTimeAnew) {
  Beat({{9, kNothing}, {1, kNothing}}, /*renewals=*/100);
  ASSERT_NE(failure_, nullptr);
  EXPECT_EQ(renewals_, 11u);
}

TEST_F(HeartbeatTest, ALeaseThatIsNotOursIsAFailureAtOnce) {
  Beat({{20, grpc::StatusCode::FAILED_PRECONDITION}}, /*renewals=*/100);
  ASSERT_NE(failure_, nullptr);
  EXPECT_EQ(failure_->kind, Failure::Kind::kUnleased);
  EXPECT_EQ(renewals_, 1u);
}

}  // namespace
}  // namespace thinwire
