#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compress/checks/distortion.h"
#include "compress/codecs/rates.h"
#include "compress/codecs/round_trip_testing.h"
#include "compress/codecs/stack.h"
#include "compress/spec_text.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kKey = 5;

CodecSpec Parsed(const std::string& text) { return *ParseCodec(text); }

// Returns numbers of either sign whose logarithms are normal: few are large.
std::vector<float> HeavyTailed(size_t n) {
  std::vector<float> values = RandomValues(n, 3);
  for (float& value : values) value = std::copysign(std::exp(4 * std::fabs(value)) - 1, value);
  return values;
}

double BitsOf(const CodecSpec& spec, const Tensor& x) {
  return 8.0 * static_cast<double>(EncodeToBytes(spec, x, kKey)->size()) /
         static_cast<double>(x.elements());
}

// Returns how far the bits of the best step are from the rate, among steps from 2^first to 2^last,
// with the given number of steps per octave.
double NearestOfGrid(CodecSpec spec, const Tensor& x, int first, int last, int of_an_octave) {
  const double rate = spec.rate;
  spec.rate = 0;
  double nearest = INFINITY;
  for (int i = first * of_an_octave; i <= last * of_an_octave; ++i) {
    spec.step = std::exp2(static_cast<double>(i) / of_an_octave);
    nearest = std::min(nearest, std::fabs(BitsOf(spec, x) - rate));
  }
  return nearest;
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
      const double off = std::fabs(BitsOf(spec, x) - rate);
      if (off <= kRateTolerance * rate) continue;
      EXPECT_EQ(spec.scope, Scope::kTensor) << "else its many steps differ by less than bf16's do";
      EXPECT_LE(off, NearestOfGrid(spec, x, -3, 3, 128)) << spec.ToString();
    }
  }
}

TEST_P(RatedTest, IsWhatTheStepThatItChoseDecodesTo) {
  const Shape shape = {4, 32, 64};
  const Tensor x = TensorOf(shape, HeavyTailed(shape.elements()));
  const CodecSpec spec = Parsed(absl::StrCat("ecsq(rate=2", GetParam(), ")"));
  const auto payload = *EncodeToBytes(spec, x, kKey);
  EXPECT_EQ(*EncodeToBytes(spec, x, kKey), payload);
  const CodecSpec by_step = Parsed(absl::StrCat("ecsq(step=0.00006103515625", GetParam(), ")"));
  EXPECT_EQ(FloatsOf(*DecodeFromBytes(spec, payload, shape)),
            FloatsOf(*DecodeFromBytes(by_step, payload, shape)));
}

// Tests normal numbers, a ReLU's, heavy tails, and numbers of two magnitudes, whose rate need not
// fall with the step.
std::vector<Tensor> SmallTensors(const Shape& shape) {
  const size_t n = shape.elements();
  std::vector<float> two_magnitudes = RandomValues(n, 4);
  for (float& value : two_magnitudes) value = std::fabs(value) < 0.7f ? std::copysign(1, value) : 9;
  return {TensorOf(shape, RandomValues(n, 1)), TensorOf(shape, RandomValues(n, 1, /*relu=*/true)),
          TensorOf(shape, HeavyTailed(n)), TensorOf(shape, two_magnitudes)};
}

TEST(RatedTest, WhatMissesItsRateComesAsNearAsAnyStep) {
  int missed = 0;
  for (const char* scope : {"", ", scope=token", ", scope=group, group=32"}) {
    for (const char* rounding : {"", ", rounding=dither"}) {
      for (const double rate : {0.5, 1.5, 12.0}) {
        const CodecSpec spec = Parsed(absl::StrCat("ecsq(rate=", rate, scope, rounding, ")"));
        for (const Tensor& x : SmallTensors({4, 4, 4, 16})) {
          const double off = std::fabs(BitsOf(spec, x) - rate);
          if (off <= kRateTolerance * rate) continue;
          ++missed;
          EXPECT_LE(off, NearestOfGrid(spec, x, -14, 10, 4)) << spec.ToString();
        }
      }
    }
  }
  EXPECT_GT(missed, 5);
}

// Tests a rate below what the steps of tokens alone take, more than a bit: codes must not pay for
// it by errors of hundreds where they need not.
TEST(RatedTest, ANearerStepIsTakenBeforeTheCoarsest) {
  const Shape shape = {64, 4, 16};
  const CodecSpec spec = Parsed("ecsq(rate=1.5, scope=token, rounding=dither)");
  const Tensor x = TensorOf(shape, RandomValues(shape.elements(), 1));
  EXPECT_NEAR(BitsOf(spec, x) / 1.5, 1, kRateTolerance);
  const Tensor y = TensorOf(shape, *RoundTrip(spec, x, kKey));
  EXPECT_LT(MeasureDistortion(x, y, CpuCodecKernels())->relative_error, 20);
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

// Tests the average of two coded tensors, of whose rate no step comes within 1 %: the last step
// tried is not the nearest, which the payload has.
TEST(RatedTest, AnAverageOfCodedTensorsIsSentWithTheNearestStepTried) {
  const size_t n = 1 << 16;
  std::vector<float> sum(n);
  for (const uint64_t seed : {1, 2}) {
    const auto coded = *RoundTrip(Parsed("ecsq(rate=1)"), TensorOf(RandomValues(n, seed)), kKey);
    for (size_t i = 0; i < n; ++i) sum[i] += coded[i] / 2;
  }
  const Tensor x = TensorOf(sum);
  StepSearch search(/*rate=*/1, static_cast<int64_t>(n));
  CodecSpec by_step = Parsed("ecsq(step=1)");
  int tries = 0;
  do {
    ++tries;
    by_step.step = search.step();
  } while (search.Next(EncodeToBytes(by_step, x, kKey)->size()));
  ASSERT_NE(search.step(), search.best());
  EXPECT_LE(tries, kFewTries);
  by_step.step = search.best();
  EXPECT_EQ(*EncodeToBytes(Parsed("ecsq(rate=1)"), x, kKey), *EncodeToBytes(by_step, x, kKey));
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
