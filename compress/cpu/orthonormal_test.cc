#include "compress/cpu/orthonormal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace thinwire {
namespace {

using ::testing::Each;

double Dot(const float* a, const float* b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

std::vector<float> RandomColumns(size_t n, size_t count) {
  RandomStream random(RandomKey(1, "columns"));
  std::vector<float> p(n * count);
  for (float& value : p) value = random.NextFloat() - 0.5f;
  return p;
}

void ExpectOrthonormal(const std::vector<float>& p, size_t n, size_t count) {
  for (size_t j = 0; j < count; ++j) {
    for (size_t k = 0; k <= j; ++k) {
      EXPECT_NEAR(Dot(&p[j * n], &p[k * n], n), j == k ? 1 : 0, 1e-6) << j << " " << k;
    }
  }
}

TEST(OrthonormaliseTest, ColumnsBecomeOrthogonalAndOfLengthOne) {
  std::vector<float> p = RandomColumns(101, 7);
  Orthonormalise(p.data(), 101, 7);
  ExpectOrthonormal(p, 101, 7);
}

TEST(OrthonormaliseTest, NearlyParallelColumnsToo) {
  const size_t n = 1000, count = 5;
  std::vector<float> p = RandomColumns(n, count);
  for (size_t j = 1; j < count; ++j) {
    for (size_t i = 0; i < n; ++i) p[j * n + i] = p[i] + 1e-4f * p[j * n + i];
  }
  Orthonormalise(p.data(), n, count);
  ExpectOrthonormal(p, n, count);
}

TEST(OrthonormaliseTest, KeepsTheFirstDirection) {
  std::vector<float> p = {3, 4, 5, 0};
  Orthonormalise(p.data(), 2, 2);
  EXPECT_THAT(p, ::testing::Pointwise(::testing::FloatEq(), {0.6f, 0.8f, 0.8f, -0.6f}));
}

TEST(OrthonormaliseTest, AColumnThatTheOthersHoldVanishes) {
  std::vector<float> p = RandomColumns(50, 3);
  for (size_t i = 0; i < 50; ++i) p[100 + i] = p[i] - 2 * p[50 + i];
  Orthonormalise(p.data(), 50, 3);
  EXPECT_THAT(std::vector<float>(p.begin() + 100, p.end()), Each(0.0f));
  ExpectOrthonormal(p, 50, 2);
}

TEST(OrthonormaliseTest, ZerosStayZeros) {
  std::vector<float> p(20);
  Orthonormalise(p.data(), 10, 2);
  EXPECT_THAT(p, Each(0.0f));
}

TEST(OrthonormaliseTest, TinyAndLargeColumnsKeepTheirDirections) {
  std::vector<float> p = {1e-40f, 0, 0, 3e38f};
  Orthonormalise(p.data(), 2, 2);
  EXPECT_THAT(p, ::testing::ElementsAre(1, 0, 0, 1));
}

}  // namespace
}  // namespace thinwire
