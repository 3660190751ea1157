#include "stage_server/open_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

constexpr char kNoDriver[] = "backend/libno_driver.so";  // counts no devices
constexpr char kTwo[] = "backend/libtwo.so";             // counts two and opens neither

absl::StatusOr<Backend> Open(const std::string& device, const std::string& plugin = kNoDriver) {
  BackendRequest request;
  request.device = device;
  return OpenBackend(request, plugin);
}

TEST(OpenBackendTest, TheCpuHasThreadsForOpsAndCodecs) {
  const Backend backend = *Open("cpu");
  EXPECT_EQ(backend.device, CpuDevice());
  EXPECT_NE(backend.ops, nullptr);
  EXPECT_NE(backend.threaded_kernels, nullptr);
  EXPECT_STREQ(backend.description.name, "");
}

TEST(OpenBackendTest, AutoFallsBackToTheCpuAndSaysWhyInOneLine) {
  const auto backend = Open("auto");
  ASSERT_TRUE(backend.ok()) << backend.status();
  EXPECT_EQ(backend->note, "device auto: CPU, because no NVIDIA driver was found");
  EXPECT_EQ(backend->device, CpuDevice());
  EXPECT_NE(backend->threaded_kernels, nullptr);
}

TEST(OpenBackendTest, WhatWasAskedForByNameIsNotReplaced) {
  EXPECT_THAT(std::string(Open("cuda").status().message()),
              HasSubstr("device cuda:0: no NVIDIA driver was found"));
  EXPECT_THAT(std::string(Open("cuda:2", kTwo).status().message()),
              HasSubstr("device cuda:2: there are 2 CUDA devices"));
  EXPECT_THAT(std::string(Open("auto", kTwo).status().message()),
              HasSubstr("the fake does not open"));
  EXPECT_THAT(std::string(Open("cuda", "backend/libabsent.so").status().message()),
              HasSubstr("libabsent.so: no such file"));
}

TEST(OpenBackendTest, TheCpuHasNoTf32) {
  BackendRequest request;
  request.ops.tf32 = true;
  const auto backend = OpenBackend(request, kNoDriver);
  EXPECT_EQ(backend.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(backend.status().message()),
              HasSubstr("precision tf32 on device cpu, want fp32 or bf16"));
}

TEST(OpenBackendTest, ThreadsAreBounded) {
  BackendRequest request;
  request.device = "cpu";
  for (const int threads : {-1, 0, 1025}) {
    request.threads = threads;
    EXPECT_EQ(OpenBackend(request, "").status(),
              absl::InvalidArgumentError(absl::StrCat("threads: ", threads, ", want 1 to 1024")));
  }
}

}  // namespace
}  // namespace thinwire
