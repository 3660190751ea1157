#include "coordinator/fleet/launcher.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/notification.h"
#include "coordinator/fleet/child_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

bool Exists(pid_t process) { return kill(process, 0) == 0; }

// Returns a mask in which bit s - 1 says whether the process ignores signal s.
uint64_t IgnoredSignals(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (absl::StartsWith(line, "SigIgn:")) return std::stoull(line.substr(7), nullptr, 16);
  }
  ADD_FAILURE() << "process " << process << " has no status";
  return 0;
}

class LocalStagesTest : public ::testing::Test {
 protected:
  LocalStagesTest() {
    unsetenv("FAKE_STAGE");
    options_.binary = "coordinator/fleet/fake_stage_server_testing.sh";
    options_.pipelines.stages = 2;
    options_.threads = 3;
    options_.logs_dir = ::testing::TempDir();
  }
  std::unique_ptr<LocalStages> Start() {
    auto stages = LocalStages::Start(options_);
    EXPECT_TRUE(stages.ok()) << stages.status();
    return *std::move(stages);
  }
  std::string StartError() { return std::string(LocalStages::Start(options_).status().message()); }

  LaunchOptions options_;
};

TEST_F(LocalStagesTest, StagesServeOnSocketsInAPrivateFolderThatIsRemoved) {
  auto stages = Start();
  const std::string target = stages->addresses()[1];
  EXPECT_THAT(target, AllOf(StartsWith("unix:/"), EndsWith("/stage-1.sock")));
  const fs::path folder = fs::path(std::string(absl::StripPrefix(target, "unix:"))).parent_path();
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  stages->Stop();
  EXPECT_FALSE(fs::exists(folder));
}

TEST_F(LocalStagesTest, SocketsStandInTmpWhereTmpdirIsNoPlainAddress) {
  for (const char* name : {"/a%41", "/a b", "/a?b", "/a#b"}) {
    const std::string folder = ::testing::TempDir() + name;
    fs::create_directories(folder);
    setenv("TMPDIR", folder.c_str(), /*overwrite=*/1);
    EXPECT_THAT(Start()->addresses()[0], StartsWith("unix:/tmp/thinwire-"));
  }
  unsetenv("TMPDIR");
}

TEST_F(LocalStagesTest, OutputGoesToOneLogPerStage) {
  auto stages = Start();
  EXPECT_THAT(LastLines(options_.logs_dir + "/stage-1.log", 1).at(0),
              AllOf(HasSubstr("stage-1.sock"), HasSubstr("3 threads, PASSIVE")));
}

TEST_F(LocalStagesTest, TcpStagesChooseTheirPorts) {
  options_.tcp = true;
  EXPECT_EQ(Start()->addresses()[0], "127.0.0.1:0");  // the fake repeats its arguments
}

TEST_F(LocalStagesTest, TheCudaPluginIsPassedOn) {
  options_.cuda_plugin = "/opt/x/libthinwire_cuda.so";
  Start();
  EXPECT_THAT(LastLines(options_.logs_dir + "/stage-0.log", 1).at(0),
              EndsWith(", plugin /opt/x/libthinwire_cuda.so"));
}

TEST_F(LocalStagesTest, ChildrenLeadProcessGroupsOfTheirOwn) {
  auto stages = Start();
  for (pid_t process : stages->processes()) EXPECT_EQ(getpgid(process), process);
}

TEST_F(LocalStagesTest, ChildrenIgnoreNoSignalThatTheirParentDoes) {
  for (int number : {SIGPIPE, SIGXFSZ}) signal(number, SIG_IGN);
  auto stages = Start();
  for (int number : {SIGPIPE, SIGXFSZ}) signal(number, SIG_DFL);
  const uint64_t ignored = IgnoredSignals(stages->processes()[0]);
  for (int number : {SIGPIPE, SIGXFSZ}) EXPECT_EQ(ignored >> (number - 1) & 1, 0u) << number;
}

TEST_F(LocalStagesTest, NoChildIsLeftAfterStop) {
  auto stages = Start();
  const std::vector<pid_t> processes = stages->processes();
  stages->Stop();
  for (pid_t process : processes) EXPECT_FALSE(Exists(process));
}

TEST_F(LocalStagesTest, AStoppedChildAndOneThatIgnoresSigtermAreKilled) {
  setenv("FAKE_STAGE", "deaf", /*overwrite=*/1);
  auto stages = Start();
  const std::vector<pid_t> processes = stages->processes();
  kill(processes[0], SIGSTOP);
  stages->Stop(/*grace=*/absl::Milliseconds(10));
  for (pid_t process : processes) EXPECT_FALSE(Exists(process));
}

TEST_F(LocalStagesTest, ADeadChildIsReportedWithItsSignalAndItsLastWords) {
  auto stages = Start();
  absl::Notification died;
  Failure failure;
  stages->Watch([&](Failure f) {
    failure = std::move(f);
    died.Notify();
  });
  kill(stages->processes()[1], SIGKILL);
  died.WaitForNotification();
  EXPECT_EQ(failure.stage, 1);
  EXPECT_EQ(failure.kind, Failure::Kind::kDead);
  EXPECT_THAT(std::string(failure.status.message()),
              AllOf(StartsWith("stage 1 (process "), HasSubstr("was killed by signal 9 (Killed)"),
                    HasSubstr("listening at")));
}

