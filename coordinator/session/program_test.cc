#include "coordinator/session/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace thinwire {
namespace {

using ::testing::HasSubstr;

Interruption* TheInterruption() {
  static auto* const interruption = new Interruption;
  return interruption;
}

absl::StatusOr<int> Shell(const std::string& script) {
  return RunProgram({"sh", "-c", script}, TheInterruption());
}

TEST(RunProgramTest, GivesTheExitCode) {
  EXPECT_EQ(*Shell("exit 0"), 0);
  EXPECT_EQ(*Shell("exit 7"), 7);
  EXPECT_EQ(*Shell("kill -KILL $$"), 137);
}

TEST(RunProgramTest, NoSignalIsIgnoredThere) {
  signal(SIGPIPE, SIG_IGN);
  EXPECT_EQ(*Shell("kill -PIPE $$"), 141);
  EXPECT_EQ(*Shell("kill -TERM $$"), 143);
}

TEST(RunProgramTest, AProgramThatIsNotInstalledIsNamed) {
  const absl::Status status = RunProgram({"no-such-program"}, TheInterruption()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no-such-program"));
}

// Must be the last test: the signal stays seen.
TEST(RunProgramTest, ASignalEndsIt) {
  const absl::Status status = Shell("kill -TERM $PPID; sleep 600").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace thinwire
