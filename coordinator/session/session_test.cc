#include "coordinator/session/session.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/build_info.h"
#include "base/status.h"
#include "config/experiment.h"
#include "coordinator/fleet/fake_stage_testing.h"
#include "coordinator/fleet/stage_setup.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class SessionTest : public ::testing::Test {
 protected:
  std::unique_ptr<Session> Start(bool allow_other_build = false) {
    SessionOptions options;
    options.allow_other_build = allow_other_build;
    options.stages = {stage_.address()};
    auto session = Session::Start("digits", Experiment(), options, &interruption_);
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }
  absl::Status TrainUntilCtrlC(Session* session) {
    stage_.train = [](const TrainRequest&, grpc::ServerContext* context, FakeStage::Writer*) {
      kill(getpid(), SIGINT);
      return FakeStage::Hang(context);
    };
    return session->fleet()->OnAll([](StageClient& stage) {
      return stage.Train(TrainRequest(), [](const StageEvent&) { return absl::OkStatus(); });
    });
  }

  Interruption interruption_;
  FakeStage stage_;
};

TEST_F(SessionTest, RunsOfOneNameHaveDifferentIds) {
  const auto first = Start(), second = Start();
  EXPECT_THAT(first->run(), StartsWith("digits-"));
  EXPECT_NE(first->run(), second->run());
}

TEST_F(SessionTest, ASignalInterruptsTheFleet) {
  EXPECT_EQ(TrainUntilCtrlC(Start().get()).code(), absl::StatusCode::kCancelled);
}

TEST_F(SessionTest, ItsEndReleasesTheStages) {
  Start();
  EXPECT_TRUE(stage_.released());
}

TEST_F(SessionTest, ASignalAfterTheReleaseIsNotForTheFleet) {
  const auto session = Start();
  session->Release();
  kill(getpid(), SIGINT);
  while (!interruption_.seen()) continue;
  EXPECT_FALSE(session->fleet()->interrupted());
}

TEST_F(SessionTest, AStageOfAnotherBuildIsLeasedOnlyWhenThatIsAllowed) {
  stage_.build.set_build_id("another");
  std::vector<AcquireResponse> answers;
  EXPECT_THAT(std::string(Start()->fleet()->Acquire(&answers).message()),
              AllOf(HasSubstr("is of build \"another\", this program of build \"" + BuildId()),
                    HasSubstr("--allow_other_build")));
  EXPECT_TRUE(Start(/*allow_other_build=*/true)->fleet()->Acquire(&answers).ok());
}

