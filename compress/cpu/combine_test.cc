#include "compress/cpu/combine.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <vector>

#include "base/random.h"
#include "compress/cpu/half.h"

namespace thinwire {
namespace {

// Two blocks and a part of a vector.
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
    ASSERT_TRUE(CpuCombine(a, ViewOf(x), b, ViewOf(y), ViewOf(out), /*threads=*/1).ok());
    EXPECT_EQ(out, want) << hwy::TargetName(target);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST(CombineTest, TheSumMayTakeThePlaceOfEither) {
  std::vector<float> x = RandomValues(1), y = RandomValues(2), out(kElements);
  ASSERT_TRUE(CpuCombine(1, ViewOf(x), -1, ViewOf(y), ViewOf(out), /*threads=*/1).ok());
  std::vector<float> left = x, right = y;
  ASSERT_TRUE(CpuCombine(1, ViewOf(left), -1, ViewOf(y), ViewOf(left), /*threads=*/1).ok());
  ASSERT_TRUE(CpuCombine(1, ViewOf(x), -1, ViewOf(right), ViewOf(right), /*threads=*/1).ok());
  EXPECT_EQ(left, out);
  EXPECT_EQ(right, out);
}

TEST(CombineTest, BFloatIsWidenedAndTheSumRoundedToEven) {
  std::vector<uint16_t> x(3, ToBFloat(1)), out(3);
  std::vector<float> y = {0x1p-8f, 0x1.1p-8f,
                          0x3p-8f};  // half a step of bf16, more, one and a half
  ASSERT_TRUE(CpuCombine(1, ViewOf(x), 1, ViewOf(y), ViewOf(out), /*threads=*/1).ok());
  EXPECT_EQ(out, std::vector<uint16_t>({ToBFloat(1), ToBFloat(1.0078125f), ToBFloat(1.015625f)}));
}

}  // namespace
}  // namespace thinwire