TEST_F(LocalStagesTest, ChildrenThatStopEndsAreNotReported) {
  std::atomic<int> deaths = 0;
  for (int i = 0; i < 20; ++i) {
    auto stages = Start();
    stages->Watch([&deaths](const Failure&) { ++deaths; });
    stages->Stop();
  }
  EXPECT_EQ(deaths, 0);
}

TEST_F(LocalStagesTest, AStageThatFailsAtStartIsAnErrorWithItsCodeAndLastWords) {
  setenv("FAKE_STAGE", "broken", /*overwrite=*/1);
  EXPECT_THAT(StartError(), AllOf(StartsWith("stage 0"), HasSubstr("exited with code 3"),
                                  HasSubstr("/stage-0.log:\n    listening at "),
                                  EndsWith("\n    cannot read data")));
}

TEST_F(LocalStagesTest, AStageThatNeverServesIsGivenUp) {
  setenv("FAKE_STAGE", "mute", /*overwrite=*/1);
  options_.patience = absl::Milliseconds(10);
  EXPECT_THAT(StartError(), HasSubstr("stage 0 does not serve after 10ms"));
}

TEST_F(LocalStagesTest, AnInterruptionEndsTheWaiting) {
  setenv("FAKE_STAGE", "mute", /*overwrite=*/1);
  options_.interrupt_fd = eventfd(/*initval=*/1, 0);
  EXPECT_EQ(LocalStages::Start(options_).status().code(), absl::StatusCode::kCancelled);
  close(options_.interrupt_fd);
}

TEST_F(LocalStagesTest, WhatIsNotAnAddressIsQuoted) {
  setenv("FAKE_STAGE", "rambling", /*overwrite=*/1);
  EXPECT_THAT(StartError(), HasSubstr("stage 0 said \"hello"));
}

TEST_F(LocalStagesTest, ABinaryThatCannotBeExecutedIsAnError) {
  options_.binary = "/nonexistent/stage_server";
  EXPECT_THAT(StartError(), AllOf(HasSubstr("exited with code 127"),
                                  HasSubstr("cannot execute: No such file or directory")));
}

TEST(LastLinesTest, AreThoseOfTheEndThatAreNotBlank) {
  const std::string path = ::testing::TempDir() + "/last_lines";
  std::ofstream(path) << "a\n\nb\nc\n  \n";
  EXPECT_THAT(LastLines(path, 2), ElementsAre("b", "c"));
  EXPECT_THAT(LastLines(path, 9), ElementsAre("a", "b", "c"));
  EXPECT_THAT(LastLines(path + ".none", 9), IsEmpty());
  std::ofstream(path) << std::string(1 << 20, 'x') << "\nend";
  EXPECT_THAT(LastLines(path, 9), ElementsAre("end"));
}

// Starts stages in another process, which dies like a killed coordinator.
TEST_F(LocalStagesTest, ChildrenDieWithTheirCoordinatorEvenOneThatIsStopped) {
  setenv("FAKE_STAGE", "deaf", /*overwrite=*/1);
  options_.tcp = true;  // nobody would be left to remove Unix sockets
  int pids[2];
  ASSERT_EQ(pipe(pids), 0);
  const pid_t coordinator = fork();
  if (coordinator == 0) {
    auto stages = LocalStages::Start(options_);
    kill((*stages)->processes()[0], SIGSTOP);
    const pid_t* processes = (*stages)->processes().data();
    if (write(pids[1], processes, 2 * sizeof(pid_t)) < 0) _exit(1);
    kill(getpid(), SIGKILL);
  }
  pid_t processes[2];
  ASSERT_EQ(read(pids[0], processes, sizeof(processes)), static_cast<ssize_t>(sizeof(processes)));
  // A child of another process cannot be waited for; its end shows as the end of its process id.
  for (pid_t process : processes) {
    const std::string status = "/proc/" + std::to_string(process) + "/stat";
    while (Exists(process)) {
      std::ifstream file(status);
      std::string pid, name, state;
      if (file >> pid >> name >> state && state == "Z") break;
    }
  }
  SUCCEED() << "both ended, or this test would not";
}

TEST_F(LocalStagesTest, AStageThatIsGoneOrHangsIsStartedAnew) {
  const auto stages = Start();
  const pid_t killed = stages->processes()[0], hanging = stages->processes()[1];
  ASSERT_EQ(kill(killed, SIGKILL), 0);
  while (stages->IsThere(0)) usleep(1000);
  EXPECT_TRUE(stages->IsThere(1));
  ASSERT_EQ(kill(hanging, SIGSTOP), 0);
  for (const int stage : {0, 1}) {
    const absl::Status status = stages->Restart(stage);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_TRUE(stages->IsThere(stage));
  }
  EXPECT_FALSE(Exists(hanging));
  EXPECT_NE(stages->processes()[0], killed);
  absl::Notification died;
  stages->Watch([&died](const Failure& failure) {
    EXPECT_EQ(failure.stage, 0);
    died.Notify();
  });
  ASSERT_EQ(kill(stages->processes()[0], SIGKILL), 0);
  died.WaitForNotification();
  stages->Unwatch();
}

}  // namespace
}  // namespace thinwire
