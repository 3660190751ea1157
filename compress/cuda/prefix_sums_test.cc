#include "compress/cuda/prefix_sums.h"

#include <gtest/gtest.h>

#include <vector>

#include "tensor/cuda/device.h"

namespace thinwire {
namespace {

// Tests lengths at which another warp is launched, and more than a block takes at once.
TEST(PrefixSumsTest, EachIsTheSumOfThoseBefore) {
  CudaDevice* device = nullptr;
  ASSERT_TRUE(NewCudaDevice(/*index=*/0, &device).ok());
  for (int64_t n : {0, 1, 31, 33, 255, 256, 257, 513, 7936, 7937, 8191, 8192, 8193, 20000}) {
    SCOPED_TRACE(n);
    std::vector<uint64_t> values(n + 1, 0xDEAD), expected(n + 1);
    for (int64_t i = 0; i < n; ++i) {
      values[i] = static_cast<uint64_t>(i * i % 1009) << 30;
      expected[i + 1] = expected[i] + values[i];
    }
    CudaScratch sums(device);
    const size_t bytes = 8 * values.size();
    ASSERT_TRUE(sums.Reserve(bytes).ok());
    ASSERT_TRUE(device->CopyFromHost(sums.as<void>(), values.data(), bytes).ok());
    ASSERT_TRUE(SubmitPrefixSums(device, sums.as<uint64_t>(), n).ok());
    ASSERT_TRUE(device->CopyToHost(values.data(), sums.as<void>(), bytes).ok());
    EXPECT_EQ(values, expected);
  }
}

}  // namespace
}  // namespace thinwire
