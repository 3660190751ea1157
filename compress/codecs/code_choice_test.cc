#include "compress/codecs/code_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compress/codecs/round_trip_testing.h"
#include "compress/cpu/ecsq_header.h"
#include "compress/cpu/whole_steps.h"
#include "hwy/highway.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

const Shape kShape = {4, 16, 16, 24};

// Returns values that are often small and seldom large, as behind a ReLU. Their scale differs by
// channel and by blocks of four by four pixels.
std::vector<float> Patches(uint64_t seed) {
  std::vector<float> x = RandomValues(kShape.elements(), seed, /*relu=*/true);
  for (size_t i = 0; i < x.size(); ++i) {
    const uint32_t channel = i % 24, column = i / 24 % 16 / 4, row = i / (24 * 16) / 4;
    const uint32_t hash = ((row * 4 + column) * 24 + channel) * 0x9E3779B9u;
    x[i] = std::ldexp(x[i] * x[i], -static_cast<int>(hash >> 30));
  }
  return x;
}

CodecSpec Ecsq(Rounding rounding, double step = 1) {
  CodecSpec spec;
  spec.kind = CodecKind::kEcsq;
  spec.rounding = rounding;
  spec.step = step;
  spec.lossless = Lossless::kEntropy;
  return spec;
}

// Cost of a code: the square of the error in steps, and (ln 2) / 6 for each bit.
double CostOf(const CodecSpec& spec, const std::vector<float>& x) {
  const std::vector<uint8_t> payload = *EncodeToBytes(spec, TensorOf(kShape, x), /*key=*/7);
  const std::vector<float> y = *RoundTrip(spec, TensorOf(kShape, x), 7);
  double error = 0, squares = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    error += (double{x[i]} - y[i]) * (double{x[i]} - y[i]);
    squares += double{x[i]} * x[i];
  }
  const double step_squared = spec.step * spec.step * squares / static_cast<double>(x.size());
  return error / step_squared + std::log(2.0) / 6 * 8 * static_cast<double>(payload.size());
}

TEST(CodeChoiceTest, ErrorAndBitsTogetherCostLess) {
  const std::vector<float> x = Patches(1);
  for (const double step : {0.25, 0.5, 1.0, 2.0}) {
    const double least = std::min(CostOf(Ecsq(Rounding::kNearest, step), x),
                                  CostOf(Ecsq(Rounding::kDeadZone, step), x));
    EXPECT_LT(CostOf(Ecsq(Rounding::kRateDistortion, step), x), least) << step;
  }
}

TEST(CodeChoiceTest, ACodeIsTheNearestOrUpToTwoBelow) {
  const std::vector<float> x = Patches(2);
  CodecSpec spec = Ecsq(Rounding::kRateDistortion, 0.25);
  spec.reconstruction = Reconstruction::kCenter;
  const std::vector<float> y = *RoundTrip(spec, TensorOf(kShape, x), 7);
  const float step = *std::min_element(
      y.begin(), y.end(), [](float a, float b) { return a != 0 && (b == 0 || a < b); });
  int64_t below = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double nearest = std::nearbyint(x[i] / step), code = y[i] / step;
    EXPECT_LE(code, nearest);
    EXPECT_GE(code, std::max(0.0, nearest - 2));
    below += code < nearest;
  }
  EXPECT_GT(below, 0);
}

TEST(CodeChoiceTest, CodesWithoutAByteTypesAndScopesGoThrough) {
  std::vector<float> x = Patches(3);
  x[100] = 40;  // many steps from zero
  x[200] = -40;
  for (const Scope scope : {Scope::kTensor, Scope::kSample, Scope::kToken}) {
    CodecSpec spec = Ecsq(Rounding::kRateDistortion, 0.03);
    spec.scope = scope;
    const std::vector<float> y = *RoundTrip(spec, TensorOf(kShape, x), 7);
    EXPECT_NEAR(y[100], 40, 1.5);
    EXPECT_NEAR(y[200], -40, 1.5);
  }
  const CodecSpec spec = Ecsq(Rounding::kRateDistortion);
  EXPECT_THAT(*RoundTrip(spec, TensorOf({3}, {0, 0, 0}), 7), testing::Each(0));
  EXPECT_TRUE(RoundTrip(spec, TensorOf({0, 3}, {}), 7).ok());
  for (float& value : x) value = FromBFloat(ToBFloat(value));
  const std::vector<float> y = *RoundTrip(spec, BFloatTensorOf(kShape, x), 7);
  const std::vector<float> same = *RoundTrip(spec, TensorOf(kShape, x), 7);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], FromBFloat(ToBFloat(same[i])));
}

