#include "models/rotary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>

namespace thinwire {
namespace {

using ::testing::HasSubstr;

RopeScaling Llama3(double factor, int64_t original) {
  RopeScaling scaling;
  scaling.kind = RopeScalingKind::kLlama3;
  scaling.factor = factor;
  scaling.original = original;
  return scaling;
}

TEST(RotaryFrequenciesTest, AreAGeometricSeries) {
  const std::vector<double> frequencies = RotaryFrequencies(10000, {}, 4);
  ASSERT_EQ(frequencies.size(), 4u);
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(frequencies[i], std::pow(10, -i), 1e-15);
}

// Llama 3.2 keeps planes 0 to 14, goes over in 15 to 17, and divides 18 to 31.
TEST(RotaryFrequenciesTest, OfLlama32AreThePublishedOnes) {
  const std::vector<double> plain = RotaryFrequencies(5e5, {}, 32);
  const std::vector<double> scaled = RotaryFrequencies(5e5, Llama3(32, 8192), 32);
  const std::pair<int, double> known[] = {{14, 3.211445994752591e-3},
                                          {15, 1.290547928209264e-3},
                                          {16, 4.295567965693682e-4},
                                          {31, 9.41830672543491e-8}};
  for (const auto& [plane, frequency] : known) {
    EXPECT_NEAR(scaled[plane], frequency, 1e-10 * frequency) << plane;
  }
  for (int i = 0; i < 32; ++i) {
    const double divided = plain[i] / 32;
    const bool keeps = i <= 14, divides = i >= 18;
    EXPECT_EQ(scaled[i] == plain[i], keeps) << i;
    EXPECT_EQ(scaled[i] == divided, divides) << i;
    EXPECT_TRUE(divided <= scaled[i] && scaled[i] <= plain[i]) << i;
  }
}

TEST(RotaryFrequenciesTest, LinearScalingDividesAll) {
  RopeScaling scaling;
  scaling.kind = RopeScalingKind::kLinear;
  scaling.factor = 4;
  const std::vector<double> plain = RotaryFrequencies(100, {}, 8);
  const std::vector<double> scaled = RotaryFrequencies(100, scaling, 8);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(scaled[i], plain[i] / 4);
}

std::string Refusal(const RopeScaling& scaling) {
  return std::string(CheckScaling(scaling).message());
}

TEST(CheckScalingTest, NamesWhatIsWrong) {
  EXPECT_EQ(Refusal({}), "");
  EXPECT_EQ(Refusal(Llama3(8, 16)), "");
  EXPECT_EQ(Refusal(Llama3(0.5, 16)), "rope_scaling.factor is 0.5, want 1 to 1e+06");
  EXPECT_THAT(Refusal(Llama3(std::numeric_limits<double>::quiet_NaN(), 16)),
              HasSubstr("rope_scaling.factor is nan"));
  EXPECT_THAT(Refusal(Llama3(8, 0)), HasSubstr("rope_scaling.original is 0, want at least 1"));
  RopeScaling scaling = Llama3(8, 16);
  scaling.high = 1;
  EXPECT_THAT(Refusal(scaling), HasSubstr("rope_scaling.high is 1, want more than low, 1"));
  scaling.low = 0;
  EXPECT_THAT(Refusal(scaling), HasSubstr("rope_scaling.low is 0, want more than 0"));
}

}  // namespace
}  // namespace thinwire