TEST_F(SessionTest, WhoComesBackToItsServersHasTheLeaseUntilItIsReleased) {
  SessionOptions options;
  options.stages = {stage_.address()};
  options.lease_file = ::testing::TempDir() + "/lease";
  const auto start = [&] {
    auto session = Session::Start("digits", Experiment(), options, &interruption_);
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  };
  std::vector<AcquireResponse> answers;
  const auto killed = start();
  ASSERT_TRUE(killed->fleet()->Acquire(&answers).ok());
  const Lease first = stage_.lease();
  struct stat file;
  ASSERT_EQ(stat(options.lease_file.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
  const auto back = start();
  ASSERT_TRUE(back->fleet()->Acquire(&answers).ok());
  EXPECT_EQ(back->run(), killed->run());
  EXPECT_EQ(stage_.lease().secret(), first.secret());
  EXPECT_EQ(stage_.lease().generation(), 2u);
  const auto next = back->NextGeneration({0, Failure::Kind::kSilent, absl::UnavailableError("")});
  ASSERT_TRUE(next.ok()) << next.status();
  ASSERT_TRUE((*next)->Acquire(&answers).ok());
  EXPECT_EQ(stage_.lease().generation(), 3u);
  back->Release();
  EXPECT_NE(stat(options.lease_file.c_str(), &file), 0);
  std::ofstream(options.lease_file) << "no lease";
  EXPECT_THAT(
      std::string(
          Session::Start("digits", Experiment(), options, &interruption_).status().message()),
      HasSubstr("is no lease"));
  unlink(options.lease_file.c_str());
}

constexpr char kOpen[] = R"(
name: digits
model: {name: resnet8, width: 4}
data: {name: digits, batch_size: 20, limit: 40, test_limit: 20}
pipeline: {cuts: [], threads: 1}
replicas: {count: 2}
membership: {open: true}
optimizer: {lr: 0.1}
epochs: 1
)";

// A run of one server at which others may join.
class JoiningSessionTest : public SessionTest {
 protected:
  explicit JoiningSessionTest(const std::vector<std::string>& overrides = {})
      : experiment_(*ParseExperiment(kOpen, "test", overrides)) {
    SessionOptions options;
    options.stages = {stage_.address()};
    options.listen = "127.0.0.1:0";
    options.wait_seconds = 1;
    auto session = Session::Start("digits", experiment_, options, &interruption_);
    EXPECT_TRUE(session.ok()) << session.status();
    session_ = *std::move(session);
    std::vector<AcquireResponse> answers;
    EXPECT_TRUE(session_->fleet()->Acquire(&answers).ok());
    EXPECT_TRUE(ConfigureStages(experiment_, {1}, session_->fleet()).ok());
    stub_ = Membership::NewStub(
        grpc::CreateChannel(session_->listen_address(), grpc::InsecureChannelCredentials()));
  }
  // Offers a server, and waits until the run would end its step for another pipeline.
  void Join(const FakeStage& server) {
    JoinRequest request;
    request.set_address(server.address());
    *request.mutable_build() = server.build;
    events_ = stub_->Join(&call_, request);
    JoinEvent event;
    ASSERT_TRUE(events_->Read(&event)) << events_->Finish().error_message();
    EXPECT_EQ(event.run(), session_->run());
    while (!session_->fleet()->leaving()) absl::SleepFor(absl::Milliseconds(1));
  }
  void Withdraw() {
    call_.TryCancel();
    JoinEvent event;
    while (events_->Read(&event)) continue;
    events_->Finish();
    events_.reset();
  }
  ~JoiningSessionTest() override {
    if (events_ != nullptr) Withdraw();
  }

  const Experiment experiment_;
  FakeStage other_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Membership::Stub> stub_;
  grpc::ClientContext call_;
  std::unique_ptr<grpc::ClientReader<JoinEvent>> events_;
};

TEST_F(JoiningSessionTest, AServerThatJoinsMakesAnotherPipeline) {
  Join(other_);
  const Failure reason = *session_->fleet()->leaving();
  EXPECT_EQ(reason.kind, Failure::Kind::kJoins);
  EXPECT_EQ(reason.status.message(), other_.address() + " has joined");
  const auto next = session_->NextGeneration(reason);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ((*next)->carriers(), 2);
  EXPECT_EQ((*next)->server(1).address(), other_.address());
  EXPECT_TRUE((*next)->IsGuest(1));
  EXPECT_EQ(session_->MembersText(),
            absl::StrCat("pipelines ", stage_.address(), " (1) | ", other_.address(), " (1)"));
  EXPECT_EQ(session_->member_counts()->joined, 1);
  EXPECT_EQ(session_->member_counts()->carrying, 2);
}

TEST_F(JoiningSessionTest, ASignalBetweenTwoLayoutsEndsTheSecondBeforeAnyStep) {
  Join(other_);
  const Failure reason = *session_->fleet()->leaving();
  kill(getpid(), SIGINT);
  while (!interruption_.seen()) continue;
  const auto next = session_->NextGeneration(reason);
  ASSERT_TRUE(next.ok()) << next.status();
  std::vector<AcquireResponse> answers;
  EXPECT_TRUE((*next)->Acquire(&answers).ok());
  EXPECT_TRUE((*next)->ended_after_step());
  EXPECT_TRUE(absl::IsCancelled((*next)->TrainOnAll([](StageClient&) {
    ADD_FAILURE() << "it trains";
    return absl::OkStatus();
  })));
}

// The same with a model whose state takes long to fetch.
class FollowingSessionTest : public JoiningSessionTest {
 protected:
  FollowingSessionTest() : JoiningSessionTest({"model={name: resnet18}"}) {}
  void Train() const {
    session_->fleet()->TrainOnAll([](StageClient&) { return absl::OkStatus(); }).IgnoreError();
  }
  // Goes on as after that reason; returns the deal of replicas.
  Deal GoOn(const Failure& reason) {
    const auto next = session_->NextGeneration(reason);
    EXPECT_TRUE(next.ok()) << next.status();
    std::vector<AcquireResponse> answers;
    EXPECT_TRUE(session_->fleet()->Acquire(&answers).ok());
    return session_->fleet()->grid().deal;
  }
};

TEST_F(FollowingSessionTest, WhoJoinsFollowsUntilItHasCaughtUp) {
  Train();
  Join(other_);
  EXPECT_THAT(GoOn(*session_->fleet()->leaving()), ElementsAre(2, 0));
  Train();
  EXPECT_THAT(GoOn({0, Failure::Kind::kSpeeds, absl::UnavailableError("it still fetches")}),
              ElementsAre(2, 0));
  Train();
  session_->fleet()->SetCaughtUp();
  EXPECT_THAT(GoOn({0, Failure::Kind::kSpeeds, absl::UnavailableError("it is there")}),
              ElementsAre(1, 1));
}

TEST_F(FollowingSessionTest, BeforeAnyStepThereIsNothingToFetch) {
  Join(other_);
  EXPECT_THAT(GoOn(*session_->fleet()->leaving()), ElementsAre(1, 1));
}

TEST_F(FollowingSessionTest, WhereAllPipelinesHaveNewcomersAllWait) {
  Train();
  Join(other_);
  // The server that has the state is gone, so that the run goes back to a checkpoint.
  EXPECT_THAT(GoOn({0, Failure::Kind::kSilent, absl::UnavailableError("gone")}), ElementsAre(2));
}

TEST_F(JoiningSessionTest, OneThatStandsByAndGoesIsCountedNoLonger) {
  Join(other_);
  EXPECT_EQ(session_->member_counts()->idle, 1);
  Withdraw();
  const SteadyTime end = SteadyTime::Now() + absl::Seconds(10);
  while (session_->member_counts()->idle > 0 && SteadyTime::Now() < end) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_EQ(session_->member_counts()->idle, 0);
}

TEST_F(JoiningSessionTest, OneThatCannotTakeItsPlaceIsLetGo) {
  Join(other_);
  ASSERT_TRUE(session_->NextGeneration(*session_->fleet()->leaving()).ok());
  const auto next = session_->NextGeneration(
      {1, Failure::Kind::kUnfit, absl::ResourceExhaustedError("no memory")});
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ((*next)->carriers(), 1);
  EXPECT_EQ(session_->member_counts()->joined, 0);
  EXPECT_EQ(session_->member_counts()->lost, 0);
  JoinEvent event;
  while (events_->Read(&event)) continue;
  const grpc::Status end = events_->Finish();
  events_.reset();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(end.error_message(), HasSubstr("no memory"));
}

TEST(CheckListenTest, SaysWhatJoiningWants) {
  SessionOptions options;
  EXPECT_TRUE(CheckListen(Experiment(), options).ok());
  options.insecure = true;
  EXPECT_FALSE(CheckListen(Experiment(), options).ok());
  options.listen = "0.0.0.0:4600";
  EXPECT_THAT(std::string(CheckListen(Experiment(), options).message()),
              HasSubstr("--listen 0.0.0.0:4600 without --stages"));
  options.stages = {"a:4700"};
  EXPECT_THAT(std::string(CheckListen(Experiment(), options).message()),
              HasSubstr("membership.open is false, want true"));
  Experiment open;
  open.mutable_membership()->set_open(true);
  EXPECT_TRUE(CheckListen(open, options).ok());
  options.insecure = false;
  EXPECT_FALSE(CheckListen(open, options).ok()) << "with neither certificates nor a token";
  options.listen = "4600";
  EXPECT_THAT(std::string(CheckListen(open, options).message()), HasSubstr("--listen"));
}

TEST_F(SessionTest, AFolderForLogsThatCannotBeMadeIsNamed) {
  setenv("TMPDIR", "/nonexistent", /*overwrite=*/1);
  const auto session = Session::Start("digits", Experiment(), SessionOptions(), &interruption_);
  EXPECT_THAT(std::string(session.status().message()), HasSubstr("/nonexistent/thinwire-digits-"));
}

// Returns the number of spares among the addresses of two carriers, or the error.
absl::StatusOr<int> SparesAmong(const std::string& addresses,
                                const std::vector<std::string>& overrides) {
  const std::string path = ::testing::TempDir() + "/carried.yaml";
  std::ofstream(path) << "model: {name: resnet8, width: 8}\ndata: {name: digits}\n"
                         "optimizer: {lr: 0.1}\nepochs: 1\nreplicas: {count: 2}\n";
  SessionOptions options;
  options.stages = {addresses};
  options.carriers = 2;
  options.takes_spares = true;
  const auto experiment = LoadForStages(path, overrides, &options);
  if (!experiment.ok()) return experiment.status();
  return static_cast<int>(options.spares.size());
}

TEST(LoadForStagesTest, AddressesThatDecideHowManyStagesThereAreLeaveNoRest) {
  EXPECT_EQ(*SparesAmong("s{0..3}:1", {}), 0);
  EXPECT_EQ(*SparesAmong("s{0..4}:1", {"pipeline.stages=2"}), 1);
  EXPECT_EQ(std::string(SparesAmong("s{0..4}:1", {}).status().message()),
            "--stages: 5 addresses, want a multiple of --carriers 2; if further ones are to be "
            "spares, want pipeline.stages");
}

// Returns the addresses, in the order of servers, of two stages on different numbers of machines.
absl::StatusOr<std::vector<std::string>> WithMachines(
    const std::string& addresses, std::vector<int> stage_carriers,
    const std::vector<std::string>& overrides = {}) {
  constexpr char kTwoStages[] =
      "{name: digits, model: {name: resnet8, width: 4}, data: {name: digits, batch_size: 12},"
      " pipeline: {cuts: [layer2], threads: 1}, replicas: {count: 3}, optimizer: {lr: 0.1},"
      " epochs: 1}";
  SessionOptions options;
  options.stages = absl::StrSplit(addresses, ',');
  options.carriers = *std::max_element(stage_carriers.begin(), stage_carriers.end());
  options.stage_carriers = std::move(stage_carriers);
  RETURN_IF_ERROR(ParseForStages(kTwoStages, "test", overrides, &options).status());
  return options.stages;
}

TEST(StagesOnDifferentMachinesTest, AddressesAreNamedStageByStage) {
  EXPECT_THAT(*WithMachines("a{0..2}:1,b{0..1}:1", {3, 2}),
              ElementsAre("a0:1", "b0:1", "a1:1", "b1:1", "a2:1"));
  EXPECT_THAT(*WithMachines("a:1,b{0..2}:1", {1, 3}), ElementsAre("a:1", "b0:1", "b1:1", "b2:1"));
}

TEST(StagesOnDifferentMachinesTest, WhatCannotBeIsRefused) {
  const auto error = [](const std::string& addresses, const std::vector<int>& stage_carriers,
                        const std::vector<std::string>& overrides = {}) {
    return std::string(WithMachines(addresses, stage_carriers, overrides).status().message());
  };
  EXPECT_THAT(error("a{0..5}:1", {3, 2, 1}, {"pipeline.stages=2"}),
              HasSubstr("--carriers 3,2,1, want one number, or one for each of 2 stages"));
  EXPECT_EQ(error("a{0..3}:1", {3, 2}), "--stages: 4 addresses, want 5, the sum of --carriers 3,2");
  EXPECT_THAT(error("r{0..2}s{0..1}:1", {3, 2}), HasSubstr("two ranges"));
  EXPECT_THAT(error("a{0..4}:1", {3, 2}, {"membership.open=true"}),
              HasSubstr("--carriers 3,2 with membership.open, want one number"));
  EXPECT_THAT(error("a{0..4}:1", {4, 1}), HasSubstr("--carriers 4: want at most 3"));
}

}  // namespace
}  // namespace thinwire
