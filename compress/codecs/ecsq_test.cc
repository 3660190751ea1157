#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "base/random.h"
#include "compress/codecs/round_trip_testing.h"
#include "compress/half.h"
#include "compress/layout.h"

namespace thinwire {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr uint64_t kKey = 7;
constexpr Rounding kRoundings[] = {Rounding::kNearest, Rounding::kStochastic, Rounding::kDither,
                                   Rounding::kDeadZone, Rounding::kNearestNonzero};

// Returns ecsq without the lossless stage; a test may set it.
CodecSpec Ecsq(double step, Rounding rounding = Rounding::kNearest, Scope scope = Scope::kTensor) {
  CodecSpec spec;
  spec.kind = CodecKind::kEcsq;
  spec.step = step;
  spec.rounding = rounding;
  spec.scope = scope;
  if (scope == Scope::kGroup) spec.group = 5;
  return spec;
}
CodecSpec Centered(CodecSpec spec) {
  spec.reconstruction = Reconstruction::kCenter;
  return spec;
}

float AsBFloat(double x) { return FromBFloat(ToBFloat(static_cast<float>(x))); }

// Returns the step of elements [begin, end), with squares summed in any order. That differs in the
// last bits of fp64 only, and hardly ever in bf16.
float StepOf(const CodecSpec& spec, const std::vector<float>& x, int64_t begin, int64_t end) {
  double sum = 0;
  for (int64_t i = begin; i < end; ++i) sum += double{x[i]} * double{x[i]};
  return AsBFloat(spec.step * std::sqrt(sum / static_cast<double>(end - begin)));
}

int32_t CodeOf(Rounding rounding, float y, float chance) {
  switch (rounding) {
    case Rounding::kNearest:
      return static_cast<int32_t>(std::nearbyint(y));
    case Rounding::kStochastic:
      return static_cast<int32_t>(std::floor(y)) + (chance < y - std::floor(y) ? 1 : 0);
    case Rounding::kDither:
      return static_cast<int32_t>(std::nearbyint(y + (chance - 0.5f)));
    case Rounding::kDeadZone:
    case Rounding::kRateDistortion:  // code_choice_test.cc
      return static_cast<int32_t>(std::copysign(std::floor(std::fabs(y) + 1.0f / 3), y));
    case Rounding::kNearestNonzero:
      if (y == 0) return 0;
      return static_cast<int32_t>(std::copysign(std::max(1.0f, std::nearbyint(std::fabs(y))), y));
  }
  return 0;
}

// Encodes and decodes as docs/compression.md says, one element after the other.
std::vector<float> Reference(const CodecSpec& spec, const Shape& shape,
                             const std::vector<float>& x) {
  const Scopes scopes = ScopesOf(shape, spec.scope, spec.group);
  std::vector<float> step(x.size());
  std::vector<int32_t> codes(x.size());
  std::vector<float> noise(x.size());
  std::map<int32_t, std::pair<double, int64_t>> cells;  // by magnitude
  RandomStream random(kKey);
  for (int64_t i = 0; i < scopes.total; ++i) {
    const int64_t begin = i / scopes.elements * scopes.elements;
    const int64_t end = std::min(begin + scopes.elements, scopes.total);
    step[i] = i == begin ? StepOf(spec, x, begin, end) : step[i - 1];
    const float chance = random.NextFloat(), y = step[i] == 0 ? 0.0f : x[i] / step[i];
    codes[i] = step[i] == 0 ? 0 : CodeOf(spec.rounding, y, chance);
    if (spec.rounding == Rounding::kDither) noise[i] = chance - 0.5f;
    auto& cell = cells[std::abs(codes[i])];
    cell.first += std::nearbyint((std::fabs(y) - std::abs(codes[i])) * 0x1p16f);
    ++cell.second;
  }
  std::vector<float> decoded(x.size());
  for (int64_t i = 0; i < scopes.total; ++i) {
    const int32_t magnitude = std::abs(codes[i]);
    float mean = 0;
    if (spec.has_means() && magnitude >= 1 && magnitude <= 4) {
      const auto& [sum, count] = cells[magnitude];
      mean = static_cast<float>(std::round(sum / 512 / static_cast<double>(count))) / 128;
    }
    const float steps =
        std::copysign(static_cast<float>(magnitude) + mean, codes[i] < 0 ? -1.0f : 1.0f);
    decoded[i] = (steps - noise[i]) * step[i];
  }
  return decoded;
}

const Shape kShapes[] = {{0, 3},  {1},        {2, 3},       {7, 1, 5},
                         {3, 17}, {4, 9, 33}, {3, 50, 100}, {5, 3000}};

TEST(EcsqTest, IsTheFormulaForEveryShapeScopeStepAndRounding) {
  for (const Shape& shape : kShapes) {
    const std::vector<float> x = RandomValues(shape.elements(), 3);
    for (Scope scope : {Scope::kTensor, Scope::kSample, Scope::kToken, Scope::kGroup}) {
      for (Rounding rounding : kRoundings) {
        for (double step : {0.125, 1.0, 3.0}) {
          for (const CodecSpec& spec :
               {Ecsq(step, rounding, scope), Centered(Ecsq(step, rounding, scope))}) {
            EXPECT_EQ(*RoundTrip(spec, TensorOf(shape, x), kKey), Reference(spec, shape, x))
                << spec.ToString() << shape.ToString();
          }
        }
      }
    }
  }
}

double SquaredError(const std::vector<float>& x, const std::vector<float>& y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += (double{x[i]} - y[i]) * (double{x[i]} - y[i]);
  return sum;
}

TEST(EcsqTest, MeansOfCellsBringTheErrorDown) {
  const std::vector<float> x = RandomValues(20000, 4);
  for (Rounding rounding : {Rounding::kNearest, Rounding::kDeadZone}) {
    const CodecSpec spec = Ecsq(1, rounding);
    const double center = SquaredError(x, *RoundTrip(Centered(spec), TensorOf(x)));
    EXPECT_LT(SquaredError(x, *RoundTrip(spec, TensorOf(x))), 0.99 * center) << spec.ToString();
  }
}

TEST(EcsqTest, StochasticRoundingAndDitherAreUnbiasedAndDitherIsCloser) {
  constexpr int kTries = 2000;
  const std::vector<float> x = RandomValues(64, 5);
  const float step = StepOf(Ecsq(1), x, 0, 64);
  std::map<Rounding, double> errors;
  for (Rounding rounding : {Rounding::kStochastic, Rounding::kDither}) {
    std::vector<double> mean(x.size());
    for (int t = 0; t < kTries; ++t) {
      const std::vector<float> y = *RoundTrip(Ecsq(1, rounding), TensorOf(x), RandomKey(t, "try"));
      errors[rounding] += SquaredError(x, y);
      for (size_t i = 0; i < x.size(); ++i) mean[i] += y[i] / kTries;
    }
    // A value's error has a standard deviation of at most half a step.
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(mean[i], x[i], 4.5 * step / 2 / std::sqrt(kTries)) << Name(rounding) << i;
    }
  }
  // The noise of dither is uniform, whatever x is: a twelfth of a squared step.
  EXPECT_NEAR(errors[Rounding::kDither] / kTries / 64 / step / step, 1.0 / 12, 0.002);
  EXPECT_GT(errors[Rounding::kStochastic], 1.5 * errors[Rounding::kDither]);
}

