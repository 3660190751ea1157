#include "coordinator/run/followers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "coordinator/fleet/fake_stage_testing.h"

namespace thinwire {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two carriers of one stage, of which the second follows a run of two epochs of three steps.
class FollowersTest : public ::testing::Test {
 protected:
  FollowersTest() : fleet_(NewFleet()) {
    plan_.epochs = 2;
    plan_.steps_per_epoch = 3;
    follower_.fetch_state = [this](const FetchStateRequest& request) {
      EXPECT_EQ(request.from(), carrier_.address());
      return grpc::Status::OK;
    };
    follower_.train = [this](const TrainRequest& request, grpc::ServerContext*,
                             FakeStage::Writer* writer) {
      for (uint64_t step = request.first_step(); step <= request.last_step(); ++step) {
        trained_.push_back({static_cast<int>(request.epoch()), static_cast<int>(step)});
        StageEvent event;
        event.mutable_step()->set_step(step);
        writer->Write(event);
      }
      return grpc::Status::OK;
    };
  }
  std::unique_ptr<Fleet> NewFleet() const {
    FleetOptions options;
    options.grid = {/*replicas=*/2, /*parts=*/1, /*deal=*/{2, 0}};
    options.grace = absl::Milliseconds(50);
    auto fleet = std::make_unique<Fleet>(
        std::vector<std::string>{carrier_.address(), follower_.address()}, "run", options);
    std::vector<AcquireResponse> answers;
    EXPECT_TRUE(fleet->Acquire(&answers).ok());
    return fleet;
  }
  // Begins after step 1, with a state that has yet to come.
  void Follow() {
    followers_ = std::make_unique<Followers>(
        fleet_.get(), Followers::Start{/*step=*/1, /*sources=*/{-1, 0}, /*most_behind=*/3}, plan_,
        [this] { return run_.load(); },
        [](int server, const StageEvent&) {
          EXPECT_EQ(server, 1);
          return absl::OkStatus();
        });
  }
  void EndTraining() {
    fleet_->EndAfterStep({0, Failure::Kind::kSpeeds, absl::UnavailableError("it is over")});
  }

  std::vector<std::pair<int, int>> trained_;  // epoch and step; before followers_ end
  FakeStage carrier_, follower_;
  RunPlan plan_;
  std::unique_ptr<Fleet> fleet_;
  std::atomic<uint64_t> run_ = 100;  // step of the run
  std::unique_ptr<Followers> followers_;
};

TEST_F(FollowersTest, TheyFetchTheirStateAndTrainWhatIsLeftOfEachEpoch) {
  Follow();
  EndTraining();
  EXPECT_TRUE(followers_->Await(6));
  followers_.reset();
  EXPECT_THAT(trained_, ElementsAre(std::pair(1, 2), std::pair(1, 3), std::pair(2, 4),
                                    std::pair(2, 5), std::pair(2, 6)));
  EXPECT_THAT(follower_.calls(), Contains("FetchState 1 meanwhile"));
  EXPECT_FALSE(fleet_->cause());
}

TEST_F(FollowersTest, OnceTheyHaveCaughtUpTrainingEnds) {
  run_ = 4;
  Follow();
  while (!fleet_->leaving()) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(fleet_->leaving()->kind, Failure::Kind::kSpeeds);
  EXPECT_EQ(fleet_->leaving()->status.message(), "pipelines that followed have caught up");
  EXPECT_TRUE(followers_->Await(4));
}

TEST_F(FollowersTest, WhenTheyAreTooFarBehindTrainingEndsSoThatAllWait) {
  absl::Notification comes;
  follower_.fetch_state = [&comes](const FetchStateRequest&) {
    comes.WaitForNotification();
    return grpc::Status::OK;
  };
  Follow();
  followers_->Check(4);
  EXPECT_FALSE(fleet_->leaving());
  followers_->Check(5);
  ASSERT_TRUE(fleet_->leaving());
  EXPECT_THAT(std::string(fleet_->leaving()->status.message()), HasSubstr("too far behind"));
  comes.Notify();
  EXPECT_TRUE(followers_->Await(5));
}

TEST_F(FollowersTest, OneThatFailsIsNamedAndNotWaitedFor) {
  follower_.train = [](const TrainRequest&, grpc::ServerContext*, FakeStage::Writer*) {
    return grpc::Status(grpc::StatusCode::INTERNAL, "it broke");
  };
  Follow();
  EndTraining();
  EXPECT_FALSE(followers_->Await(6));
  followers_.reset();
  ASSERT_TRUE(fleet_->cause());
  EXPECT_EQ(fleet_->cause()->stage, 1);
  EXPECT_THAT(std::string(fleet_->cause()->status.message()), HasSubstr("it broke"));
}

TEST_F(FollowersTest, OneThatIsGoneWhileItFetchesIsALossAndOneThatIsThereIsNot) {
  for (const bool is_gone : {false, true}) {
    fleet_ = NewFleet();
    follower_.fetch_state = [this, is_gone](const FetchStateRequest&) {
      const auto gone = [] { return grpc::Status(grpc::StatusCode::UNAVAILABLE, "Socket closed"); };
      if (is_gone) follower_.renew = gone;
      return gone();
    };
    Follow();
    while (!fleet_->has_failed()) absl::SleepFor(absl::Milliseconds(1));
    followers_.reset();
    ASSERT_TRUE(fleet_->cause());
    EXPECT_EQ(IsLoss(*fleet_->cause()), is_gone) << fleet_->cause()->status;
  }
}

TEST_F(FollowersTest, TheirEndEndsWhatTheyDoAndIsNoFailure) {
  follower_.train = [](const TrainRequest&, grpc::ServerContext* context, FakeStage::Writer*) {
    return FakeStage::Hang(context);
  };
  Follow();
  EXPECT_FALSE(followers_->Await(6)) << "nothing ends training";
  followers_.reset();
  EXPECT_FALSE(fleet_->cause());
  EXPECT_FALSE(fleet_->has_failed());
}

}  // namespace
}  // namespace thinwire
