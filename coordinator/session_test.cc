#include "coordinator/session.h"

#include <signal.h>
#include <stdlib.h>

#include "base/build_info.h"
#include "coordinator/fleet/fake_stage_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
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

TEST_F(SessionTest, AFolderForLogsThatCannotBeMadeIsNamed) {
  setenv("TMPDIR", "/nonexistent", /*overwrite=*/1);
  const auto session = Session::Start("digits", Experiment(), SessionOptions(), &interruption_);
  EXPECT_THAT(std::string(session.status().message()), HasSubstr("/nonexistent/thinwire-digits-"));
}

}  // namespace
}  // namespace thinwire
