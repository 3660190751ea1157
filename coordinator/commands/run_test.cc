#include "coordinator/commands/run.h"

#include <signal.h>

#include <filesystem>
#include <fstream>

#include "absl/synchronization/notification.h"
#include "coordinator/fleet/fake_stage_testing.h"
#include "coordinator/session/exit_code.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::MatchesRegex;

constexpr char kExperiment[] = R"(
model: {name: resnet8}
data: {name: digits}
pipeline: {cuts: [layer1]}
optimizer: {lr: 0.1}
epochs: 1
)";

StageEvent FourSamples() {
  StageEvent event;
  event.mutable_step()->set_step(1);
  event.mutable_step()->set_samples(4);
  event.mutable_step()->set_labels(4);
  event.mutable_step()->set_correct(1);
  return event;
}

// Two stages that answer as if they had trained.
class RunCommandTest : public ::testing::Test {
 protected:
  RunCommandTest() {
    const std::string root = ::testing::TempDir() + "/run_command";
    fs::remove_all(root);
    fs::create_directories(root);
    flags_.experiment = root + "/two.yaml";
    std::ofstream(flags_.experiment) << kExperiment;
    flags_.out = root + "/out";
    flags_.session.stages = {first_.address(), last_.address()};
    flags_.quiet = true;
    first_.exported = last_.exported = std::string("\2\0\0\0\0\0\0\0{}", 10);
    last_.train = [](const TrainRequest&, grpc::ServerContext*, FakeStage::Writer* writer) {
      writer->Write(FourSamples());
      return grpc::Status::OK;
    };
    last_.evaluate = [](const EvaluateRequest&, grpc::ServerContext*, FakeStage::Writer* writer) {
      StageEvent event;
      event.mutable_evaluation()->set_correct(1);
      event.mutable_evaluation()->set_samples(2);
      event.mutable_evaluation()->set_labels(2);
      writer->Write(event);
      return grpc::Status::OK;
    };
  }
  int Run() {
    Interruption interruption;
    return RunCommand(flags_, &interruption);
  }
  nlohmann::json Summary() {
    std::ifstream file(flags_.out + "/summary.json");
    return nlohmann::json::parse(file);
  }

  FakeStage first_, last_;
  RunFlags flags_;
};

TEST_F(RunCommandTest, ACompletedRunLeavesEveryFileAndFreesTheStages) {
  EXPECT_EQ(Run(), kExitDone);
  for (const char* name : {"experiment.yaml", "metrics.jsonl", "summary.json", "targets.json",
                           "model/model.safetensors.index.json"}) {
    EXPECT_TRUE(fs::exists(flags_.out + "/" + name)) << name;
  }
  EXPECT_EQ(Summary()["status"], "completed");
  EXPECT_EQ(Summary()["name"], "two");  // name given in the file
  EXPECT_EQ(Summary()["epochs"][0]["test"]["compressed"]["accuracy"], 0.5);
  EXPECT_TRUE(first_.released());
  EXPECT_TRUE(last_.released());
}

TEST_F(RunCommandTest, WhatCannotBeGeneratedThroughIsSaidAtTheBeginAndInTheSummary) {
  std::ofstream(flags_.experiment) << R"(
model: {name: gpt2, layers: 2, heads: 1, width: 8}
data: {name: shakespeare, context: 8}
pipeline: {cuts: [h.0]}
compression: {activations: {codec: topk, ratio: 0.1, scope: sample}}
optimizer: {lr: 0.1}
epochs: 1
)";
  flags_.quiet = false;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Run(), kExitDone);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("thinwire: warning: h.0, activations: codec topk(ratio=0.1, scope=sample"));
  EXPECT_EQ(Summary()["boundaries"][0]["activations"]["causal"], false);
  EXPECT_EQ(Summary()["boundaries"][0]["gradients"]["causal"], nullptr);
  EXPECT_EQ(Summary()["boundaries"][1]["activations"]["causal"], nullptr) << "of the tied cut";
}

TEST_F(RunCommandTest, TargetsNameTheStagesThatServeMetricsToOthers) {
  first_.metrics_address = "0.0.0.0:9700";
  last_.metrics_address = "10.0.0.7:9701";
  EXPECT_EQ(Run(), kExitDone);
  std::ifstream file(flags_.out + "/targets.json");
  const auto targets = nlohmann::json::parse(file);
  ASSERT_EQ(targets.size(), 3u);
  EXPECT_EQ(targets[0]["labels"]["job"], "coordinator");
  EXPECT_EQ(targets[1]["targets"][0], "127.0.0.1:9700");
  EXPECT_EQ(targets[1]["labels"]["stage"], "0");
  EXPECT_EQ(targets[2]["targets"][0], "10.0.0.7:9701");
}