TEST(EcsqTest, NearestNonzeroKeepsTheSupport) {
  std::vector<float> x = RandomValues(5000, 6, /*relu=*/true);
  for (size_t i = 0; i < x.size(); i += 3) x[i] *= 0.001f;  // a cell whose mean is next to zero
  for (double step : {0.125, 1.0, 8.0, 1000.0}) {
    for (const CodecSpec& spec :
         {Ecsq(step, Rounding::kNearestNonzero), Centered(Ecsq(step, Rounding::kNearestNonzero))}) {
      const std::vector<float> y = *RoundTrip(spec, TensorOf(x));
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_EQ(y[i] == 0, x[i] == 0) << spec.ToString() << i;
        ASSERT_GE(y[i] * x[i], 0) << spec.ToString() << i;
      }
    }
  }
}

TEST(EcsqTest, AZeroStaysOneUnlessThereIsDither) {
  const std::vector<float> x = RandomValues(5000, 6, /*relu=*/true);
  for (Rounding rounding : kRoundings) {
    if (rounding == Rounding::kDither) continue;
    const std::vector<float> y = *RoundTrip(Ecsq(0.5, rounding), TensorOf(x));
    for (size_t i = 0; i < x.size(); ++i) {
      if (x[i] == 0) {
        ASSERT_EQ(y[i], 0) << Name(rounding);
      }
    }
  }
}

