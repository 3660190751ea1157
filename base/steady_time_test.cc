#include "base/steady_time.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

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
  EXPECT_GT(SteadyTime::Never().chrono(), deadline.chrono());
}

TEST(SteadyTime, AWaitUntilNeverEndsWhenItIsWoken) {
  std::mutex mutex;
  std::condition_variable changed;
  bool woken = false;
  std::unique_lock<std::mutex> lock(mutex);
  std::thread waker([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const std::lock_guard<std::mutex> held(mutex);
    woken = true;
    changed.notify_one();
  });
  int looks = 0;
  EXPECT_TRUE(changed.wait_until(lock, SteadyTime::Never().chrono(), [&] {
    ++looks;
    return woken;
  }));
  EXPECT_LT(looks, 100);  // it does not poll all the time
  lock.unlock();
  waker.join();
}

}  // namespace
}  // namespace thinwire