TEST_F(RunCommandTest, ACoordinatorThatListensEverywhereIsATargetUnderItsHostsName) {
  flags_.metrics_listen = "0.0.0.0:0";
  EXPECT_EQ(Run(), kExitDone);
  std::ifstream file(flags_.out + "/targets.json");
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  EXPECT_THAT(std::string(nlohmann::json::parse(file)[0]["targets"][0]),
              MatchesRegex(std::string(host) + ":[0-9]+"));
}

TEST_F(RunCommandTest, ThePipelineHasAsManyStagesAsAreNamedWhereTheFileDoesNotSay) {
  flags_.session.stages = {last_.address()};
  EXPECT_EQ(Run(), kExitDone);
  EXPECT_EQ(Summary()["stages"], 1);
}

TEST_F(RunCommandTest, ABannerComesFirstUnlessQuiet) {
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(Run(), kExitDone);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  flags_.quiet = false;
  flags_.overwrite = true;
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(Run(), kExitDone);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(),
              MatchesRegex("run two-[0-9a-f]+ in " + flags_.out +
                           ": 2 stages on cpu; metrics at http://127.0.0.1:[0-9]+/metrics\n.*"));
}

TEST_F(RunCommandTest, AStageOfAnotherBuildFailsTheRunUnlessThatIsAllowed) {
  last_.build.set_build_id("another");
  EXPECT_EQ(Run(), kExitFailed);
  EXPECT_THAT(std::string(Summary()["error"]),
              AllOf(HasSubstr("stage 1 (" + last_.address() + ") is of build \"another\""),
                    HasSubstr("--allow_other_build")));
  flags_.session.allow_other_build = flags_.overwrite = true;
  EXPECT_EQ(Run(), kExitDone);
}

TEST_F(RunCommandTest, WarnsOfACodecThatExpandsUnderFeedback) {
  flags_.overrides = {"compression.gradients={codec: uniform, bits: 1, feedback: ef}"};
  flags_.quiet = false;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Run(), kExitDone);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("thinwire: warning: layer1, gradients: codec uniform(bits=1, "));
}

TEST_F(RunCommandTest, AFailedRunSaysWhyInItsSummary) {
  last_.train = [](const TrainRequest&, grpc::ServerContext*, FakeStage::Writer*) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "step 1: loss is nan");
  };
  EXPECT_EQ(Run(), kExitFailed);
  EXPECT_EQ(Summary()["status"], "failed");
  EXPECT_THAT(std::string(Summary()["error"]), HasSubstr("step 1: loss is nan"));
  EXPECT_TRUE(first_.released());
}

TEST_F(RunCommandTest, WhatAStageSaysReachesTheTerminalHarmless) {
  last_.train = [](const TrainRequest&, grpc::ServerContext*, FakeStage::Writer*) {
    return grpc::Status(grpc::StatusCode::INTERNAL, "\x1b]0;owned\a");
  };
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Run(), kExitFailed);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("Train: \\x1b]0;owned\\x07\n"));
}

TEST_F(RunCommandTest, AnInterruptedRunKeepsItsSummaryAndFreesTheStages) {
  first_.train = [](const TrainRequest&, grpc::ServerContext* context, FakeStage::Writer*) {
    kill(getpid(), SIGINT);  // the user presses Ctrl-C during training
    return FakeStage::Hang(context);
  };
  EXPECT_EQ(Run(), kExitInterrupted);
  EXPECT_EQ(Summary()["status"], "interrupted");
  EXPECT_TRUE(last_.released());
}

