#include "coordinator/session.h"

#include <signal.h>
#include <stdlib.h>

#include "coordinator/fleet/fake_stage_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class SessionTest : public ::testing::Test {
 protected:
  std::unique_ptr<Session> Start() {
    SessionOptions options;
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

TEST_F(SessionTest, ServersStartedByHandKeepTheirMetricsToThemselves) {
  EXPECT_TRUE(Start()->stage_metrics().empty());
}

TEST_F(SessionTest, AFolderForLogsThatCannotBeMadeIsNamed) {
  setenv("TMPDIR", "/nonexistent", /*overwrite=*/1);
  const auto session = Session::Start("digits", Experiment(), SessionOptions(), &interruption_);
  EXPECT_THAT(std::string(session.status().message()), HasSubstr("/nonexistent/thinwire-digits-"));
}

}  // namespace
}  // namespace thinwire
