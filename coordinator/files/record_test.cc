#include "coordinator/files/record.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class RunRecordTest : public ::testing::Test {
 protected:
  RunRecordTest() : dir_(::testing::TempDir() + "/run") { fs::remove_all(dir_); }

  std::unique_ptr<RunRecord> Create() {
    auto record = RunRecord::Create(dir_, /*overwrite=*/false);
    EXPECT_TRUE(record.ok()) << record.status();
    return *std::move(record);
  }
  std::string Read(const std::string& name) {
    std::ifstream file(dir_ + "/" + name);
    return (std::ostringstream() << file.rdbuf()).str();
  }

  std::string dir_;
};

TEST_F(RunRecordTest, EachStepEvaluationAndEpochIsOneTypedLineAtOnce) {
  auto record = Create();
  StepRecord step;
  step.set_step(7);
  ASSERT_TRUE(record->Append(step).ok());
  EvaluationRecord evaluation;
  evaluation.set_step(7);
  ASSERT_TRUE(record->Append(evaluation).ok());
  EpochRecord epoch;
  epoch.set_epoch(1);
  ASSERT_TRUE(record->Append(epoch).ok());
  std::istringstream lines(Read("metrics.jsonl"));
  std::string first, between, second, none;
  std::getline(lines, first);
  std::getline(lines, between);
  std::getline(lines, second);
  EXPECT_FALSE(std::getline(lines, none));
  EXPECT_THAT(first, HasSubstr(R"(Z","epoch":0,"step":7,)"));
  EXPECT_THAT(second, HasSubstr(R"(Z","epoch":1,)"));
  const std::string day = absl::FormatTime("%Y-%m-%dT", absl::Now(), absl::UTCTimeZone());
  EXPECT_THAT(first, StartsWith(R"({"type":"step","time":")" + day));
  EXPECT_THAT(between, StartsWith(R"({"type":"evaluation","time":")" + day));
  EXPECT_THAT(between, HasSubstr(R"(Z","epoch":0,"step":7,"test":null,"seconds":0.0)"));
  EXPECT_THAT(second, StartsWith(R"({"type":"epoch","time":")" + day));
}

TEST_F(RunRecordTest, AFolderThatIsRemovedUnderTheRunIsAnErrorThatNamesIt) {
  auto record = Create();
  ASSERT_TRUE(record->Append(StepRecord()).ok());
  fs::remove_all(dir_);
  EXPECT_THAT(std::string(record->Append(StepRecord()).message()),
              StartsWith(dir_ + "/metrics.jsonl: was removed or replaced"));
  fs::create_directories(dir_);
  std::ofstream(dir_ + "/metrics.jsonl") << "another run's";
  EXPECT_FALSE(record->Append(StepRecord()).ok());
}

TEST_F(RunRecordTest, AFolderWithARunIsRefusedAndKept) {
  ASSERT_TRUE(Create()->WriteExperiment("name: first\n").ok());
  const auto second = RunRecord::Create(dir_, /*overwrite=*/false);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("--overwrite"));
  EXPECT_EQ(Read("experiment.yaml"), "name: first\n");
}

TEST_F(RunRecordTest, OverwriteRemovesTheRunAndNothingElse) {
  ASSERT_TRUE(Create()->WriteExperiment("name: first\n").ok());
  std::ofstream(dir_ + "/notes.txt") << "mine";
  ASSERT_TRUE(RunRecord::Create(dir_, /*overwrite=*/true).ok());
  EXPECT_FALSE(fs::exists(dir_ + "/experiment.yaml"));
  EXPECT_EQ(Read("notes.txt"), "mine");
}

TEST_F(RunRecordTest, OverwriteRemovesARunThatBrokeOffBeforeItsFirstFile) {
  Create();
  EXPECT_EQ(RunRecord::Create(dir_, /*overwrite=*/false).status().code(),
            absl::StatusCode::kAlreadyExists);
  std::ofstream(dir_ + "/logs/stage-0.log") << "former";
  std::ofstream(dir_ + "/experiment.yaml.tmp") << "name: fir";
  ASSERT_TRUE(RunRecord::Create(dir_, /*overwrite=*/true).ok());
  EXPECT_FALSE(fs::exists(dir_ + "/logs/stage-0.log"));
  EXPECT_FALSE(fs::exists(dir_ + "/experiment.yaml.tmp"));
}

TEST_F(RunRecordTest, AFolderThatARunIsWrittenToIsRefusedEvenToOverwrite) {
  auto running = Create();
  ASSERT_TRUE(running->WriteExperiment("name: first\n").ok());
  const absl::Status refused = RunRecord::Create(dir_, /*overwrite=*/true).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(refused.message()), StartsWith(dir_ + ": another process writes a run"));
  EXPECT_EQ(Read("experiment.yaml"), "name: first\n");
  ASSERT_TRUE(running->Append(StepRecord()).ok());
  running.reset();
  EXPECT_TRUE(RunRecord::Create(dir_, /*overwrite=*/true).ok());
}

TEST_F(RunRecordTest, ARunsFolderIsMarkedBeforeAnythingElseIsMade) {
  fs::create_directories(dir_);
  fs::create_symlink("/dev/full", dir_ + "/.thinwire.tmp");
  EXPECT_THAT(std::string(RunRecord::Create(dir_, /*overwrite=*/false).status().message()),
              AllOf(HasSubstr("/.thinwire"), HasSubstr("No space left on device")));
  for (const auto& entry : fs::directory_iterator(dir_)) {
    EXPECT_EQ(entry.path().filename(), ".thinwire.lock");
  }
}

TEST_F(RunRecordTest, AMarkAloneIsNoRun) {
  Create();
  fs::remove_all(dir_ + "/logs");
  fs::remove(dir_ + "/metrics.jsonl");
  fs::remove(dir_ + "/traffic.jsonl");
  Create();
}

TEST_F(RunRecordTest, AFolderWithoutTheMarkIsRefusedAndLeftAsItIs) {
  fs::create_directories(dir_ + "/model");
  std::ofstream(dir_ + "/model/net.py") << "mine";
  std::ofstream(dir_ + "/experiment.yaml") << "mine";
  std::ofstream(dir_ + "/metrics.jsonl");
  for (bool overwrite : {false, true}) {
    const absl::Status status = RunRecord::Create(dir_, overwrite).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(dir_ + ": has model but no .thinwire"), HasSubstr("by hand")));
  }
  EXPECT_EQ(Read("model/net.py"), "mine");
  EXPECT_EQ(Read("experiment.yaml"), "mine");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_), {}), 3);
}

