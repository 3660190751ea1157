#include <gtest/gtest.h>

#include <algorithm>

#include "nn/cpu/ops.h"
#include "nn/cpu/tensors_testing.h"

namespace thinwire::cpu {
namespace {

double Sum(const Floats& values, int threads = 1) {
  const FloatRange range{values.data(), static_cast<int64_t>(values.size())};
  double sum = 0;
  EXPECT_TRUE(NewCpuOps(threads)->SumsOfSquares(&range, 1, &sum).ok());
  return sum;
}

TEST(SumOfSquaresTest, OfNothingIsZero) { EXPECT_EQ(Sum({}, 2), 0); }

TEST(SumOfSquaresTest, OfWholeNumbersIsExact) {
  Floats values(20000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  EXPECT_EQ(Sum(values), 19999.0 * 20000 * 39999 / 6);
}

TEST(SumOfSquaresTest, OfLargeNumbersIsFinite) { EXPECT_EQ(Sum(Floats(3, 0x1p120f)), 3 * 0x1p240); }

// Adds element by element in the order that the header states: neither threads nor vectors matter.
TEST(SumOfSquaresTest, HasOneOrder) {
  for (int64_t n : {1, 31, 32, 33, 8192, 8193, 100003}) {
    const Floats values = RandomFloats(n, 1, 1000);
    double want = 0;
    for (int64_t begin = 0; begin < n; begin += 8192) {
      double sums[32] = {}, of_block = 0;
      for (int64_t i = begin; i < std::min(n, begin + 8192); ++i) {
        sums[(i - begin) % 32] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
      }
      for (double sum : sums) of_block += sum;
      want += of_block;
    }
    EXPECT_EQ(Sum(values), want) << n;
    EXPECT_EQ(Sum(values, 3), want) << n;
  }
}

}  // namespace
}  // namespace thinwire::cpu
