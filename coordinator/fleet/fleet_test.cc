#include "coordinator/fleet/fleet.h"

#include <atomic>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "coordinator/fleet/fake_stage_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// A fleet that loses patience quickly, as the tests do not check the times.
FleetOptions Impatient() {
  FleetOptions options;
  options.heartbeat = {absl::Milliseconds(10), absl::Milliseconds(100)};
  options.grace = absl::Milliseconds(50);
  return options;
}

FleetOptions Patient() {
  FleetOptions options;
  options.heartbeat = {absl::Milliseconds(10), absl::Minutes(1)};
  options.grace = absl::Milliseconds(50);
  return options;
}

absl::Status Train(StageClient& stage) {
  return stage.Train(TrainRequest(), [](const StageEvent&) { return absl::OkStatus(); });
}

absl::Status TrainAll(Fleet* fleet) { return fleet->OnAll(Train); }

class FleetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (FakeStage& stage : stages_) {
      stage.train = [](const TrainRequest&, grpc::ServerContext* context, FakeStage::Writer*) {
        return FakeStage::Hang(context);
      };
    }
  }
  // Returns a fleet of `stages_` with every lease taken.
  std::unique_ptr<Fleet> Acquired(const FleetOptions& options) {
    std::vector<std::string> addresses;
    for (FakeStage& stage : stages_) addresses.push_back(stage.address());
    auto fleet = std::make_unique<Fleet>(addresses, "run", options);
    std::vector<AcquireResponse> answers;
    EXPECT_TRUE(fleet->Acquire(&answers).ok());
    return fleet;
  }
  // Lets all train until they are told that training ends, and `ended` is true then.
  void TrainUntil(std::atomic<bool>* ended) {
    for (FakeStage& stage : stages_) {
      stage.end_training = [=](const EndTrainingRequest& request, EndTrainingResponse* response) {
        response->set_begun_step(7);
        if (request.has_last_step()) *ended = true;
        return grpc::Status::OK;
      };
      stage.train = [=](const TrainRequest&, grpc::ServerContext* context, FakeStage::Writer*) {
        while (!*ended && !context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
        return grpc::Status::OK;
      };
    }
  }
  void TrainFails(int stage, grpc::StatusCode code, const std::string& message) {
    stages_[stage].train = [=](const TrainRequest&, grpc::ServerContext*, FakeStage::Writer*) {
      return grpc::Status(code, message);
    };
  }

  // Notified by a stage's handler. Declared before the stages, whose destructors wait for handlers.
  absl::Notification notified_;
  FakeStage stages_[3];
};

TEST_F(FleetTest, TheErrorOfOneStageEndsTheCallsOfTheOthersAndNamesIt) {
  TrainFails(1, grpc::StatusCode::INVALID_ARGUMENT, "step 7: loss is nan");
  const absl::Status status = TrainAll(Acquired(Patient()).get());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()),
            absl::StrCat("stage 1 (", stages_[1].address(), "): Train: step 7: loss is nan"));
}

TEST_F(FleetTest, AStageThatDoesNotAnswerFailsTheRunByName) {
  stages_[2].renew = [this] {
    notified_.WaitForNotification();
    return grpc::Status::OK;
  };
  auto fleet = Acquired(Impatient());
  const absl::Status status = TrainAll(fleet.get());
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr(absl::StrCat("stage 2 (", stages_[2].address(), ") has not answered for 0.1")));
  notified_.Notify();
}

TEST_F(FleetTest, ALeaseIsRenewedWhileOtherStagesAreYetToCome) {
  stages_[0].renew = [this] {
    if (!notified_.HasBeenNotified()) notified_.Notify();
    return grpc::Status::OK;
  };
  stages_[1].acquire = [this] {
    notified_.WaitForNotification();
    return grpc::Status::OK;
  };
  Acquired(Patient());
}

TEST_F(FleetTest, AStageThatIsNotThereYetIsTriedAgain) {
  int tries = 0;
  stages_[2].acquire = [&tries] {
    return ++tries < 3 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "starting") : grpc::Status::OK;
  };
  Acquired(Patient());
  EXPECT_EQ(tries, 3);
}

