// Tests a whole plugin, opened as a stage server opens it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "backend/load.h"
#include "backend/testing.h"
#include "tensor/copy_testing.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

constexpr char kPlugin[] = "backend/emulated/libthinwire_emulated.so";

TEST(EmulatedBackendTest, OpensAndDescribesItself) {
  const auto opened = OpenDevice("cuda", kPlugin);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_STREQ(opened->device->name(), "cuda:0");
  EXPECT_FALSE(opened->device->is_host());
  EXPECT_NE(opened->kernels, nullptr);
  EXPECT_STREQ(opened->description.name, "emulated GPU");
  EXPECT_THAT(opened->description.libraries, testing::StartsWith("CUDA 13.0, "));
  EXPECT_EQ(opened->note, "");
  const auto again = OpenDevice("auto", kPlugin);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->device, opened->device);
  EXPECT_EQ(again->kernels, opened->kernels);
  EXPECT_EQ(again->note, "device auto: cuda:0 of 1");
}

TEST(EmulatedBackendTest, SeesTheDevicesThereAre) {
  setenv("THINWIRE_EMULATED_DEVICES", "2", /*overwrite=*/1);
  const auto second = OpenDevice("cuda:1", kPlugin);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_STREQ(second->device->name(), "cuda:1");
  EXPECT_EQ(
      OpenDevice("cuda:2", kPlugin).status(),
      absl::InvalidArgumentError("device cuda:2: there are 2 CUDA devices, cuda:0 to cuda:1"));
  DeviceDescription description;
  EXPECT_THAT(second->plugin->Describe(2, &description).message,
              HasSubstr("cuda:2: there are 2 CUDA devices"));

  setenv("THINWIRE_EMULATED_DEVICES", "0", /*overwrite=*/1);
  EXPECT_EQ(OpenDevice("cuda", kPlugin).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(OpenDevice("auto", kPlugin)->device, CpuDevice());
  unsetenv("THINWIRE_EMULATED_DEVICES");
}

TEST(EmulatedBackendTest, TensorsGoThereAndBack) {
  const Tensor sent = *Tensor::Allocate(CpuDevice(), DType::kF32, {3});
  std::memcpy(sent.data(), "abcdefghijkl", 12);
  const Tensor there = On(BackendUnderTest().device, sent);
  EXPECT_EQ(there.device(), BackendUnderTest().device);
  const Tensor back = On(CpuDevice(), there);
  EXPECT_EQ(std::memcmp(back.data(), "abcdefghijkl", 12), 0);
}

TEST(EmulatedBackendTest, MakesOps) {
  const auto ops = BackendUnderTest().NewOps();
  ASSERT_TRUE(ops.ok()) << ops.status();
  const Tensor x = *Tensor::Allocate(CpuDevice(), DType::kF32, {4});
  const float values[] = {-1, 2, -3, 4};
  std::memcpy(x.data(), values, sizeof(values));
  const Tensor there = On(BackendUnderTest().device, x);
  const Error error = (*ops)->Relu(there.view(), there.view());
  ASSERT_TRUE(error.ok()) << error.message;
  EXPECT_THAT(On(CpuDevice(), there).floats(), testing::ElementsAre(0, 2, 0, 4));
}

TEST(EmulatedBackendTest, RecordsActivitiesByCupti) {
  setenv("LD_LIBRARY_PATH", "tensor/cuda/fake_cupti", /*overwrite=*/1);
  // A recording waits for every device that was opened, so none may be gone.
  setenv("THINWIRE_EMULATED_DEVICES", "2", /*overwrite=*/1);
  ActivityRecorder* made = nullptr;
  Error error = BackendUnderTest().plugin->NewActivityRecorder(/*most=*/100, &made);
  ASSERT_TRUE(error.ok()) << error.message;
  const std::unique_ptr<ActivityRecorder> recorder(made);
  error = recorder->Start();
  ASSERT_TRUE(error.ok()) << error.message;
  size_t kept = 0;
  uint64_t dropped = 0;
  error = recorder->Stop(&kept, &dropped);
  ASSERT_TRUE(error.ok()) << error.message;
  std::vector<DeviceActivity> activities(kept);
  recorder->Copy(activities.data());
  ASSERT_EQ(kept, 6u);
  EXPECT_STREQ(activities[0].name, "Softmax<float>");
  unsetenv("THINWIRE_EMULATED_DEVICES");
}

}  // namespace
}  // namespace thinwire
