#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "compress/cuda/quotient_test_kernels.h"

namespace thinwire {
namespace {

using Floats = std::vector<float>;

CudaDevice* OwnDevice() {
  static CudaDevice* device = nullptr;
  if (device == nullptr) {
    EXPECT_TRUE(NewCudaDevice(/*index=*/0, &device).ok());
  }
  return device;
}

float OfBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Mask of the bits of a float that a bf16 has.
constexpr uint32_t kBFloat = 0xFFFF0000;

void ExpectQuotients(const Floats& x, const Floats& d, int corrections) {
  Floats got;
  ASSERT_TRUE(Quotients(OwnDevice(), x, d, corrections, /*is_ordinary=*/false, &got).ok());
  size_t wrong = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const float want = x[i] / d[i];
    if (got[i] == want || (std::isnan(got[i]) && std::isnan(want))) continue;
    if (++wrong <= 5) ADD_FAILURE() << x[i] << " / " << d[i] << ": " << got[i] << ", not " << want;
  }
  EXPECT_EQ(wrong, 0u);
}

// Tries numbers of any bits, except a divisor's sign, and numbers from 1 to 2.
void ExpectRandomQuotients(uint32_t mask_of_divisor, int corrections) {
  std::mt19937 random(corrections);
  for (const bool any_bits : {true, false}) {
    Floats x, d;
    for (int i = 0; i < 1 << 20; ++i) {
      const auto draw = [&] { return any_bits ? random() : 0x3F800000 | (random() & 0x007FFFFF); };
      x.push_back(OfBits(draw() ^ (random() & 0x80000000)));
      d.push_back(OfBits(draw() & mask_of_divisor & 0x7FFFFFFF));
    }
    ExpectQuotients(x, d, corrections);
  }
}

// Tries divisors and quotients about the least that are not left to a true division.
void ExpectSmallQuotients(uint32_t mask_of_divisor, int corrections) {
  std::mt19937 random(corrections);
  Floats x, d;
  for (int i = 0; i < 1 << 20; ++i) {
    const auto draw = [&] {
      return OfBits((0x3F800000 | (random() & 0x007FFFFF)) - ((49 + random() % 13) << 23));
    };
    const float divisor = draw();
    uint32_t bits;
    std::memcpy(&bits, &divisor, sizeof(bits));
    d.push_back(OfBits(bits & mask_of_divisor));
    x.push_back(draw() * d.back());
  }
  ExpectQuotients(x, d, corrections);
}

TEST(QuotientTest, OfSmallNumbers) {
  ExpectSmallQuotients(0xFFFFFFFF, 2);
  ExpectSmallQuotients(kBFloat, 1);
}

TEST(QuotientTest, IsWhatADivisionGives) { ExpectRandomQuotients(0xFFFFFFFF, 2); }

TEST(QuotientTest, ByABFloatOneCorrectionSuffices) { ExpectRandomQuotients(kBFloat, 1); }

void ExpectOrdinaryQuotients(uint32_t mask_of_divisor, int corrections) {
  std::mt19937 random(7);
  Floats x, d;
  for (int i = 0; i < 1 << 20; ++i) {
    const float divisor = OfBits(random() & mask_of_divisor & 0x7FFFFFFF);
    if (divisor == 0 || !std::isfinite(divisor)) continue;
    const float near = OfBits(random()) * divisor;
    x.push_back(i % 2 == 0 && std::isfinite(near) ? near : OfBits(random() & 0xFF7FFFFF));
    d.push_back(divisor);
  }
  Floats got;
  ASSERT_TRUE(Quotients(OwnDevice(), x, d, corrections, /*is_ordinary=*/true, &got).ok());
  size_t wrong = 0, ordinary = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const float want = x[i] / d[i], size = std::fabs(want);
    const bool is_ordinary = size >= 0x1p-50f && size <= 0x1p60f;
    ordinary += is_ordinary;
    const bool is_right = is_ordinary       ? got[i] == want
                          : size < 0x1p-50f ? std::fabs(got[i]) <= 0x1p-50f
                                            : !(std::fabs(got[i]) < 0x1p60f);
    if (!is_right && ++wrong <= 5) ADD_FAILURE() << x[i] << " / " << d[i] << ": " << got[i];
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT_GE(ordinary, x.size() / 4);
}

TEST(QuotientTest, ThoseOfOrdinarySizeAreExactAndOthersAreAsSmallOrLarge) {
  ExpectOrdinaryQuotients(kBFloat, 1);
  ExpectOrdinaryQuotients(0xFFFFFFFF, 2);
  Floats got;
  ASSERT_TRUE(
      Quotients(OwnDevice(), {1, -1e30f, 0}, {0, 0, 0}, 1, /*is_ordinary=*/true, &got).ok());
  for (const float quotient : got) EXPECT_EQ(quotient, 0);
}

// Tests divisors whose quotients lie as near as possible to the middle between two numbers.
TEST(QuotientTest, OfNeighboursOfPowersOfTwo) {
  Floats x, d;
  for (uint32_t a = 0; a < 256; ++a) {
    for (uint32_t b = 0; b < 256; ++b) {
      x.push_back(OfBits(0x3F800000 + a));
      d.push_back(OfBits(0x3FFFFFFF - b));
      x.push_back(OfBits(0x3FFFFFFF - a));
      d.push_back(OfBits(0x3FFFFFFF - b));
      x.push_back(OfBits(0x3FFFFFFF - a));
      d.push_back(OfBits(0x3F800000 + b));
    }
  }
  ExpectQuotients(x, d, 2);
}

TEST(QuotientTest, OfNumbersOfNoOrdinarySize) {
  const float greatest = std::numeric_limits<float>::max(), infinity = INFINITY;
  const Floats numbers = {0, 1e-45f, 1e-38f, 1, 3, greatest, infinity, NAN};
  Floats x, d;
  for (const float a : numbers) {
    for (const float b : numbers) {
      for (const float sign : {1.0f, -1.0f}) {
        x.push_back(sign * a);
        d.push_back(b);
      }
    }
  }
  for (const int corrections : {1, 2}) ExpectQuotients(x, d, corrections);
}

}  // namespace
}  // namespace thinwire
