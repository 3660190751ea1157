// Tests the plugin of this build, on a machine with a GPU or without.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "backend/load.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

constexpr char kPlugin[] = "backend/cuda/libthinwire_cuda.so";

TEST(CudaPluginTest, IsFoundInTheBazelTree) {
  const auto by_name = LoadBackend(kPlugin);
  ASSERT_TRUE(by_name.ok()) << by_name.status();
  const auto opened = OpenDevice("auto", "");
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_THAT(opened->note, testing::Not(HasSubstr("is at none of")));
}

TEST(CudaPluginTest, WithoutADriverAutoIsTheCpuAndCudaAnError) {
  const auto plugin = LoadBackend(kPlugin);
  ASSERT_TRUE(plugin.ok()) << plugin.status();
  int count = 0;
  const Error error = (*plugin)->CountDevices(&count);
  if (error.ok()) GTEST_SKIP() << "there is a driver, and " << count << " devices";
  EXPECT_EQ(error.code, static_cast<int>(absl::StatusCode::kUnavailable));
  EXPECT_STREQ(error.message, "no NVIDIA driver was found");
  const auto automatic = OpenDevice("auto", kPlugin);
  ASSERT_TRUE(automatic.ok()) << automatic.status();
  EXPECT_EQ(automatic->device, CpuDevice());
  EXPECT_EQ(automatic->note, "device auto: CPU, because no NVIDIA driver was found");
  EXPECT_EQ(OpenDevice("cuda", kPlugin).status(),
            absl::UnavailableError("device cuda:0: no NVIDIA driver was found"));
}

TEST(CudaPluginTest, OpensTheFirstGpu) {
  const auto opened = OpenDevice("auto", kPlugin);
  ASSERT_TRUE(opened.ok()) << opened.status();
  if (opened->plugin == nullptr) GTEST_SKIP() << opened->note;
  EXPECT_STREQ(opened->device->name(), "cuda:0");
  EXPECT_NE(opened->kernels, nullptr);
  EXPECT_STRNE(opened->description.name, "");
  EXPECT_THAT(opened->description.libraries,
              testing::MatchesRegex("CUDA [0-9.]+, cuDNN .*, cuBLAS [0-9.]+, driver .*"));
}

}  // namespace
}  // namespace thinwire