double EntropyOfCodes(const std::vector<uint8_t>& payload, size_t n) {
  std::map<uint8_t, double> counts;
  for (size_t i = payload.size() - n; i < payload.size(); ++i) ++counts[payload[i]];
  double bits = 0;
  for (const auto& [code, count] : counts)
    bits -= count * std::log2(count / static_cast<double>(n));
  return bits / static_cast<double>(n);
}

TEST(EcsqTest, TakesWhatTheEntropySaysAndADeadZoneTakesLess) {
  constexpr size_t n = 200000;
  const Tensor x = TensorOf(RandomValues(n, 7));
  std::map<Rounding, double> bits;
  for (Rounding rounding : {Rounding::kNearest, Rounding::kDeadZone}) {
    CodecSpec spec = Ecsq(1, rounding);
    const double entropy = EntropyOfCodes(*EncodeToBytes(spec, x), n);
    spec.lossless = Lossless::kEntropy;
    bits[rounding] = 8.0 * static_cast<double>(EncodeToBytes(spec, x)->size()) / n;
    EXPECT_LT(bits[rounding], 1.01 * entropy) << Name(rounding);
  }
  EXPECT_LT(bits[Rounding::kDeadZone], 0.92 * bits[Rounding::kNearest]);
}

TEST(EcsqTest, WhatIsFarOutComesBehindTheBytes) {
  std::vector<float> x = RandomValues(300000, 8);
  for (const size_t i : {size_t{3}, size_t{4095}, size_t{299999}}) x[i] = 250;
  x[100] = -200;
  for (Rounding rounding : kRoundings) {
    const std::vector<uint8_t> payload = *EncodeToBytes(Ecsq(1, rounding), TensorOf(x), kKey);
    EXPECT_EQ(payload.size(),
              EcsqHeaderBytes(Ecsq(1, rounding), {300000, 1, 300000}) + 300000 + 16);
    EXPECT_EQ(*RoundTrip(Ecsq(1, rounding), TensorOf(x), kKey),
              Reference(Ecsq(1, rounding), {300000}, x));
  }
}

