#include "nn/cpu/ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace thinwire {
namespace {

TensorView View(DType type, void* data, int64_t n) {
  TensorView view;
  view.data = data;
  view.dtype = type;
  view.rank = 1;
  view.dims[0] = n;
  return view;
}

std::vector<uint16_t> Narrowed(std::vector<float> values) {
  std::vector<uint16_t> narrow(values.size());
  const auto ops = NewCpuOps(1);
  EXPECT_TRUE(ops->Convert(View(DType::kF32, values.data(), values.size()),
                           View(DType::kBF16, narrow.data(), narrow.size()))
                  .ok());
  return narrow;
}

// 20 copies, so that every instruction set meets it in a vector and in the rest.
uint16_t NarrowedOne(float value) {
  const std::vector<uint16_t> narrow = Narrowed(std::vector<float>(20, value));
  for (uint16_t n : narrow) EXPECT_EQ(n, narrow[0]);
  return narrow[0];
}

TEST(BF16Test, RoundsToNearestWithTiesToEven) {
  EXPECT_EQ(NarrowedOne(1.0f), 0x3F80);
  EXPECT_EQ(NarrowedOne(1.0f + 0x1p-8f), 0x3F80);            // tie, down to even
  EXPECT_EQ(NarrowedOne(1.0f + 0x1p-7f + 0x1p-8f), 0x3F82);  // tie, up to even
  EXPECT_EQ(NarrowedOne(1.0f + 0x1p-8f + 0x1p-20f), 0x3F81);
  EXPECT_EQ(NarrowedOne(-1.0f - 0x1p-8f - 0x1p-20f), 0xBF81);
}

TEST(BF16Test, TooLargeIsInfiniteAndNanStaysNan) {
  EXPECT_EQ(NarrowedOne(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(NarrowedOne(std::numeric_limits<float>::infinity()), 0x7F80);
  const uint32_t bits = 0x7FFFFFFF;  // adding the rounding would carry into the sign
  float nan;
  std::memcpy(&nan, &bits, sizeof(nan));
  EXPECT_EQ(NarrowedOne(nan) & 0x7FC0, 0x7FC0);
}

TEST(BF16Test, SmallNumbersAreNotFlushed) {
  EXPECT_EQ(NarrowedOne(0x1p-130f), 0x0008);
  EXPECT_EQ(NarrowedOne(-0.0f), 0x8000);
}

TEST(BF16Test, WideningIsExact) {
  std::vector<uint16_t> every(65536);
  for (size_t i = 0; i < every.size(); ++i) every[i] = static_cast<uint16_t>(i);
  std::vector<float> wide(every.size());
  const auto ops = NewCpuOps(2);
  ASSERT_TRUE(ops->Convert(View(DType::kBF16, every.data(), every.size()),
                           View(DType::kF32, wide.data(), wide.size()))
                  .ok());
  const std::vector<uint16_t> back = Narrowed(wide);
  for (size_t i = 0; i < every.size(); ++i) {
    if (std::isnan(wide[i])) continue;
    EXPECT_EQ(back[i], every[i]);
  }
}

TEST(CpuOpsTest, DoesNotComputeInFP16) {
  const Error error = NewCpuOps(1)->CheckComputeType(DType::kF16);
  EXPECT_EQ(ToStatus(error).code(), absl::StatusCode::kInvalidArgument);
}

TEST(CpuOpsTest, RefusesAKernelLargerThanTheImage) {
  Conv2dSpec spec;
  spec.in_channels = spec.out_channels = 1;
  spec.height = spec.width = 4;
  spec.kernel = 7;
  spec.padding = 1;
  Conv2d* conv = nullptr;
  const Error error = NewCpuOps(1)->NewConv2d(spec, &conv);
  EXPECT_EQ(ToStatus(error).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(conv, nullptr);
}

}  // namespace
}  // namespace thinwire
