#include "base/steady_time.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "gtest/gtest.h"

namespace thinwire {
namespace {

TEST(SteadyTime, NeverComesAfterEverySum) {
  const SteadyTime now = SteadyTime::Now();
  EXPECT_LT(SteadyTime(), now);
  EXPECT_LT(now + absl::Hours(24 * 365 * 100), SteadyTime::Never());
  EXPECT_FALSE(now + absl::InfiniteDuration() < SteadyTime::Never());
  EXPECT_EQ(SteadyTime::Never() - now, absl::InfiniteDuration());
}

TEST(SteadyTime, DifferencesUndoSums) {
  const SteadyTime now = SteadyTime::Now();
  EXPECT_EQ((now + absl::Nanoseconds(3)) - now, absl::Nanoseconds(3));
  EXPECT_GE(SteadyTime::Now(), now);
  EXPECT_GE(SecondsSince(now), 0);
}

TEST(SteadyTime, ConditionVariablesTakeIt) {
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_lock<std::mutex> lock(mutex);
  const SteadyTime start = SteadyTime::Now(), deadline = start + absl::Milliseconds(2);
  EXPECT_EQ(deadline.chrono() - start.chrono(), std::chrono::milliseconds(2));
  EXPECT_FALSE(changed.wait_until(lock, deadline.chrono(), [] { return false; }));
  EXPECT_GE(SteadyTime::Now(), deadline);
  EXPECT_TRUE(changed.wait_until(lock, SteadyTime::Never().chrono(), [] { return true; }));
  EXPECT_GT(SteadyTime::Never().chrono(), deadline.chrono());
}

}  // namespace
}  // namespace thinwire
