#include "nn/weight_codes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "base/random.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr NF4Levels kLevels;

std::vector<float> RandomWeights(int64_t n, float deviation = 1) {
  RandomStream random(RandomKey(3, "weights"));
  std::vector<float> values(n);
  for (float& value : values) {
    value = deviation * (random.NextFloat() + random.NextFloat() + random.NextFloat() - 1.5f);
  }
  return values;
}

std::vector<float> Back(WeightFormat format, int64_t columns, const std::vector<float>& values) {
  std::vector<float> back(values.size());
  Expand(format, columns, *Quantized(format, columns, values), absl::MakeSpan(back));
  return back;
}

// Values of tests/parity/nf4_codes.py.
std::vector<float> FixtureValues() {
  std::vector<float> middles, values;
  for (int i = 0; i < 15; ++i) middles.push_back((kLevels.of[i] + kLevels.of[i + 1]) / 2);
  values = middles;
  for (const float middle : middles) values.push_back(std::nextafter(middle, 2.0f));
  for (const float middle : middles) values.push_back(std::nextafter(middle, -2.0f));
  values.push_back(1);
  values.resize(2 * kNF4Block);  // with a block of zeros
  for (int64_t i = 0; i < kNF4Block; ++i) values.push_back(2e-38f * values[i]);
  for (uint32_t i = 0; i < 5 * kNF4Block; ++i) {
    values.push_back(0.37f * (static_cast<float>(i * 2654435761u) / 2147483648.0f - 1));
  }
  return values;
}

// Codes and scales that bitsandbytes 0.50.2 gives these values on a CPU.
constexpr char kFixtureCodes[] =
    "0123456789abcde123456789abcdef0123456789abcdef777777777777777777"
    "7777777777777777777777777777777777777777777777777777777777777777"
    "0123466789abcde123456678aacdde0123466789abcdef777777777777777777"
    "0a2e61c3f91d50b3e71c4f92e60b3e81d50a2e71c4f91d50b3e71d4fa2e61c3f"
    "81d50a2e71c4f92e60b3e81d50a2e61c3f91d50b3e71c4fa2e60b3f81d50a2e7"
    "1c4f92d60b3e81d4fa2e61c3f81d50b2e71c4f92e60b3e81d50a2e71c4f91d50"
    "b3e71d4fa2e61c3f81d50a2e71c4f92e60b3e81d50a2e61c3f91d50b3e71c4f9"
    "2e60b3e81d50a2e71c4f91d50b3e81d4fa2e61c3f81d50b2e71c4f92e60b3e81";

TEST(NF4Test, CodesAndScalesAreThoseOfBitsandbytes) {
  const WeightCodes codes = *Quantized(WeightFormat::kNF4, 64, FixtureValues());
  EXPECT_EQ(absl::BytesToHexString(
                {reinterpret_cast<const char*>(codes.codes.data()), codes.codes.size()}),
            kFixtureCodes);
  EXPECT_THAT(codes.scales,
              ElementsAre(1.0f, 0.0f, 0x1.b38fbap-126f, 0x1.7ae148p-2f, 0x1.771288p-2f,
                          0x1.7886c8p-2f, 0x1.796d0ap-2f, 0x1.762c46p-2f));
}

TEST(NF4Test, OfAByteTheUpperBitsAreTheFirstElement) {
  std::vector<float> values(64);
  values[0] = -1;
  values[1] = 1;
  EXPECT_EQ(Quantized(WeightFormat::kNF4, 64, values)->codes[0], 0x0F);
  EXPECT_EQ(Back(WeightFormat::kNF4, 64, values), values);
}

TEST(NF4Test, LevelsComeBackAsTheyAre) {
  std::vector<float> values;
  for (int i = 0; i < 64; ++i) values.push_back(kLevels.of[i % 16] * 0.03f);
  EXPECT_EQ(Back(WeightFormat::kNF4, 64, values), values);
}

TEST(Int8Test, IsWithinHalfAStepOfEachRow) {
  const std::vector<float> values = RandomWeights(3 * 50);
  const std::vector<float> back = Back(WeightFormat::kInt8, 50, values);
  for (size_t row = 0; row < 3; ++row) {
    float greatest = 0;
    for (size_t i = 50 * row; i < 50 * row + 50; ++i) {
      greatest = std::max(greatest, std::abs(values[i]));
    }
    for (size_t i = 50 * row; i < 50 * row + 50; ++i) {
      EXPECT_LE(std::abs(back[i] - values[i]), greatest / 127 * 0.501f) << i;
    }
  }
}

TEST(Int8Test, ExtremesAreCodes) {
  const std::vector<float> values = {-2, 0, 1, 2};
  const WeightCodes codes = *Quantized(WeightFormat::kInt8, 4, values);
  EXPECT_THAT(codes.codes, ElementsAre(static_cast<uint8_t>(-127), 0, 64, 127));
  EXPECT_EQ(codes.scales.size(), 1u);
}

TEST(BF16Test, RoundsToNearestTiesToEven) {
  const std::vector<float> values = {1, 1.00390625f, 1.01171875f, -1.0039065f};
  EXPECT_THAT(Back(WeightFormat::kBF16, 4, values), ElementsAre(1, 1, 1.015625f, -1.0078125f));
}

// A run goes on from a file of what the codes stand for.
TEST(WeightCodesTest, WhatWasReadBackHasTheSameCodes) {
  constexpr float kMost = std::numeric_limits<float>::max();
  std::vector<float> values = RandomWeights(128 * 64);
  for (size_t row = 0; row < 128;
       ++row) {  // of all sizes, down to the least and up to the greatest
    for (size_t i = 0; i < 64; ++i) {
      values[64 * row + i] =
          static_cast<float>(values[64 * row + i] / 1.5 * std::pow(10.0, 0.63 * row - 42.0));
    }
  }
  values[127 * 64] = kMost;
  for (const WeightFormat format : {WeightFormat::kInt8, WeightFormat::kNF4}) {
    const std::vector<float> once = Back(format, 64, values);
    EXPECT_EQ(Back(format, 64, once), once);
    EXPECT_EQ(Quantized(format, 64, once)->codes, Quantized(format, 64, values)->codes);
  }
  const std::vector<float> usual = RandomWeights(64 * 64, 0.02f);
  EXPECT_EQ(Back(WeightFormat::kBF16, 64, Back(WeightFormat::kBF16, 64, usual)),
            Back(WeightFormat::kBF16, 64, usual));
}

TEST(WeightCodesTest, RefusesNumbersThatAreNotFinite) {
  for (const float bad : {std::nanf(""), HUGE_VALF}) {
    std::vector<float> values(64);
    values[7] = bad;
    for (const WeightFormat format :
         {WeightFormat::kBF16, WeightFormat::kInt8, WeightFormat::kNF4}) {
      const absl::Status status = Quantized(format, 64, values).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()), HasSubstr("element 7 is "));
    }
  }
}

}  // namespace
}  // namespace thinwire