TEST(CodeChoiceTest, WantsTheEntropyCoderAndAllElements) {
  CodecSpec spec = Ecsq(Rounding::kRateDistortion);
  spec.lossless = Lossless::kZstd;
  EXPECT_THAT(std::string(CheckSpec(spec).message()),
              HasSubstr("rounding is rate_distortion with lossless zstd, want entropy"));
  spec = Ecsq(Rounding::kRateDistortion);
  spec.support = Support::kReceivedNonzero;
  EXPECT_THAT(std::string(CheckSpec(spec).message()), HasSubstr("want all"));
}

struct Chosen {
  std::vector<uint8_t> bytes;
  CellSums cells;
};

// Chooses codes one element after the other, as the definition says.
Chosen Reference(const std::vector<float>& x, float step, const float* means,
                 const std::vector<uint8_t>& sums, const std::vector<float>& costs,
                 std::vector<uint8_t> bytes) {
  CellSums cells;
  for (size_t i = 0; i < x.size(); ++i) {
    const float y = x[i] / step, magnitude = std::fabs(y);
    const int nearest = std::min(static_cast<int>(std::nearbyint(magnitude)), 127);
    float least = std::numeric_limits<float>::infinity();
    int code = 0;
    for (int below = 0; below < 3; ++below) {
      const int candidate = std::max(nearest - below, 0);
      const float mean = candidate >= 1 && candidate <= kMeans ? means[candidate - 1] : 0;
      const float error = magnitude - (static_cast<float>(candidate) + mean);
      const float square = error * error;
      const float cost = square + costs[256 * sums[i] + ZigZag(y < 0 ? -candidate : candidate)];
      if (cost < least) least = cost, code = candidate;
    }
    if (code >= 1 && code <= kMeans) {
      ++cells.count[code - 1];
      cells.fractions[code - 1] +=
          std::lrint((magnitude - static_cast<float>(code)) * kFractionUnit);
    }
    if (bytes[i] != kEscape) bytes[i] = static_cast<uint8_t>(ZigZag(y < 0 ? -code : code));
  }
  return {bytes, cells};
}

TEST(CheapestStepsTest, IsTheFormulaOnEverySimdTarget) {
  const std::vector<float> x = RandomValues(1003, 5);
  const float means[kMeans] = {0.1f, -0.05f, 0.02f, 0.3f};
  std::vector<float> costs = RandomValues(16 * 256, 6);
  for (float& cost : costs) cost = std::fabs(cost);
  std::vector<uint8_t> sums, bytes(x.size());
  RandomStream random(3);
  for (size_t i = 0; i < x.size(); ++i) sums.push_back(random.Next() % 16);
  bytes[17] = kEscape;
  const Chosen wanted = Reference(x, 0.125f, means, sums, costs, bytes);
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    Chosen met{bytes, {}};
    CheapestSteps(x.data(), x.size(), 0.125f, means, sums.data(), costs.data(), met.bytes.data(),
                  &met.cells);
    EXPECT_EQ(met.bytes, wanted.bytes) << hwy::TargetName(target);
    for (int m = 0; m < kMeans; ++m) {
      EXPECT_EQ(met.cells.count[m], wanted.cells.count[m]) << hwy::TargetName(target);
      EXPECT_EQ(met.cells.fractions[m], wanted.cells.fractions[m]) << hwy::TargetName(target);
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace
}  // namespace thinwire
