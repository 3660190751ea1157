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
  double seconds;
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
      milliseconds_ += static_cast<int64_t>(1000 * answer.seconds);
      if (++renewals_ == renewals) end_.Notify();
      return grpc::Status(answer.code, "");
    };
    StageClient client({1, 1}, stage_.address(), Lease(), Security());
    HeartbeatOptions options;
    options.interval = absl::Milliseconds(1);
    options.answer_times = answer_times_.get();
    options.now = [this] { return Now(); };
    Heartbeat heartbeat(&client, options, &pulse_, [this](Failure failure) {
      failure_ = std::make_unique<Failure>(std::move(failure));
      end_.Notify();
    });
    end_.WaitForNotification();
  }

  SteadyTime Now() const { return SteadyTime() + absl::Milliseconds(milliseconds_.load()); }

  // Makes a loss cheap, and gives the stage a past in which the slowest answer took 0.625 s: after
  // the next one it may be silent for 4.85 s.
  void LetLossBeCheap() {
    pulse_.set_trains(true);
    answer_times_ = std::make_unique<AnswerTimes>();
    for (int i = 0; i < 100; ++i)
      answer_times_->Add(stage_.address(), absl::Seconds(0.625), SteadyTime());
  }

  std::atomic<int64_t> milliseconds_{0};
  Pulse pulse_;
  std::unique_ptr<AnswerTimes> answer_times_;
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
  pulse_.Add(100, SteadyTime());  // progress of other stages
  Beat({{0, grpc::StatusCode::OK}}, /*renewals=*/5);
  EXPECT_EQ(pulse_.advances(), 107u);
  EXPECT_EQ(stage_.run_advances, 107u);
}

TEST_F(HeartbeatTest, AStageThatIsConfiguredAnewCountsFromZero) {
  stage_.advances = 7;
  Beat({{0, grpc::StatusCode::OK}}, /*renewals=*/5, [this](size_t renewal) {
    if (renewal == 3) stage_.advances = 2;
  });
  EXPECT_EQ(pulse_.advances(), 9u);
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

TEST_F(HeartbeatTest, WhereALossIsCheapAStageIsLostOnceTheRunStandsStill) {
  LetLossBeCheap();
  Beat({{0, grpc::StatusCode::OK}, {1, kNothing}}, /*renewals=*/100, [this](size_t renewal) {
    // Others answer, and have advanced for the last time when a second is over.
    pulse_.Add(renewal <= 3 ? 1 : 0, Now());
  });
  ASSERT_NE(failure_, nullptr);
  EXPECT_EQ(failure_->kind, Failure::Kind::kSilent);
  EXPECT_THAT(std::string(failure_->status.message()),
              ::testing::EndsWith("has not answered for 6 s"));
}

TEST_F(HeartbeatTest, AStageWithWhichTheRunStopsIsAskedUntilThatIsSure) {
  LetLossBeCheap();
  std::vector<double> seconds;
  // Another stage has advanced a moment after the last answer.
  const auto before = [&](size_t renewal) {
    seconds.push_back(stage_.renew_seconds);
    pulse_.Add(renewal == 2 ? 1 : 0, renewal == 2 ? Now() + absl::Milliseconds(1) : Now());
  };
  Beat({{0, grpc::StatusCode::OK}, {4.8, kNothing}, {0.05, kNothing}}, /*renewals=*/100, before);
  ASSERT_NE(failure_, nullptr);
  EXPECT_THAT(std::string(failure_->status.message()),
              ::testing::EndsWith("has not answered for 4.9 s"));
  ASSERT_EQ(seconds.size(), 4u);
  EXPECT_GT(seconds[1], 4);
  EXPECT_GT(seconds[2], 1);
  EXPECT_LT(seconds[2], 2);
}

TEST_F(HeartbeatTest, AStageMayBeSilentForTenSecondsWhileTheRunAdvances) {
  LetLossBeCheap();
  Beat({{0, grpc::StatusCode::OK}, {1, kNothing}}, /*renewals=*/100,
       [this](size_t) { pulse_.Add(1, Now()); });
  ASSERT_NE(failure_, nullptr);
  EXPECT_EQ(renewals_, 11u);
}

TEST_F(HeartbeatTest, IfNobodyAnswersAStageHasTenSeconds) {
  LetLossBeCheap();
  Beat({{0, grpc::StatusCode::OK}, {1, kNothing}}, /*renewals=*/100, [this](size_t renewal) {
    if (renewal <= 3) pulse_.Add(1, Now());
  });
  ASSERT_NE(failure_, nullptr);
  EXPECT_EQ(renewals_, 11u);
}

TEST_F(HeartbeatTest, WhileNothingTrainsAStageHasTenSeconds) {
  LetLossBeCheap();
  pulse_.set_trains(false);
  Beat({{0, grpc::StatusCode::OK}, {1, kNothing}}, /*renewals=*/100,
       [this](size_t renewal) { pulse_.Add(renewal <= 3 ? 1 : 0, Now()); });
  ASSERT_NE(failure_, nullptr);
  EXPECT_EQ(renewals_, 11u);
}

TEST_F(HeartbeatTest, ASlowAnswerIsRememberedWithTheSilenceBeforeIt) {
  LetLossBeCheap();
  Beat({{0, grpc::StatusCode::OK}, {1, kNothing}, {0, grpc::StatusCode::OK}}, /*renewals=*/4,
       [this](size_t) { pulse_.Add(1, Now()); });
  EXPECT_EQ(failure_, nullptr);
  EXPECT_GT(answer_times_->Patience(stage_.address()), absl::Seconds(7));
}

}  // namespace
}  // namespace thinwire
