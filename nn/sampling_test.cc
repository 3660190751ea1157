#include "nn/sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// Logits of the probabilities 0.1, 0.4, 0.2, 0.3.
const std::vector<float> kLogits = {std::log(0.1f), std::log(0.4f), std::log(0.2f), std::log(0.3f)};

// Returns how many of 1000 evenly spread draws give each token.
std::map<int32_t, int> Draws(const SamplingSpec& spec) {
  std::map<int32_t, int> draws;
  for (int i = 0; i < 1000; ++i) ++draws[SampleToken(kLogits, spec, (i + 0.5) / 1000)];
  return draws;
}

TEST(SamplingTest, DrawsByProbability) {
  EXPECT_THAT(Draws({}), ElementsAre(Pair(0, 100), Pair(1, 400), Pair(2, 200), Pair(3, 300)));
}

TEST(SamplingTest, ATemperatureFlattensOrSharpens) {
  // With temperature 0.5 probabilities are squared: 0.01, 0.16, 0.04 and 0.09, of 0.3 in total.
  EXPECT_THAT(Draws({0.5}), ElementsAre(Pair(0, 33), Pair(1, 534), Pair(2, 133), Pair(3, 300)));
  EXPECT_THAT(Draws({0}), ElementsAre(Pair(1, 1000)));
  EXPECT_THAT(Draws({1e-9}), ElementsAre(Pair(1, 1000)));
}

TEST(SamplingTest, TopKKeepsTheMostProbable) {
  EXPECT_THAT(Draws({1, 1}), ElementsAre(Pair(1, 1000)));
  EXPECT_THAT(Draws({1, 2}), ElementsAre(Pair(1, 571), Pair(3, 429)));
  EXPECT_EQ(Draws({1, 4}), Draws({1, 100}));
}

TEST(SamplingTest, TopPKeepsTheFewestWithThatShare) {
  EXPECT_THAT(Draws({1, 0, 0.1}), ElementsAre(Pair(1, 1000)));
  EXPECT_THAT(Draws({1, 0, 0.6}), ElementsAre(Pair(1, 571), Pair(3, 429)));
  EXPECT_THAT(Draws({1, 0, 0.8}), ElementsAre(Pair(1, 444), Pair(2, 222), Pair(3, 334)));
  // Two tokens are left, and one has 57 %.
  EXPECT_THAT(Draws({1, 2, 0.5}), ElementsAre(Pair(1, 1000)));
}

TEST(SamplingTest, OfEqualLogitsTheFirstIsMoreProbable) {
  const std::vector<float> equal(5, 2.0f);
  EXPECT_EQ(SampleToken(equal, {0}, 0.9), 0);
  EXPECT_EQ(SampleToken(equal, {1, 2}, 0.4), 0);
  EXPECT_EQ(SampleToken(equal, {1, 2}, 0.6), 1);
}

TEST(SamplingTest, RefusesWhatIsNoDistribution) {
  const auto error = [](const SamplingSpec& spec) {
    return std::string(CheckSampling(spec).message());
  };
  EXPECT_THAT(error({-1}), HasSubstr("temperature: -1, want"));
  EXPECT_THAT(error({std::nan("")}), HasSubstr("temperature: nan"));
  EXPECT_THAT(error({1, -1}), HasSubstr("top_k: -1, want at least 0"));
  EXPECT_THAT(error({1, 0, 0}), HasSubstr("top_p: 0, want a number in (0, 1]"));
  EXPECT_THAT(error({1, 0, 1.5}), HasSubstr("top_p: 1.5"));
  EXPECT_TRUE(CheckSampling({}).ok());
}

}  // namespace
}  // namespace thinwire
