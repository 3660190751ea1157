#include "compress/rated.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compress/round_trip_testing.h"
#include "compress/spec_text.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kKey = 5;

CodecSpec Parsed(const std::string& text) { return *ParseCodec(text); }

// Numbers whose logarithms are normal, of either sign: few are large.
std::vector<float> HeavyTailed(size_t n) {
  std::vector<float> values = RandomValues(n, 3);
  for (float& value : values) value = std::copysign(std::exp(4 * std::fabs(value)) - 1, value);
  return values;
}

double BitsOf(const CodecSpec& spec, const Tensor& x) {
  return 8.0 * static_cast<double>(EncodeToBytes(spec, x, kKey)->size()) /
         static_cast<double>(x.elements());
}

class RatedTest : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Each, RatedTest,
                         ::testing::Values("", ", rounding=dead_zone", ", rounding=stochastic",
                                           ", rounding=dither", ", scope=token", ", scope=sample",
                                           ", lossless=zstd"));

TEST_P(RatedTest, AMessageTakesItsBits) {
  const Shape shape = {8, 16, 16, 64};
  const size_t n = shape.elements();
  const Tensor tensors[] = {TensorOf(shape, RandomValues(n, 1)),
                            TensorOf(shape, RandomValues(n, 1, /*relu=*/true)),
                            TensorOf(shape, HeavyTailed(n))};
  for (const double rate : {0.5, 1.0, 1.5, 3.0, 5.0}) {
    const CodecSpec spec = Parsed(absl::StrCat("ecsq(rate=", rate, GetParam(), ")"));
    for (const Tensor& x : tensors) {
      EXPECT_NEAR(BitsOf(spec, x) / rate, 1, kRateTolerance + 1e-9) << spec.ToString();
    }
  }
}

TEST_P(RatedTest, IsWhatTheStepThatItChoseDecodesTo) {
  const Shape shape = {4, 32, 64};
  const Tensor x = TensorOf(shape, HeavyTailed(shape.elements()));
  const CodecSpec spec = Parsed(absl::StrCat("ecsq(rate=2", GetParam(), ")"));
  const auto payload = *EncodeToBytes(spec, x, kKey);
  EXPECT_EQ(*EncodeToBytes(spec, x, kKey), payload);
  const CodecSpec by_step = Parsed(absl::StrCat("ecsq(step=0.0009765625", GetParam(), ")"));
  EXPECT_EQ(FloatsOf(*DecodeFromBytes(spec, payload, shape)),
            FloatsOf(*DecodeFromBytes(by_step, payload, shape)));
}

TEST(RatedTest, TakesTheNearestWhereNoStepGivesTheRate) {
  const CodecSpec spec = Parsed("ecsq(rate=2)");
  const Tensor zeros = TensorOf(std::vector<float>(100000));
  EXPECT_LT(BitsOf(spec, zeros), 0.1);
  EXPECT_EQ(*RoundTrip(spec, zeros, kKey), std::vector<float>(100000));
  const Tensor few = TensorOf({1.0f, 2.0f, 3.0f});  // a header is more
  EXPECT_GT(BitsOf(spec, few), 2);
  EXPECT_EQ(RoundTrip(spec, few, kKey)->size(), 3u);
  EXPECT_TRUE(RoundTrip(spec, TensorOf(Shape{0, 3}, {}), kKey)->empty());
}

TEST(RatedTest, RefusesWhatHasNoStep) {
  const Tensor x = TensorOf({1.0f, INFINITY});
  EXPECT_EQ(EncodeToBytes(Parsed("ecsq(rate=2)"), x).status().code(),
            absl::StatusCode::kOutOfRange);
}

TEST(RatedTest, RatesThatCannotBeAreRefused) {
  const auto refusal = [](const std::string& text) {
    return std::string(ParseCodec(text).status().message());
  };
  EXPECT_THAT(refusal("ecsq(rate=-1)"),
              HasSubstr("rate is -1, want 0.03125 to 16 bits per element"));
  EXPECT_THAT(refusal("ecsq(rate=17)"), HasSubstr("rate is 17"));
  EXPECT_THAT(refusal("ecsq(rate=nan)"), HasSubstr("rate is nan"));
  EXPECT_THAT(refusal("ecsq(rate=2, lossless=none)"),
              HasSubstr("rate is 2 with lossless none, want entropy or zstd"));
  EXPECT_THAT(refusal("ecsq(rate=2, step=1)"), HasSubstr("unknown parameter \"step\""));
}

TEST(RatedTest, NoPositionIsCodedByItself) {
  EXPECT_TRUE(IsCausal(Parsed("ecsq(step=2, rounding=dither, scope=token)"), 64));
  EXPECT_FALSE(IsCausal(Parsed("ecsq(rate=2, rounding=dither, scope=token)"), 64));
}

}  // namespace
}  // namespace thinwire
