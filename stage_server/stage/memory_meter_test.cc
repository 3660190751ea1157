#include "stage_server/stage/memory_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "stage_server/stage/late_device_testing.h"
#include "stage_server/stage/stages_testing.h"
#include "tensor/cpu/device.h"
#include "tensor/tensor.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kElements = 8 << 20;

TEST(MemoryMeterTest, CountsWhatADeviceAllocatesFromThenOn) {
  const Backend backend = NewLateBackend();
  const Tensor before = *Tensor::Allocate(backend.device, DType::kF32, {1 << 20});
  MemoryMeter meter(backend.device, std::nullopt);
  {
    const Tensor more = *Tensor::Allocate(backend.device, DType::kF32, {kElements});
    EXPECT_TRUE(meter.Measure().ok());
  }
  EXPECT_TRUE(meter.Measure().ok());
  EXPECT_EQ(meter.most_bytes(), 4u * kElements);
}

TEST(MemoryMeterTest, CountsWhatAProcessHasTouched) {
  MemoryMeter meter(CpuDevice(), std::nullopt);
  const Tensor more = *Tensor::Allocate(CpuDevice(), DType::kF32, {kElements});
  std::memset(more.data(), 1, more.bytes());
  EXPECT_TRUE(meter.Measure().ok());
  EXPECT_GT(meter.most_bytes(), more.bytes() / 2);
}

TEST(MemoryMeterTest, AProgramOnACpuMayTakeSomethingForItself) {
  MemoryMeter meter(CpuDevice(), 1 << 20);
  const Tensor more = *Tensor::Allocate(CpuDevice(), DType::kF32, {kElements});
  std::memset(more.data(), 1, more.bytes());
  EXPECT_TRUE(meter.Measure().ok());
  const Tensor much = *Tensor::Allocate(CpuDevice(), DType::kF32, {3 * kElements});
  std::memset(much.data(), 1, much.bytes());
  EXPECT_FALSE(meter.Measure().ok());
}

TEST(MemoryMeterTest, ACopyForACheckpointDoesNotCount) {
  MemoryMeter meter(CpuDevice(), 1 << 20);
  const Tensor copy = *Tensor::Allocate(CpuDevice(), DType::kF32, {4 * kElements});
  std::memset(copy.data(), 1, copy.bytes());
  EXPECT_FALSE(meter.Measure().ok());
  meter.AllowCopy(copy.bytes());
  EXPECT_TRUE(meter.Measure().ok());
}

TEST(MemoryMeterTest, MoreThanATenthAboveTheLimitIsAnError) {
  const Backend backend = NewLateBackend();
  MemoryMeter meter(backend.device, 1 << 20);
  const Tensor fits = *Tensor::Allocate(backend.device, DType::kF32, {1 << 18});
  EXPECT_TRUE(meter.Measure().ok());
  const Tensor more = *Tensor::Allocate(backend.device, DType::kF32, {1 << 18});
  const absl::Status status = meter.Measure();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("takes 2 MiB of memory on "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("pipeline.memory is 1 MiB"));
}

}  // namespace
}  // namespace thinwire