TEST_F(RunRecordTest, TextThatIsNotUtf8IsReplaced) {
  auto record = Create();
  Summary summary;
  summary.set_error("\xff: cannot write");
  ASSERT_TRUE(record->WriteSummary(summary).ok());
  EXPECT_EQ(nlohmann::json::parse(Read("summary.json"))["error"], "\uFFFD: cannot write");
  ASSERT_TRUE(record->WriteTargets("\xff:1", {}).ok());
  EXPECT_THAT(Read("targets.json"), HasSubstr("\uFFFD:1"));
}

TEST_F(RunRecordTest, ACaptureThatIsNoFileNamesItsStageAndStep) {
  auto record = Create();
  const std::string empty("\2\0\0\0\0\0\0\0{}", 10);
  ASSERT_TRUE(record->WriteCapture(6, {empty, empty}).ok());
  EXPECT_TRUE(fs::exists(dir_ + "/captures/step-6.safetensors"));
  EXPECT_EQ(record->WriteCapture(7, {empty, "abc"}).message(),
            "stage 1: its capture of step 7: safetensors: 3 bytes, want at least 8");
}

TEST_F(RunRecordTest, SummaryIsReplacedAsAWhole) {
  auto record = Create();
  Summary summary;
  summary.set_name("a-much-longer-name");
  ASSERT_TRUE(record->WriteSummary(summary).ok());
  summary.set_name("short");
  ASSERT_TRUE(record->WriteSummary(summary).ok());
  EXPECT_EQ(nlohmann::json::parse(Read("summary.json"))["name"], "short");
  EXPECT_FALSE(fs::exists(dir_ + "/summary.json.tmp"));
}

