#include "nn/moment_codes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "base/random.h"

namespace thinwire {
namespace {

// Codes and scales of some values.
class Coded {
 public:
  Coded(const MomentCode& code, const std::vector<float>& values)
      : code_(&code),
        n_(static_cast<int64_t>(values.size())),
        words_(static_cast<size_t>(MomentWords(n_))) {
    QuantizeMoments(code, values.data(), n_, CodedMeanIn(words_.data(), n_));
  }
  float scale(int64_t block) { return words_[static_cast<size_t>(block)]; }
  uint8_t code(int64_t i) { return CodedMeanIn(words_.data(), n_).codes[i]; }
  std::vector<float> Expanded() {
    std::vector<float> values(static_cast<size_t>(n_));
    ExpandMoments(*code_, CodedMeanIn(words_.data(), n_), n_, values.data());
    return values;
  }
  bool HasBitsOf(const Coded& other) const {
    return std::memcmp(words_.data(), other.words_.data(), words_.size() * sizeof(float)) == 0;
  }

 private:
  const MomentCode* code_;
  int64_t n_;
  std::vector<float> words_;
};

// Numbers are those of tests/parity/moment_codes.py.
TEST(MomentCodesTest, AreBitsandbytesTablesButForRounding) {
  const float with_sign[] = {-0x1.fc6666p-1, -0x1.820000p-1, -0x1.079998p-1, -0x1.1a6668p-2,
                             -0x1.65c290p-4, -0x1.43d70ap-5, -0x1.9fbe76p-8, -0x1.47ae16p-13,
                             0x1.19ce0ap-12, 0x1.c49ba6p-8,  0x1.5ae146p-5,  0x1.7147aep-4,
                             0x1.28ccccp-2,  0x1.0eccccp-1,  0x1.893334p-1,  0x1p0};
  const float without[] = {0,
                           0x1.f8a092p-13,
                           0x1.041894p-9,
                           0x1.bb645cp-8,
                           0x1.228f5ep-6,
                           0x1.551eb8p-5,
                           0x1.0c7ae2p-4,
                           0x1.6e6666p-4,
                           0x1.559998p-3,
                           0x1.253334p-2,
                           0x1.9f9998p-2,
                           0x1.0d0000p-1,
                           0x1.4a3334p-1,
                           0x1.876668p-1,
                           0x1.c49998p-1,
                           0x1p0};
  for (int i = 0; i < 16; ++i) {
    EXPECT_NEAR(kSignedMoments.numbers[17 * i], with_sign[i], 3e-7 * std::abs(with_sign[i])) << i;
    EXPECT_NEAR(kUnsignedMoments.numbers[17 * i], without[i], 3e-7 * without[i]) << i;
  }
  for (const MomentCode& code : {kSignedMoments, kUnsignedMoments}) {
    EXPECT_TRUE(std::is_sorted(std::begin(code.numbers), std::end(code.numbers)));
    EXPECT_TRUE(std::is_sorted(std::begin(code.middles), std::end(code.middles)));
  }
}

TEST(MomentCodesTest, AValueTakesTheNearestNumber) {
  for (const MomentCode& code : {kSignedMoments, kUnsignedMoments}) {
    for (int i = 0; i <= 2000; ++i) {
      const float value = static_cast<float>(i) / (code.numbers[0] < 0 ? 1000 : 2000) +
                          (code.numbers[0] < 0 ? -1 : 0);
      const float got = code.numbers[NearestMoment(code.middles, value)];
      for (const float number : code.numbers) {
        EXPECT_LE(std::abs(got - value), std::abs(number - value) + 1e-7f) << value;
      }
    }
  }
}

TEST(MomentCodesTest, ThePositiveNeighbourOfTwoAlikeIsTheScaleAndSignsArePreserved) {
  Coded both(kSignedMoments, {0.25f, -2, 2, -1}), negative(kSignedMoments, {0.25f, -2, 1});
  EXPECT_EQ(both.scale(0), 2);
  EXPECT_EQ(both.code(2), 255);
  EXPECT_EQ(both.code(1), 0);
  EXPECT_EQ(negative.scale(0), -2);
  const std::vector<float> expanded = negative.Expanded();
  EXPECT_EQ(expanded[1], -2);
  EXPECT_NEAR(expanded[0], 0.25f, 0.01);
  EXPECT_NEAR(expanded[2], 1, 0.02);
}

TEST(MomentCodesTest, SquaresThatAreNotZeroDoNotBecomeZero) {
  Coded coded(kUnsignedMoments, {1, 1e-12f, 0});
  const std::vector<float> expanded = coded.Expanded();
  EXPECT_EQ(expanded[1], kUnsignedMoments.numbers[1]);
  EXPECT_EQ(expanded[2], 0);
}

// Checkpoints have what the codes stand for.
TEST(MomentCodesTest, WhatWasExpandedHasTheSameCodesAgain) {
  RandomStream random(RandomKey(1, "test"));
  for (const bool is_signed : {true, false}) {
    const MomentCode& code = is_signed ? kSignedMoments : kUnsignedMoments;
    for (int exponent = -110; exponent <= 127; exponent += 3) {
      std::vector<float> values(300);
      for (float& value : values) {
        value = std::ldexp(2 * random.NextFloat() - 1,
                           exponent - static_cast<int>(25 * random.NextFloat()));
        if (!is_signed) value = std::abs(value);
      }
      Coded coded(code, values);
      EXPECT_TRUE(Coded(code, coded.Expanded()).HasBitsOf(coded)) << exponent;
    }
  }
}

TEST(MomentCodesTest, ABlockOfTinyValuesIsZeroAndOneWithoutANumberIsNone) {
  std::vector<float> values(600, 1);
  values[0] = std::numeric_limits<float>::infinity();
  std::fill(values.begin() + 256, values.begin() + 512, 1e-31f);
  values[300] = -1e-31f;
  Coded coded(kSignedMoments, values);
  EXPECT_TRUE(std::isnan(coded.scale(0)));
  EXPECT_EQ(coded.scale(1), 0);
  EXPECT_EQ(coded.scale(2), 1);
  const std::vector<float> expanded = coded.Expanded();
  EXPECT_TRUE(std::isnan(expanded[7]));
  EXPECT_EQ(expanded[300], 0);
  EXPECT_EQ(expanded[599], 1);
  EXPECT_TRUE(Coded(kSignedMoments, expanded).HasBitsOf(coded));
}

TEST(MomentCodesTest, MemoryOfZerosIsAMeanOfZeros) {
  for (const MomentCode& code : {kSignedMoments, kUnsignedMoments}) {
    std::vector<float> words(static_cast<size_t>(MomentWords(257)));
    std::vector<float> values(257, 1);
    ExpandMoments(code, CodedMeanIn(words.data(), 257), 257, values.data());
    for (const float value : values) EXPECT_EQ(value, 0);
  }
  EXPECT_EQ(MomentWords(257), 2 + 65);
}

}  // namespace
}  // namespace thinwire
