#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "third_party/cuda_on_host/emulator_test_kernels.h"

namespace {

TEST(EmulatorTest, ThreadsMeetAtBarriers) {
  std::vector<int> values(4 * 64);
  std::iota(values.begin(), values.end(), 0);
  int* device = nullptr;
  ASSERT_EQ(cudaMalloc(&device, values.size() * 4), cudaSuccess);
  cudaMemcpy(device, values.data(), values.size() * 4, cudaMemcpyHostToDevice);
  ASSERT_EQ(Reverse(dim3(4), device, nullptr), cudaSuccess);
  cudaMemcpy(values.data(), device, values.size() * 4, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 4 * 64; ++i) EXPECT_EQ(values[i], i / 64 * 64 + 63 - i % 64);
  cudaFree(device);
}

TEST(EmulatorTest, LanesShuffle) {
  std::vector<int> values(2 * 256), sums(2);
  std::iota(values.begin(), values.end(), 0);
  int *device = nullptr, *device_sums = nullptr;
  cudaMalloc(&device, values.size() * 4);
  cudaMalloc(&device_sums, sums.size() * 4);
  cudaMemcpy(device, values.data(), values.size() * 4, cudaMemcpyHostToDevice);
  ASSERT_EQ(SumBlocks(dim3(2), device, device_sums, nullptr), cudaSuccess);
  cudaMemcpy(sums.data(), device_sums, sums.size() * 4, cudaMemcpyDeviceToHost);
  EXPECT_THAT(sums, testing::ElementsAre(255 * 256 / 2, 255 * 256 / 2 + 256 * 256));
  cudaFree(device);
  cudaFree(device_sums);
}

}  // namespace
