#include "coordinator/files/file_lock.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class FileLockTest : public ::testing::Test {
 protected:
  FileLockTest() { fs::remove(path_); }

  const std::string path_ = ::testing::TempDir() + "/lock";
};

TEST_F(FileLockTest, IsHeldByOneAtATimeAndStaysAFile) {
  auto first = FileLock::Take(path_);
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status second = FileLock::Take(path_).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(second.message(), path_ + ": another process holds it");
  first->reset();
  EXPECT_TRUE(fs::exists(path_));
  EXPECT_TRUE(FileLock::Take(path_).ok());
}

TEST_F(FileLockTest, AKilledHolderHoldsNothing) {
  int held[2];
  ASSERT_EQ(pipe(held), 0);
  const pid_t holder = fork();
  if (holder == 0) {
    const auto lock = FileLock::Take(path_);
    const char said = lock.ok() ? 'y' : 'n';
    if (write(held[1], &said, 1) == 1) pause();
    _exit(1);
  }
  char said = 0;
  ASSERT_EQ(read(held[0], &said, 1), 1);
  EXPECT_EQ(said, 'y');
  EXPECT_EQ(FileLock::Take(path_).status().code(), absl::StatusCode::kAlreadyExists);
  kill(holder, SIGKILL);
  ASSERT_EQ(waitpid(holder, nullptr, 0), holder);
  EXPECT_TRUE(FileLock::Take(path_).ok());
  close(held[0]);
  close(held[1]);
}

TEST_F(FileLockTest, AProgramThatTheHolderStartedDoesNotHoldIt) {
  int started[2];
  ASSERT_EQ(pipe(started), 0);
  auto lock = FileLock::Take(path_);
  ASSERT_TRUE(lock.ok()) << lock.status();
  const pid_t program = fork();
  if (program == 0) {
    dup2(started[1], STDOUT_FILENO);
    execl("/bin/sh", "sh", "-c", "echo; exec sleep 60", nullptr);
    _exit(1);
  }
  char line = 0;
  ASSERT_EQ(read(started[0], &line, 1), 1);
  lock->reset();
  EXPECT_TRUE(FileLock::Take(path_).ok());
  kill(program, SIGKILL);
  ASSERT_EQ(waitpid(program, nullptr, 0), program);
  close(started[0]);
  close(started[1]);
}

TEST_F(FileLockTest, AFolderOrALinkInItsPlaceIsAnErrorThatNamesIt) {
  fs::create_directories(path_);
  EXPECT_THAT(std::string(FileLock::Take(path_).status().message()),
              AllOf(HasSubstr(path_ + ": cannot open"), HasSubstr("Is a directory")));
  fs::remove(path_);
  fs::create_symlink(path_ + "-elsewhere", path_);
  EXPECT_THAT(std::string(FileLock::Take(path_).status().message()), HasSubstr("cannot open"));
  EXPECT_FALSE(fs::exists(path_ + "-elsewhere"));
}

}  // namespace
}  // namespace thinwire