TEST_F(FleetTest, AStageThatDoesNotComeIsNamedWithTheCauseOnceThePatienceIsOver) {
  FleetOptions options = Patient();
  options.patience = absl::ZeroDuration();
  Fleet fleet({stages_[0].address(), "no-such-host.invalid:4700"}, "run", options);
  std::vector<AcquireResponse> answers;
  const absl::Status status = fleet.Acquire(&answers);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              AllOf(::testing::StartsWith("stage 1 (no-such-host.invalid:4700): Acquire: "),
                    HasSubstr("DNS resolution failed")));
}

TEST_F(FleetTest, AStageOfAnotherBuildIsRefusedByName) {
  FleetOptions options = Patient();
  options.build = "3f2a91c0d4e5 gcc 12.2.0 opt";
  for (FakeStage& stage : stages_) stage.build.set_build_id(options.build);
  Acquired(options);
  stages_[1].build.set_build_id("000000000000 gcc 12.2.0 opt");
  Fleet fleet({stages_[0].address(), stages_[1].address()}, "run", options);
  std::vector<AcquireResponse> answers;
  const absl::Status status = fleet.Acquire(&answers);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::string(status.message()),
            absl::StrCat("stage 1 (", stages_[1].address(),
                         ") is of build \"000000000000 gcc 12.2.0 opt\", this program of build "
                         "\"3f2a91c0d4e5 gcc 12.2.0 opt\"; make them of one build, or give "
                         "--allow_other_build"));
  fleet.Release();
  EXPECT_TRUE(stages_[1].released());
}

TEST_F(FleetTest, WithoutABuildEveryOneWillDo) {
  stages_[1].build.set_build_id("another");
  Acquired(Patient());
}

TEST_F(FleetTest, AStageThatIsGoneIsTheCauseAndItsNeighboursErrorANote) {
  TrainFails(0, grpc::StatusCode::UNAVAILABLE, "cut layer1: stage 1 is gone");
  TrainFails(1, grpc::StatusCode::UNAVAILABLE, "closed");
  stages_[1].renew = [] { return grpc::Status(grpc::StatusCode::UNAVAILABLE, "refused"); };
  const absl::Status status = TrainAll(Acquired(Patient()).get());
  EXPECT_THAT(std::string(status.message()),
              AllOf(::testing::StartsWith("stage 1 "), HasSubstr("is gone"),
                    HasSubstr("\n  also: stage 0 ")));
}

// Such a failure comes from the fetch of a snapshot, for which nobody may be waiting.
TEST_F(FleetTest, AFailureBetweenTwoCallsMayComeFromALostStageToo) {
  std::atomic<bool> is_gone = false;
  stages_[1].renew = [&] {
    return is_gone ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "refused") : grpc::Status::OK;
  };
  const auto fleet = Acquired(Patient());
  EXPECT_FALSE(fleet->cause());
  fleet->Fail({1, Failure::Kind::kError, absl::UnavailableError("ReadSnapshot: closed")});
  EXPECT_EQ(fleet->cause()->kind, Failure::Kind::kError);
  is_gone = true;
  EXPECT_EQ(fleet->cause()->kind, Failure::Kind::kSilent);
  EXPECT_EQ(fleet->cause()->stage, 1);
}

TEST_F(FleetTest, TheDeathOfAWatchedStageIsTheCauseThoughItIsSeenAfterItsSilence) {
  for (int i = 0; i < 3; ++i) TrainFails(i, grpc::StatusCode::UNAVAILABLE, "closed");
  FleetOptions options;
  options.heartbeat = {absl::Minutes(1), absl::Minutes(1)};
  options.grace = absl::Minutes(1);
  options.are_watched = true;
  auto fleet = Acquired(options);
  std::atomic<bool> is_asked = false;
  stages_[1].renew = [this, &is_asked] {
    if (!is_asked.exchange(true)) notified_.Notify();
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "refused");
  };
  std::thread watcher([&] {
    notified_.WaitForNotification();
    absl::SleepFor(absl::Milliseconds(50));  // the fleet has heard of the silence long ago
    fleet->Fail({1, Failure::Kind::kDead, absl::UnavailableError("stage 1 was killed")});
  });
  EXPECT_THAT(std::string(TrainAll(fleet.get()).message()),
              ::testing::StartsWith("stage 1 was killed"));
  watcher.join();
}