TEST_F(RunCommandTest, AnInterruptionEndsTheStepAtAllStagesAndKeepsTheModel) {
  // Stage 0 is a step ahead. Both train until they have been told the last step.
  absl::Notification told[2];
  FakeStage* const stages[2] = {&first_, &last_};
  for (uint64_t i : {0, 1}) {
    stages[i]->end_training = [&told, i](const EndTrainingRequest& request,
                                         EndTrainingResponse* response) {
      if (request.has_last_step()) told[i].Notify();
      response->set_begun_step(8 - i);
      return grpc::Status::OK;
    };
    stages[i]->train = [&told, i](const TrainRequest&, grpc::ServerContext*, FakeStage::Writer*) {
      if (i == 0) kill(getpid(), SIGINT);
      told[i].WaitForNotification();
      return grpc::Status::OK;
    };
  }
  EXPECT_EQ(Run(), kExitInterrupted);
  EXPECT_EQ(Summary()["status"], "interrupted");
  EXPECT_TRUE(Summary()["epochs"].empty());
  for (const FakeStage* stage : stages) {
    EXPECT_THAT(stage->calls(), IsSupersetOf({"EndTraining 8", "ExportParameters", "Release"}));
  }
  EXPECT_TRUE(fs::exists(flags_.out + "/model/model.safetensors.index.json"));
}

TEST_F(RunCommandTest, TheModelOfATrainedEpochIsThereWhenItsEvaluationFails) {
  last_.evaluate = [](const EvaluateRequest&, grpc::ServerContext*, FakeStage::Writer*) {
    return grpc::Status(grpc::StatusCode::INTERNAL, "a broken test set");
  };
  EXPECT_EQ(Run(), kExitFailed);
  EXPECT_TRUE(fs::exists(flags_.out + "/model/model.safetensors.index.json"));
}

TEST_F(RunCommandTest, AModelToStartFromThatIsNotThereIsAUsageErrorBeforeAnythingIsWritten) {
  flags_.overrides = {"init=/nonexistent/model"};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Run(), kExitUsage);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("init: /nonexistent/model: cannot open: No such file or directory"));
  EXPECT_FALSE(fs::exists(flags_.out));
  EXPECT_THAT(first_.calls(), IsEmpty());
}

TEST_F(RunCommandTest, ALostTerminalInterruptsTheRun) {
  signal(SIGHUP, SIG_DFL);  // whatever the tests' parent process set
  first_.train = [](const TrainRequest&, grpc::ServerContext* context, FakeStage::Writer*) {
    kill(getpid(), SIGHUP);
    return FakeStage::Hang(context);
  };
  EXPECT_EQ(Run(), kExitInterrupted);
  EXPECT_EQ(Summary()["status"], "interrupted");
}

TEST_F(RunCommandTest, AnAddressThatIsNoneIsAUsageErrorBeforeAnythingIsWritten) {
  const std::vector<std::string> stages = flags_.session.stages;
  for (const char* address : {"a", "127.0.0.1", "a:0", "a:ssh"}) {
    flags_.session.stages[1] = address;
    EXPECT_EQ(Run(), kExitUsage) << address;
  }
  flags_.session.stages = stages;
  for (const char* address : {"9107", ":9108", "foo", "127.0.0.1:99999", ""}) {
    flags_.metrics_listen = address;
    EXPECT_EQ(Run(), kExitUsage) << address;
  }
  EXPECT_FALSE(fs::exists(flags_.out));
  EXPECT_THAT(first_.calls(), IsEmpty());
}

TEST_F(RunCommandTest, AWrongNumberOfStagesIsAUsageErrorBeforeAnythingIsWritten) {
  flags_.overrides = {"pipeline.cuts=[layer1, layer2]", "pipeline.stages=3"};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Run(), kExitUsage);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("--stages: 2 addresses, want 3, the experiment's pipeline.stages"));
  EXPECT_FALSE(fs::exists(flags_.out));
}

TEST_F(RunCommandTest, AnExperimentThatIsWrongIsAUsageErrorBeforeAnythingIsWritten) {
  flags_.overrides = {"epochs=many"};
  EXPECT_EQ(Run(), kExitUsage);
  EXPECT_FALSE(fs::exists(flags_.out));
}

TEST_F(RunCommandTest, ARunInTheFolderIsKeptUnlessOverwriteIsGiven) {
  ASSERT_EQ(Run(), kExitDone);
  EXPECT_EQ(Run(), kExitUsage);
  flags_.overwrite = true;
  EXPECT_EQ(Run(), kExitDone);
}

TEST_F(RunCommandTest, AStageServerThatIsNotThereFailsTheRun) {
  flags_.session.stages.clear();
  flags_.session.stage_server = "/nonexistent/stage_server";
  EXPECT_EQ(Run(), kExitFailed);
  EXPECT_THAT(std::string(Summary()["error"]), HasSubstr("cannot execute"));
  EXPECT_THAT(first_.calls(), IsEmpty());
}

}  // namespace
}  // namespace thinwire