TEST_F(RunRecordTest, TargetsListTheCoordinatorAndEveryStageWithAnAddress) {
  ASSERT_TRUE(Create()->WriteTargets("127.0.0.1:9100", {"127.0.0.1:9101", ""}).ok());
  EXPECT_EQ(nlohmann::json::parse(Read("targets.json")).dump(),
            R"([{"labels":{"job":"coordinator"},"targets":["127.0.0.1:9100"]},)"
            R"({"labels":{"job":"stage","stage":"0"},"targets":["127.0.0.1:9101"]}])");
}

TEST_F(RunRecordTest, AFullDiskIsAnErrorThatNamesTheFile) {
  fs::create_directories(dir_);
  auto record = Create();
  fs::create_symlink("/dev/full", dir_ + "/summary.json.tmp");
  const absl::Status status = record->WriteSummary(Summary());
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("summary.json"), HasSubstr("No space left on device")));
}

TEST_F(RunRecordTest, AFolderThatCannotBeMadeIsAnErrorThatNamesIt) {
  std::ofstream(::testing::TempDir() + "/file") << "";
  const auto record = RunRecord::Create(::testing::TempDir() + "/file/run", /*overwrite=*/false);
  EXPECT_THAT(std::string(record.status().message()), HasSubstr("/file/run"));
}

TEST_F(RunRecordTest, ARunIsGoneOnWithBehindTheLinesThatAreKept) {
  StepRecord step;
  TrafficRecord sent;
  sent.set_step(7);
  sent.set_boundary("layer1");
  const std::vector<TrafficRecord> traffic = {sent, sent};
  RunProgress progress;
  {
    auto record = Create();
    ASSERT_TRUE(record->WriteExperiment("name: one\n").ok());
    ASSERT_TRUE(record->Append(step).ok());
    ASSERT_TRUE(record->Append(traffic).ok());
    ASSERT_TRUE(record->Measure(&progress).ok());
    ASSERT_TRUE(record->Append(step).ok());
    ASSERT_TRUE(record->Append(traffic).ok());
  }
  const std::string first = Read("metrics.jsonl").substr(0, progress.metrics_bytes());
  auto record = RunRecord::Open(dir_);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(Read("experiment.yaml"), "name: one\n");
  ASSERT_TRUE((*record)->Cut(progress).ok());
  EXPECT_EQ(Read("metrics.jsonl"), first);
  const std::string line =
      R"({"step":7,"boundary":"layer1","direction":"","raw_bytes":0,"wire_bytes":0,"messages":0,)"
      R"("relative_error":null,"level":null})"
      "\n";
  EXPECT_EQ(Read("traffic.jsonl"), line + line);
  // Cut drops a line without its end, and may be asked for more bytes than there are.
  std::ofstream(dir_ + "/metrics.jsonl", std::ios::app) << "{\"type\":";
  progress.set_metrics_bytes(1000000);
  ASSERT_TRUE((*record)->Cut(progress).ok());
  EXPECT_EQ(Read("metrics.jsonl"), first);
  EXPECT_TRUE(absl::IsAlreadyExists(RunRecord::Open(dir_).status()));
}

TEST_F(RunRecordTest, AFolderWithoutARunIsNotGoneOnWith) {
  fs::create_directories(dir_);
  EXPECT_THAT(std::string(RunRecord::Open(dir_).status().message()), HasSubstr("no run to go on"));
}

}  // namespace
}  // namespace thinwire
