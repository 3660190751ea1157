#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "compress/cuda/sum_in_order_test_kernels.h"

namespace thinwire {
namespace {

CudaDevice* OwnDevice() {
  static CudaDevice* device = nullptr;
  if (device == nullptr) {
    EXPECT_TRUE(NewCudaDevice(/*index=*/0, &device).ok());
  }
  return device;
}

double OneAfterTheOther(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

uint64_t BitsOfDouble(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

void ExpectSameBits(const std::vector<double>& values) {
  std::vector<double> sums;
  const Error error = SumInOrderByAll(OwnDevice(), values, &sums);
  ASSERT_TRUE(error.ok()) << error.message;
  const double want = OneAfterTheOther(values);
  for (const double sum : sums) {
    ASSERT_EQ(BitsOfDouble(sum), BitsOfDouble(want)) << sum << ", want " << want;
  }
}

// Returns values[i] = of(a random number).
std::vector<double> Values(size_t n, uint64_t seed, const std::function<double(uint64_t)>& of) {
  std::mt19937_64 random(seed);
  std::vector<double> values(n);
  for (double& value : values) value = of(random());
  return values;
}

TEST(SumInOrderTest, OfAnyNumberOfSquares) {
  for (const size_t n : {0, 1, 2, 8, 255, 511, 512, 513, 8703, 8704, 8705, 30000}) {
    SCOPED_TRACE(n);
    ExpectSameBits(Values(n, n, [](uint64_t random) {
      const auto x = static_cast<double>(static_cast<float>(random >> 11));
      return x * x;
    }));
  }
}

// Tests sums between 2^52 and 2^53, whose ulp is 1: most additions lie halfway between two sums.
TEST(SumInOrderTest, TiesGoToTheEvenSum) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    auto values =
        Values(5000, seed, [](uint64_t random) { return static_cast<double>(random % 8) / 2; });
    values[0] = 0x1p52 + static_cast<double>(seed);
    ExpectSameBits(values);
    for (double& value : values) value *= 0x1p-300;
    ExpectSameBits(values);
  }
}

TEST(SumInOrderTest, ExponentsThatChangeOftenOrBarely) {
  std::vector<double> doubled = {1};
  while (doubled.size() < 500) doubled.push_back(doubled.back() * 2);
  ExpectSameBits(doubled);
  // Leads to the last sum of an exponent, and to the first of the next by rounding alone.
  for (const double last : {0.25, 0.5, 0.75, 1.0, 1.5}) {
    ExpectSameBits({0x1p53 - 2, 0.5, 0.5, last, last, last, 0.25, 3});
    ExpectSameBits({0x1p53 - 1, last, 1, 1, 3});
  }
}

TEST(SumInOrderTest, NumbersOfEverySize) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    ExpectSameBits(Values(3000, seed, [](uint64_t random) {
      const double mantissa = 1 + static_cast<double>(random >> 12) * 0x1p-52;
      return random % 16 == 0 ? 0 : std::ldexp(mantissa, static_cast<int>(random % 128) - 64);
    }));
  }
}

TEST(SumInOrderTest, ZerosFirstAndLast) {
  std::vector<double> values(9000, 0.0);
  ExpectSameBits(values);
  values[4500] = 3e-90;
  ExpectSameBits(values);
}

TEST(SumInOrderTest, WhatIsNotFiniteStaysSo) {
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> values(3000, 1.5), sums;
  values[1000] = infinity;
  ASSERT_TRUE(SumInOrderByAll(OwnDevice(), values, &sums).ok());
  EXPECT_EQ(sums[0], infinity);
  values[1000] = std::nan("");
  ASSERT_TRUE(SumInOrderByAll(OwnDevice(), values, &sums).ok());
  EXPECT_TRUE(std::isnan(sums[0]));
}

}  // namespace
}  // namespace thinwire
