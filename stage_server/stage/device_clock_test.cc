#include "stage_server/stage/device_clock.h"

#include <gtest/gtest.h>

#include <memory>

#include "nn/cpu/ops.h"
#include "nn/cuda/tested_ops_testing.h"
#include "tensor/tensor.h"

namespace thinwire {
namespace {

// Times work that a device takes a while to do.
class DeviceClockTest : public ::testing::Test {
 protected:
  void Work() { EXPECT_TRUE(ops_->Zero(static_cast<float*>(memory_.data()), kElements).ok()); }
  void Time(double* seconds) {
    const DeviceClock::Timer timer(&clock_, seconds, &core_wait_, {});
    Work();
  }

  static constexpr int64_t kElements = 1 << 20;
  const std::unique_ptr<Ops> ops_ = NewTestedOps();
  const Tensor memory_ = *Tensor::Allocate(TestedDevice(), DType::kF32, {kElements});
  DeviceClock clock_{ops_.get()};
  double core_wait_ = 0;
};

TEST_F(DeviceClockTest, ADevicesSecondsAreThereOnceItIsDone) {
  double first = 0, second = 0;
  for (int step = 0; step < 2; ++step) {
    const double before = first;
    Time(&first);
    Time(&second);
    EXPECT_EQ(first, before);
    ASSERT_TRUE(TestedDevice()->Finish().ok());
    ASSERT_TRUE(clock_.Settle().ok());
    EXPECT_GT(first, before);
  }
  EXPECT_GT(second, 0);
  const double settled = first + second;
  ASSERT_TRUE(clock_.Settle().ok());
  EXPECT_EQ(first + second, settled);
}

TEST_F(DeviceClockTest, WhatIsForgottenCountsForNothing) {
  double seconds = 0;
  Time(&seconds);
  clock_.Forget();
  ASSERT_TRUE(TestedDevice()->Finish().ok());
  ASSERT_TRUE(clock_.Settle().ok());
  EXPECT_EQ(seconds, 0);
  Time(&seconds);  // by a timer that has been forgotten
  ASSERT_TRUE(TestedDevice()->Finish().ok());
  ASSERT_TRUE(clock_.Settle().ok());
  EXPECT_GT(seconds, 0);
}

TEST_F(DeviceClockTest, TimesThatAreSettledBeforeTheDeviceIsDoneAreAnError) {
  double seconds = 0;
  Time(&seconds);
  EXPECT_FALSE(clock_.Settle().ok());
  EXPECT_EQ(seconds, 0);
  ASSERT_TRUE(TestedDevice()->Finish().ok());
  EXPECT_TRUE(clock_.Settle().ok()) << "the error was told";
}

TEST(HostClockTest, CountsAtOnceWhereCallsEndWithTheirWork) {
  const auto ops = NewCpuOps(1);
  DeviceClock clock(ops.get());
  double seconds = 0, core_wait = 0;
  { const DeviceClock::Timer timer(&clock, &seconds, &core_wait, {}); }
  EXPECT_GT(seconds + core_wait, 0);
}

TEST(HostClockTest, WhatTheThreadWaitedForACoreCountsElsewhere) {
  const auto ops = NewCpuOps(1);
  DeviceClock clock(ops.get());
  StepTrace trace(1, 1, 1);
  double seconds = 1, core_wait = 2;
  { const DeviceClock::Timer timer(&clock, &seconds, &core_wait, PlannedSlice{&trace}); }
  const StepTrace::Taken taken = trace.Take();
  ASSERT_EQ(taken.slices.size(), 1u);
  const Slice& slice = taken.slices[0];
  EXPECT_GT(seconds, 1);
  EXPECT_NEAR(core_wait, 2 + slice.core_wait_seconds, 1e-12);
  EXPECT_NEAR(seconds - 1 + core_wait - 2, absl::ToDoubleSeconds(slice.end - slice.begin), 1e-9);
}

}  // namespace
}  // namespace thinwire
