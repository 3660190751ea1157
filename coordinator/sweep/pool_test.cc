#include "coordinator/sweep/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

namespace thinwire {
namespace {

class PoolTest : public ::testing::Test {
 protected:
  absl::Status Start(Pool* pool, size_t slot, const std::string& script) {
    return pool->Start(slot, "it", {"/bin/sh", "-c", script}, log_);
  }

  const std::string log_ = ::testing::TempDir() + "/pool.log";
  PoolTest() { unlink(log_.c_str()); }
  const int never_ = eventfd(0, EFD_CLOEXEC);
  pid_t child_ = 0;
};

TEST_F(PoolTest, TellsWhichSlotEndedAndHow) {
  Pool pool(2);
  EXPECT_TRUE(pool.idle());
  ASSERT_TRUE(Start(&pool, 0, "sleep 60").ok());
  EXPECT_FALSE(pool.IsFree(0));
  EXPECT_TRUE(pool.IsFree(1));
  ASSERT_TRUE(Start(&pool, 1, "exit 3").ok());
  EXPECT_FALSE(pool.IsFree(1));
  const auto end = pool.Wait(absl::Seconds(30), never_);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->slot, 1u);
  EXPECT_EQ(WEXITSTATUS(end->wait_status), 3);
  EXPECT_TRUE(pool.IsFree(1));
  EXPECT_FALSE(pool.idle());
}

TEST_F(PoolTest, WaitsNoLongerThanItsPatienceOrASignal) {
  Pool pool(1);
  ASSERT_TRUE(Start(&pool, 0, "sleep 60").ok());
  EXPECT_FALSE(pool.Wait(absl::ZeroDuration(), never_));
  const int readable = eventfd(1, EFD_CLOEXEC);
  EXPECT_FALSE(pool.Wait(absl::InfiniteDuration(), readable));
  close(readable);
}

TEST_F(PoolTest, EndAllAsksAndWaits) {
  Pool pool(2);
  ASSERT_TRUE(Start(&pool, 0, "trap 'exit 7' TERM; echo up; while :; do sleep 0.01; done").ok());
  for (std::string line; line != "up";) {
    std::ifstream log(log_);
    std::getline(log, line);
  }
  ASSERT_TRUE(Start(&pool, 1, "sleep 60").ok());
  const auto ends = pool.EndAll();
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(WEXITSTATUS(ends[0].wait_status), 7);
  EXPECT_EQ(WTERMSIG(ends[1].wait_status), SIGTERM);
  EXPECT_TRUE(pool.idle());
}

TEST_F(PoolTest, LeavesNothingBehind) {
  {
    Pool pool(1);
    ASSERT_TRUE(Start(&pool, 0, "echo $$; exec sleep 60").ok());
    pid_t child = 0;
    while (child == 0) std::ifstream(log_) >> child;
    child_ = child;
    EXPECT_EQ(kill(child_, 0), 0);
  }
  EXPECT_NE(kill(child_, 0), 0);
}

}  // namespace
}  // namespace thinwire
