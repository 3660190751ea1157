#include "base/stopwatch.h"

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

// Computes for `cpu_seconds` by the thread's own clock.
void Compute(double cpu_seconds) {
  const double end = ThreadCpuSeconds() + cpu_seconds;
  while (ThreadCpuSeconds() < end) {
  }
}

TEST(StopwatchTest, SleepIsWorkThatTakesNoProcessor) {
  const Stopwatch watch;
  absl::SleepFor(absl::Milliseconds(50));
  const Stopwatch::Reading reading = watch.Read();
  EXPECT_GE(reading.seconds + reading.core_wait_seconds, 0.05);
  EXPECT_LT(reading.cpu_seconds, 0.04);
  EXPECT_DOUBLE_EQ(absl::ToDoubleSeconds(reading.end - reading.begin),
                   reading.seconds + reading.core_wait_seconds);
}

TEST(StopwatchTest, WhatOthersHaveOfTheCoreDoesNotCount) {
  if (access("/proc/thread-self/schedstat", R_OK) != 0) GTEST_SKIP() << "the kernel does not say";
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(/*this thread*/ 0, sizeof(before), &before), 0);
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  std::atomic<bool> stop{false};
  std::thread other([&stop] {  // on the same core, as a thread inherits its creator's affinity
    while (!stop) {
    }
  });
  const Stopwatch watch;
  Compute(0.2);
  const Stopwatch::Reading reading = watch.Read();
  stop = true;
  other.join();
  sched_setaffinity(0, sizeof(before), &before);
  EXPECT_GT(reading.core_wait_seconds, 0.1);  // each gets half of the core
  EXPECT_GE(reading.cpu_seconds, 0.2);
  // It includes what interrupts and the machine's host take.
  EXPECT_LT(reading.seconds, reading.cpu_seconds + 0.5 * reading.core_wait_seconds);
}

}  // namespace
}  // namespace thinwire