TEST_F(FleetTest, ALeaseThatIsLostFailsTheRun) {
  auto fleet = Acquired(Patient());
  stages_[0].renew = [] {
    return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "leased to run other");
  };
  EXPECT_THAT(std::string(TrainAll(fleet.get()).message()),
              HasSubstr("Renew: leased to run other"));
}

TEST_F(FleetTest, AFailureSeenElsewhereEndsTheCalls) {
  auto fleet = Acquired(Patient());
  fleet->Fail({1, Failure::Kind::kDead, absl::UnavailableError("stage 1 was killed")});
  EXPECT_EQ(std::string(TrainAll(fleet.get()).message()), "stage 1 was killed");
}

TEST_F(FleetTest, InterruptEndsTheCallsWithoutAnError) {
  auto fleet = Acquired(Patient());
  stages_[0].train = [this](const TrainRequest&, grpc::ServerContext* context, FakeStage::Writer*) {
    notified_.Notify();
    return FakeStage::Hang(context);
  };
  std::thread user([&] {
    notified_.WaitForNotification();
    fleet->Interrupt();
  });
  EXPECT_EQ(TrainAll(fleet.get()).code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(fleet->interrupted());
  user.join();
}

TEST_F(FleetTest, ReleaseFreesTheStagesAlsoAfterAFailure) {
  TrainFails(1, grpc::StatusCode::INTERNAL, "broken");
  auto fleet = Acquired(Patient());
  ASSERT_FALSE(TrainAll(fleet.get()).ok());
  fleet->Release();
  for (FakeStage& stage : stages_) EXPECT_TRUE(stage.released());
}

TEST_F(FleetTest, NoMoreCallsAreMadeAfterAFailure) {
  TrainFails(1, grpc::StatusCode::INTERNAL, "broken");
  auto fleet = Acquired(Patient());
  ASSERT_FALSE(TrainAll(fleet.get()).ok());
  EXPECT_THAT(std::string(TrainAll(fleet.get()).message()), HasSubstr("broken"));
}

TEST_F(FleetTest, BetweenTwoPartsOfAnEpochAnInterruptionCancelsNothingAndNoneFollows) {
  const auto fleet = Acquired(Patient());
  fleet->set_in_epoch(true);
  fleet->Interrupt();
  EXPECT_TRUE(fleet->ended_after_step());
  EXPECT_TRUE(
      fleet->OnAll([](StageClient& stage) { return stage.TakeSnapshot({true}).status(); }).ok());
  EXPECT_TRUE(absl::IsCancelled(fleet->TrainOnAll([](StageClient&) { return absl::OkStatus(); })));
}

TEST_F(FleetTest, AStageThatIsToEndIsLeftAfterAStep) {
  std::atomic<bool> ended = false;
  TrainUntil(&ended);
  const auto fleet = Acquired(Patient());
  EXPECT_FALSE(fleet->leaving());
  stages_[1].ends = true;
  EXPECT_TRUE(absl::IsCancelled(fleet->TrainOnAll(Train)));
  EXPECT_TRUE(fleet->ended_after_step());
  ASSERT_TRUE(fleet->leaving());
  EXPECT_EQ(fleet->leaving()->stage, 1);
  EXPECT_FALSE(fleet->cause());
  // Other calls still work; training does not begin any more.
  EXPECT_TRUE(fleet->OnAll([](StageClient&) { return absl::OkStatus(); }).ok());
  ended = false;
  EXPECT_TRUE(absl::IsCancelled(fleet->TrainOnAll(Train)));
  fleet->Interrupt();
  EXPECT_FALSE(fleet->leaving());
}

TEST_F(FleetTest, WhereStagesKeepTheirStateAnInterruptionIsForTheFleetThatGoesOn) {
  std::atomic<bool> ended = false;
  TrainUntil(&ended);
  FleetOptions options = Patient();
  options.hands_over_interruptions = true;
  const auto fleet = Acquired(options);
  stages_[1].ends = true;
  EXPECT_TRUE(absl::IsCancelled(fleet->TrainOnAll(Train)));
  fleet->Interrupt();
  EXPECT_FALSE(fleet->interrupted());
  EXPECT_TRUE(fleet->leaving());
  EXPECT_TRUE(fleet->OnAll([](StageClient&) { return absl::OkStatus(); }).ok());
}

TEST_F(FleetTest, WhereStagesKeepTheirStateAnInterruptionLeavesWhoIsLostToTheNext) {
  std::atomic<bool> is_lost = false;
  stages_[1].renew = [&is_lost] {
    return is_lost ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "") : grpc::Status::OK;
  };
  stages_[0].train = [this](const TrainRequest&, grpc::ServerContext* context, FakeStage::Writer*) {
    notified_.Notify();
    return FakeStage::Hang(context);
  };
  FleetOptions options = Patient();
  options.hands_over_interruptions = true;
  const auto fleet = Acquired(options);
  std::thread user([&] {
    notified_.WaitForNotification();
    is_lost = true;
    fleet->Interrupt();
  });
  EXPECT_FALSE(fleet->TrainOnAll(Train).ok());
  user.join();
  EXPECT_FALSE(fleet->interrupted());
  ASSERT_TRUE(fleet->cause());
  EXPECT_EQ(fleet->cause()->kind, Failure::Kind::kSilent);
  EXPECT_EQ(fleet->cause()->stage, 1);
}