TEST(EcsqTest, ZerosTinyAndHugeNumbersAreCarried) {
  EXPECT_THAT(*RoundTrip(Ecsq(1), TensorOf(std::vector<float>(100))), Each(0));
  EXPECT_THAT(*RoundTrip(Ecsq(1, Rounding::kDither), TensorOf(std::vector<float>(100))), Each(0));
  EXPECT_THAT(*RoundTrip(Ecsq(1), TensorOf(std::vector<float>(9, 1e-44f))), Each(0));
  for (const float value : {1e-37f, 1e-20f, 3e38f}) {
    const std::vector<float> y = *RoundTrip(Ecsq(1), TensorOf({value, -value, value}));
    EXPECT_NEAR(y[0] / value, 1, 0.01) << value;
    EXPECT_NEAR(y[1] / value, -1, 0.01) << value;
  }
  // Two and a half steps would be rounded beyond the largest number.
  std::vector<float> x(20, std::numeric_limits<float>::max() / 2.51f);
  x[0] = std::numeric_limits<float>::max();
  const std::vector<float> decoded = *RoundTrip(Ecsq(0.9), TensorOf(x));
  EXPECT_TRUE(
      std::all_of(decoded.begin(), decoded.end(), [](float y) { return std::isfinite(y); }));
  for (const float value : {NAN, INFINITY}) {
    const auto payload = EncodeToBytes(Ecsq(1), TensorOf({0, value}));
    EXPECT_EQ(payload.status().code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(std::string(payload.status().message()), HasSubstr("ecsq: element 1 is "));
  }
}

std::string Refusal(const CodecSpec& spec, const std::vector<uint8_t>& payload, int64_t elements) {
  return std::string(DecodeFromBytes(spec, payload, {elements}).status().message());
}

TEST(EcsqTest, RefusesWhatNoEncoderWrites) {
  const CodecSpec spec = Centered(Ecsq(1));
  const std::vector<uint8_t> payload = *EncodeToBytes(spec, TensorOf({1, -1, 1}));
  ASSERT_EQ(payload, (std::vector<uint8_t>{0x80, 0x3F, 2, 1, 2}));
  for (size_t n = 0; n < payload.size(); ++n) {
    EXPECT_THAT(Refusal(spec, {payload.begin(), payload.begin() + n}, 3), HasSubstr("want 5"));
  }
  EXPECT_EQ(Refusal(spec, {0x80, 0x3F, 2, 255, 2}, 3), "ecsq: payload of 5 bytes, want 9");
  EXPECT_EQ(Refusal(spec, {0x80, 0x3F, 2, 1, 2, 0, 0, 0, 0}, 3),
            "ecsq: payload of 9 bytes, want 5");
  EXPECT_EQ(Refusal(spec, {0x80, 0x3F, 2, 255, 2, 127, 0, 0, 0}, 3),
            "ecsq: code 127 of element 1 behind the bytes, want one that has no byte");
  for (const auto& [low, high] : {std::pair(0x80, 0x7F), std::pair(0xC0, 0x7F), std::pair(1, 0),
                                  std::pair(0x80, 0xBF), std::pair(0, 0x80)}) {
    const auto bad = {static_cast<uint8_t>(low), static_cast<uint8_t>(high), uint8_t{2}, uint8_t{1},
                      uint8_t{2}};
    EXPECT_THAT(Refusal(spec, bad, 3), HasSubstr("ecsq: step of scope 0 is ")) << high;
  }
  // The largest step times the largest code.
  const auto y = DecodeFromBytes(spec, {0x7F, 0x7F, 255, 0xFF, 0xFF, 0xFF, 0x7F}, {1});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(FloatsOf(*y)[0], 0x1.FEp127f);
}

TEST(EcsqTest, ParametersOutOfRangeAreRefusedByName) {
  const auto refusal = [](const CodecSpec& spec) { return std::string(CheckSpec(spec).message()); };
  for (const double step : {0.0, kLeastStep / 2, 2000.0, -1.0, static_cast<double>(NAN)}) {
    EXPECT_THAT(refusal(Ecsq(step)), HasSubstr("ecsq: step is "));
  }
  EXPECT_THAT(refusal(Ecsq(1, Rounding::kNearest, Scope::kChannel)), HasSubstr("scope is channel"));
  CodecSpec uniform;
  uniform.kind = CodecKind::kUniform;
  uniform.rounding = Rounding::kDither;
  EXPECT_EQ(refusal(uniform), "uniform: rounding is dither, want nearest or stochastic");
  EXPECT_EQ(DefaultSpec(CodecKind::kEcsq).ToString(),
            "ecsq(step=1, scope=tensor, rounding=nearest)");
}

}  // namespace
}  // namespace thinwire
