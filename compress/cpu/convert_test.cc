#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "compress/cpu/loops.h"
#include "compress/half.h"

namespace thinwire {
namespace {

// Returns every half, at any alignment, as in a payload.
std::vector<uint8_t> EveryHalf() {
  std::vector<uint8_t> bytes(2 * 65536 + 1);
  for (uint32_t i = 0; i < 65536; ++i) {
    bytes[2 * i + 1] = i & 0xFF;
    bytes[2 * i + 2] = i >> 8;
  }
  return bytes;
}

double ValueOfHalf(uint32_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 31) return fraction ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(HalfTest, EveryCodePointWidensAndComesBack) {
  const std::vector<uint8_t> halves = EveryHalf();
  std::vector<float> wide(65536);
  WidenHalf(halves.data() + 1, wide.size(), 1, wide.data());
  std::vector<uint8_t> back(halves.size());
  NarrowToHalf(wide.data(), wide.size(), 1, back.data() + 1);
  for (uint32_t i = 0; i < 65536; ++i) {
    const double value = ValueOfHalf(i);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(wide[i]));
      continue;
    }
    EXPECT_EQ(wide[i], value) << i;
    EXPECT_EQ(std::memcmp(&back[2 * i + 1], &halves[2 * i + 1], 2), 0) << i;
    if (i < 0x7C00) {
      EXPECT_EQ(FromHalf(i), value);
      EXPECT_EQ(ToHalf(wide[i]), i);
    }
  }
}

// Tests values between each half and the next: below, at and above the middle.
TEST(HalfTest, RoundsToTheNearestAndTiesToEven) {
  for (uint32_t i = 0; i < 0x7BFF; ++i) {
    const float low = FromHalf(i), high = FromHalf(i + 1), middle = (low + high) / 2;
    const float x[] = {std::nextafter(middle, low), middle, std::nextafter(middle, high)};
    const uint32_t wanted[] = {i, i + (i & 1), i + 1};
    uint8_t narrow[6];
    NarrowToHalf(x, 3, 1, narrow);
    for (int j = 0; j < 3; ++j) {
      ASSERT_EQ(narrow[2 * j] + 256u * narrow[2 * j + 1], wanted[j]) << x[j];
      ASSERT_EQ(ToHalf(x[j]), wanted[j]) << x[j];
    }
  }
}

TEST(HalfTest, OverflowsToInfinity) {
  const float x[] = {65519.996f, 65520.0f, -1e30f};
  uint8_t narrow[6];
  NarrowToHalf(x, 3, 1, narrow);
  EXPECT_EQ(narrow[1], 0x7B);
  EXPECT_EQ(narrow[3], 0x7C);
  EXPECT_EQ(narrow[5], 0xFC);
}

TEST(BFloatTest, EveryCodePointWidensAndComesBack) {
  const std::vector<uint8_t> bfloats = EveryHalf();
  std::vector<float> wide(65536);
  WidenBFloat(bfloats.data() + 1, wide.size(), wide.data());
  std::vector<uint8_t> back(bfloats.size());
  NarrowToBFloat(wide.data(), wide.size(), back.data() + 1);
  for (uint32_t i = 0; i < 65536; ++i) {
    EXPECT_EQ(BitsOf(wide[i]), i << 16);
    const uint16_t narrow = ToBFloat(wide[i]);
    EXPECT_EQ(std::memcmp(&back[2 * i + 1], &narrow, 2), 0) << i;
    EXPECT_EQ(narrow, std::isnan(wide[i]) ? i | 0x40 : i);
  }
}

TEST(PreScaleTest, BringsTheLargestJustBelowTheEndOfHalfs) {
  for (float largest : {1.0f, 65504.0f, 65505.0f, 1e-20f, 3.4e38f, 0.1f}) {
    const int e = PreScaleFor(largest);
    EXPECT_LE(std::ldexp(largest, e), kMaxHalf);
    EXPECT_GT(std::ldexp(largest, e + 1), kMaxHalf);
  }
  EXPECT_EQ(PreScaleFor(0), 0);
  EXPECT_EQ(PreScaleFor(1e-45f), kMostPreScale);
  EXPECT_EQ(PreScaleFor(3.4028235e38f), kLeastPreScale);
}

}  // namespace
}  // namespace thinwire
