#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <vector>

#include "base/random.h"
#include "compress/cpu/kernels.h"
#include "compress/half.h"

namespace thinwire {
namespace {

// Elements of a test: two blocks and a part of a vector.
constexpr size_t kElements = 2 * 4096 + 13;

std::vector<float> RandomValues(uint64_t seed) {
  RandomStream random(seed);
  std::vector<float> values(kElements);
  for (float& value : values) value = random.NextFloat() - 0.5f;
  return values;
}

template <typename T>
TensorView ViewOf(std::vector<T>& values) {
  TensorView view;
  view.data = values.data();
  view.rank = 1;
  view.dims[0] = values.size();
  view.dtype = sizeof(T) == 4 ? DType::kF32 : DType::kBF16;
  return view;
}

TEST(CombineTest, RoundsProductsAndSumOnTheirOwnOnEverySimdTarget) {
  std::vector<float> x = RandomValues(1), y = RandomValues(2), want(kElements);
  const float a = 0.9f, b = -1.7f;
  for (size_t i = 0; i < kElements; ++i) {
    const volatile float left = a * x[i], right = b * y[i];
    want[i] = left + right;
  }
  for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    std::vector<float> out(kElements);
    ASSERT_TRUE(CpuCodecKernels()->Combine(a, ViewOf(x), b, ViewOf(y), ViewOf(out)).ok());
    EXPECT_EQ(out, want) << hwy::TargetName(target);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST(CombineTest, TheSumMayTakeThePlaceOfEither) {
  std::vector<float> x = RandomValues(1), y = RandomValues(2), out(kElements);
  ASSERT_TRUE(CpuCodecKernels()->Combine(1, ViewOf(x), -1, ViewOf(y), ViewOf(out)).ok());
  std::vector<float> left = x, right = y;
  ASSERT_TRUE(CpuCodecKernels()->Combine(1, ViewOf(left), -1, ViewOf(y), ViewOf(left)).ok());
  ASSERT_TRUE(CpuCodecKernels()->Combine(1, ViewOf(x), -1, ViewOf(right), ViewOf(right)).ok());
  EXPECT_EQ(left, out);
  EXPECT_EQ(right, out);
}

TEST(CombineTest, BFloatIsWidenedAndTheSumRoundedToEven) {
  std::vector<uint16_t> x(3, ToBFloat(1)), out(3);
  std::vector<float> y = {0x1p-8f, 0x1.1p-8f,
                          0x3p-8f};  // half a step of bf16, more, one and a half
  ASSERT_TRUE(CpuCodecKernels()->Combine(1, ViewOf(x), 1, ViewOf(y), ViewOf(out)).ok());
  EXPECT_EQ(out, std::vector<uint16_t>({ToBFloat(1), ToBFloat(1.0078125f), ToBFloat(1.015625f)}));
}

RowsView RowsAt(std::vector<float>& values) { return {values.data(), nullptr, DType::kF32}; }

TEST(CombineRowsTest, EachRowMayLieAnywhereOrNowhere) {
  constexpr int64_t kRow = 4096 + 5;
  std::vector<float> x = RandomValues(1), y = RandomValues(2), z = RandomValues(3);
  x.resize(3 * kRow, 0.25f);
  std::vector<float> first(kRow, 7), last(kRow, 7), also(3 * kRow, 7);
  void* const of_y[] = {y.data(), nullptr, z.data()};
  void* const of_out[] = {first.data(), nullptr, last.data()};
  RowSums sums;
  sums.count = 3;
  sums.elements = kRow;
  sums.a = 2;
  sums.b = -3;
  sums.x = RowsAt(x);
  sums.y.each = of_y;
  sums.out.each = of_out;
  sums.also = RowsAt(also);
  ASSERT_TRUE(CpuCodecKernels()->CombineRows(sums).ok());
  for (int64_t i = 0; i < kRow; ++i) {
    ASSERT_EQ(first[i], 2 * x[i] - 3 * y[i]) << i;
    ASSERT_EQ(last[i], 2 * x[2 * kRow + i] - 3 * z[i]) << i;
    ASSERT_EQ(also[i], first[i]) << i;
    ASSERT_EQ(also[kRow + i], 2 * x[kRow + i]) << i;
    ASSERT_EQ(also[2 * kRow + i], last[i]) << i;
  }
}

TEST(CombineRowsTest, WhatIsNotFiniteIsZeroWhereThatIsWanted) {
  std::vector<float> x = {1, 3e38f, -INFINITY, NAN, 5}, out(5), also(5);
  RowSums sums;
  sums.count = 1;
  sums.elements = 5;
  sums.b = 0;
  sums.x = RowsAt(x);
  sums.a = 2;
  sums.out = RowsAt(out);
  sums.also = RowsAt(also);
  sums.zero_nonfinite = true;
  ASSERT_TRUE(CpuCodecKernels()->CombineRows(sums).ok());
  EXPECT_EQ(out, std::vector<float>({2, 0, 0, 0, 10}));
  EXPECT_EQ(also[1], INFINITY);
  EXPECT_TRUE(std::isnan(also[3]));
}

}  // namespace
}  // namespace thinwire