// Three carriers of one stage, of which the last follows.
class FleetThatIsFollowedTest : public FleetTest {
 protected:
  void SetUp() override {
    TrainUntil(&ended_);
    FleetOptions options = Patient();
    options.grid = {/*replicas=*/3, /*parts=*/1, /*deal=*/{2, 1, 0}};
    fleet_ = Acquired(options);
  }
  std::atomic<bool> ended_ = false;
  std::unique_ptr<Fleet> fleet_;
};

TEST_F(FleetThatIsFollowedTest, OnceItIsApartNoCallWaitsForIt) {
  EXPECT_FALSE(fleet_->Follows(1));
  EXPECT_TRUE(fleet_->Follows(2));
  std::atomic<int> calls = 0;
  const auto count = [&](StageClient&) {
    ++calls;
    return absl::OkStatus();
  };
  EXPECT_TRUE(fleet_->OnAll(count).ok());
  EXPECT_EQ(calls, 3);
  fleet_->SetApart();
  const absl::Status status = fleet_->TrainOnAll([&](StageClient& stage) {
    if (stage.server() == 0) {
      fleet_->EndAfterStep({0, Failure::Kind::kEnds, absl::UnavailableError("it is to end")});
    }
    return Train(stage);
  });
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_TRUE(fleet_->ended_after_step());
  EXPECT_FALSE(fleet_->cause());
  EXPECT_THAT(stages_[1].calls(), Contains("EndTraining"));
  EXPECT_THAT(stages_[2].calls(), Not(Contains("EndTraining")));
  EXPECT_TRUE(fleet_->OnAll(count).ok());
  EXPECT_EQ(calls, 5);
}

TEST_F(FleetThatIsFollowedTest, ItHasCaughtUpWhenThatIsSaid) {
  EXPECT_FALSE(fleet_->have_caught_up());
  fleet_->SetCaughtUp();
  EXPECT_TRUE(fleet_->have_caught_up());
  EXPECT_TRUE(Fleet({"unix:nobody"}, "run", FleetOptions()).have_caught_up());
}

TEST(FleetOfGuestsTest, OneThatCannotDoItsWorkIsUnfitAndOneOfTheRunsOwnIsNot) {
  const absl::Status no_file = absl::NotFoundError("no file");
  FleetOptions options;
  options.are_guests = {false, true};
  Fleet fleet({"unix:nobody", "unix:no one"}, "run", options);
  EXPECT_TRUE(fleet.OfGuest(1, absl::OkStatus()).ok());
  EXPECT_EQ(fleet.OfGuest(0, no_file), no_file);
  EXPECT_TRUE(absl::IsUnavailable(fleet.OfGuest(1, absl::UnavailableError("gone"))));
  // One that does not renew its lease has lost it.
  const absl::Status no_lease = absl::FailedPreconditionError("holds no lease");
  EXPECT_EQ(fleet.OfGuest(1, no_lease), no_lease);
  EXPECT_FALSE(fleet.cause());
  EXPECT_EQ(fleet.OfGuest(1, no_file), no_file);
  ASSERT_TRUE(fleet.cause());
  EXPECT_EQ(fleet.cause()->kind, Failure::Kind::kUnfit);
  EXPECT_EQ(fleet.cause()->stage, 1);
  EXPECT_TRUE(IsLoss(*fleet.cause()));
}

}  // namespace
}  // namespace thinwire
