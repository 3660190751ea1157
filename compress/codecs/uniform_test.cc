#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compress/codecs/round_trip_testing.h"
#include "compress/layout.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CodecSpec Uniform(uint32_t bits, Range range = Range::kMinMax, Scope scope = Scope::kTensor) {
  CodecSpec spec;
  spec.kind = CodecKind::kUniform;
  spec.bits = bits;
  spec.range = range;
  spec.scope = scope;
  if (scope == Scope::kGroup) spec.group = 5;
  return spec;
}

// Returns the scope of element i.
int64_t ScopeOf(const Scopes& scopes, int64_t i) {
  return scopes.strided ? i % scopes.count : i / scopes.elements;
}

// Computes the paper's formulas, one element after the other, in fp32 where the codec says fp32.
std::vector<float> Reference(const CodecSpec& spec, const Shape& shape,
                             const std::vector<float>& x) {
  const Scopes scopes = ScopesOf(shape, spec.scope, spec.group);
  std::vector<float> min(scopes.count, INFINITY), max(scopes.count, -INFINITY), y(x.size());
  for (int64_t i = 0; i < scopes.total; ++i) {
    const int64_t s = ScopeOf(scopes, i);
    min[s] = std::min(min[s], x[i]);
    max[s] = std::max(max[s], x[i]);
  }
  const bool symmetric = spec.range == Range::kMaxAbs;
  const float levels = symmetric ? (1 << (spec.bits - 1)) - 1 : (1 << spec.bits) - 1;
  for (int64_t i = 0; i < scopes.total; ++i) {
    const int64_t s = ScopeOf(scopes, i);
    const float offset = symmetric ? 0 : min[s];
    const float range = symmetric ? std::max(-min[s], max[s]) : max[s] - min[s];
    const float q = range > 0 ? std::nearbyint((x[i] - offset) * (levels / range)) : 0.0f;
    y[i] = q * (1.0f / levels) * range + offset;
  }
  return y;
}

const Shape kShapes[] = {{0, 3},  {1},        {2, 3},       {7, 1, 5},
                         {3, 17}, {4, 9, 33}, {3, 50, 100}, {5, 3000}};
constexpr Scope kEveryScope[] = {Scope::kTensor, Scope::kSample, Scope::kChannel, Scope::kToken,
                                 Scope::kGroup};

TEST(UniformTest, IsThePapersFormulaForEveryShapeScopeAndWidth) {
  for (const Shape& shape : kShapes) {
    const std::vector<float> x = RandomValues(shape.elements(), 3);
    for (Scope scope : kEveryScope) {
      for (uint32_t bits = 1; bits <= 8; ++bits) {
        for (Range range : {Range::kMinMax, Range::kMaxAbs}) {
          if (bits == 1 && range == Range::kMaxAbs) continue;
          const CodecSpec spec = Uniform(bits, range, scope);
          EXPECT_EQ(*RoundTrip(spec, TensorOf(shape, x)), Reference(spec, shape, x))
              << spec.ToString() << shape.ToString();
        }
      }
    }
  }
}

TEST(UniformTest, IsOffByAtMostHalfAStepOfTheExactFormula) {
  const std::vector<float> x = RandomValues(10000, 4);
  const auto [min, max] = std::minmax_element(x.begin(), x.end());
  for (uint32_t bits = 1; bits <= 8; ++bits) {
    const double step = (static_cast<double>(*max) - *min) / ((1 << bits) - 1);
    const std::vector<float> y = *RoundTrip(Uniform(bits), TensorOf(x));
    for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], x[i], step * 0.50001) << bits;
  }
}

TEST(UniformTest, PayloadIsTrulyPacked) {
  for (uint32_t bits = 1; bits <= 8; ++bits) {
    const auto payload = *EncodeToBytes(Uniform(bits), TensorOf(RandomValues(1001, 1)));
    EXPECT_EQ(payload.size(), 8 + (1001 * bits + 7) / 8);
  }
}

TEST(UniformTest, BothEndsOfTheRangeAreLevels) {
  for (uint32_t bits = 1; bits <= 8; ++bits) {
    EXPECT_THAT(*RoundTrip(Uniform(bits), TensorOf({0, 0.3f, 1.7f})), testing::Contains(1.7f));
  }
}

TEST(UniformTest, ConstantsAreExact) {
  for (float c : {0.1f, -3.3f, 0.0f, 1e-42f, 3e38f, -1e-30f}) {
    for (Range range : {Range::kMinMax, Range::kMaxAbs, Range::kFixedPoint}) {
      for (Zero zero : {Zero::kFree, Zero::kOnGrid}) {
        for (Scope scope : kEveryScope) {
          CodecSpec spec = Uniform(3, range, scope);
          spec.zero = zero;
          const std::vector<float> x(35, c);
          EXPECT_EQ(*RoundTrip(spec, TensorOf({5, 7}, x)), x) << spec.ToString() << " of " << c;
        }
      }
    }
  }
}

TEST(UniformTest, ZeroIsExactWhenOnTheGrid) {
  std::vector<float> x = RandomValues(1000, 5);
  for (size_t i = 0; i < x.size(); i += 3) x[i] = 0;
  for (uint32_t bits = 1; bits <= 8; ++bits) {
    CodecSpec spec = Uniform(bits);
    spec.zero = Zero::kOnGrid;
    const std::vector<float> y = *RoundTrip(spec, TensorOf(x));
    for (size_t i = 0; i < x.size(); i += 3) ASSERT_EQ(y[i], 0.0f) << bits;
  }
}

TEST(UniformTest, MovingTheRangeToZeroKeepsErrorsWithinHalfAStep) {
  const std::vector<float> x = {-0.3f, 0.1f, 0.2f, 0.45f};
  CodecSpec spec = Uniform(2);
  spec.zero = Zero::kOnGrid;
  const std::vector<float> y = *RoundTrip(spec, TensorOf(x));
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(y[i], x[i], 0.125001f);
}

TEST(UniformTest, SymmetricRangesDecodeMirroredInputsMirrored) {
  const std::vector<float> x = RandomValues(500, 6);
  std::vector<float> mirrored = x;
  for (float& value : mirrored) value = -value;
  const CodecSpec spec = Uniform(5, Range::kMaxAbs);
  std::vector<float> y = *RoundTrip(spec, TensorOf(x));
  const std::vector<float> z = *RoundTrip(spec, TensorOf(mirrored));
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], -z[i]);
}

// q = clip(round(2^(b-1) x / s)), x^ = q s / 2^(b-1), with one fp16 scale per channel.
TEST(UniformTest, FixedPointFollowsAcSgd) {
  const Shape shape = {6, 5, 7};
  const std::vector<float> x = RandomValues(shape.elements(), 7);
  for (uint32_t bits : {2u, 4u, 8u}) {
    const std::vector<float> y =
        *RoundTrip(Uniform(bits, Range::kFixedPoint, Scope::kChannel), TensorOf(shape, x));
    const double half = 1 << (bits - 1);
    for (int64_t c = 0; c < 7; ++c) {
      double s = 0;
      for (size_t i = c; i < x.size(); i += 7) s = std::max(s, std::fabs(double{x[i]}));
      for (size_t i = c; i < x.size(); i += 7) {
        const double q = std::clamp(half * x[i] / s, -half, half - 1);
        EXPECT_NEAR(y[i], q * s / half, s / half * 0.5 + s * 0x1p-10);
      }
    }
  }
}

TEST(UniformTest, FixedPointClipsThePositiveEndOnly) {
  EXPECT_THAT(*RoundTrip(Uniform(2, Range::kFixedPoint), TensorOf({1, -1, 0, 0.5f})),
              ElementsAre(0.5f, -1.0f, 0.0f, 0.5f));
}

TEST(UniformTest, TheLargestFloatsSurviveHalfPrecisionScales) {
  const float most = std::numeric_limits<float>::max();
  const std::vector<float> y =
      *RoundTrip(Uniform(8, Range::kFixedPoint), TensorOf({most, -most, 0, most / 2}));
  EXPECT_NEAR(y[0] / most, 127.0f / 128, 0.001);
  EXPECT_NEAR(y[1] / most, -1, 0.001);
  EXPECT_EQ(y[2], 0);
  EXPECT_NEAR(y[3] / most, 0.5, 0.001);
}

TEST(UniformTest, TinyGradientsSurviveHalfPrecisionScales) {
  const std::vector<float> y =
      *RoundTrip(Uniform(8, Range::kFixedPoint), TensorOf({1e-20f, -2e-20f, 0, 5e-21f}));
  EXPECT_NEAR(y[0] / 1e-20f, 1, 0.01);
  EXPECT_NEAR(y[1] / -2e-20f, 1, 0.01);
}

TEST(UniformTest, DenormalRangesKeepTheirLevels) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  const std::vector<float> x = {0, tiny, 2 * tiny, 3 * tiny};
  for (Range range : {Range::kMinMax, Range::kMaxAbs}) {
    EXPECT_EQ(*RoundTrip(Uniform(8, range), TensorOf(x)), x) << Name(range);
  }
}

TEST(UniformTest, BFloatTensorsAreWidenedExactlyAndRoundedBack) {
  const std::vector<float> x = {0.0f, 1.0f, -2.0f, 0.5f};
  const CodecSpec spec = Uniform(8);
  const auto wide = *EncodeToBytes(spec, TensorOf(x));
  EXPECT_EQ(*EncodeToBytes(spec, BFloatTensorOf({4}, x)), wide);
  const std::vector<float> y = FloatsOf(*DecodeFromBytes(spec, wide, {4}, DType::kBF16));
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(y[i], x[i], 0.02f);
}

TEST(UniformTest, StochasticRoundingIsUnbiased) {
  CodecSpec spec = Uniform(1);
  spec.rounding = Rounding::kStochastic;
  std::vector<float> x(100002, 0.3f);
  x[0] = 0;
  x[1] = 1;
  const std::vector<float> y = *RoundTrip(spec, TensorOf(x));
  double sum = 0;
  for (float value : y) sum += value;
  EXPECT_NEAR(sum / y.size(), 0.3, 0.005);  // standard deviation 0.0015
}

TEST(UniformTest, StochasticRoundingLeavesLevelsAlone) {
  CodecSpec spec = Uniform(8);
  spec.rounding = Rounding::kStochastic;
  std::vector<float> x(256);
  for (int i = 0; i < 256; ++i) x[i] = static_cast<float>(i);
  for (uint64_t key = 0; key < 20; ++key) {
    const std::vector<float> y = *RoundTrip(spec, TensorOf(x), key);
    for (int i = 0; i < 256; ++i) ASSERT_NEAR(y[i], x[i], 1e-4f);
  }
}

// Tests that element i is rounded by number i of the message's stream, whatever surrounds it.
TEST(UniformTest, StochasticRoundingUsesTheNumberOfTheElement) {
  CodecSpec spec = Uniform(4);
  spec.rounding = Rounding::kStochastic;
  std::vector<float> x = RandomValues(9001, 8);
  x[0] = -2;
  x[1] = 2;
  const std::vector<float> y = *RoundTrip(spec, TensorOf(x), 42);
  RandomStream random(42);
  for (size_t i = 0; i < x.size(); ++i) {
    const float q = (x[i] + 2) * (15.0f / 4.0f);
    const float up = random.NextFloat() < q - std::floor(q) ? 1.0f : 0.0f;
    ASSERT_EQ(y[i], (std::floor(q) + up) * (1.0f / 15.0f) * 4.0f - 2.0f) << i;
  }
}

TEST(UniformTest, NonFiniteInputIsAnErrorThatNamesTheElement) {
  for (float bad : {NAN, INFINITY, -INFINITY}) {
    for (size_t at : {0, 17, 99}) {
      std::vector<float> x = RandomValues(100, 9);
      x[at] = bad;
      for (Scope scope : kEveryScope) {
        const auto bytes = EncodeToBytes(Uniform(4, Range::kMinMax, scope), TensorOf({4, 25}, x));
        ASSERT_EQ(bytes.status().code(), absl::StatusCode::kOutOfRange);
        EXPECT_THAT(std::string(bytes.status().message()),
                    HasSubstr("uniform: element " + std::to_string(at)));
      }
    }
  }
}

TEST(UniformTest, ARangeThatOverflowsIsAnError) {
  EXPECT_FALSE(EncodeToBytes(Uniform(4), TensorOf({-3e38f, 3e38f})).ok());
  EXPECT_TRUE(EncodeToBytes(Uniform(4, Range::kMaxAbs), TensorOf({-3e38f, 3e38f})).ok());
}

TEST(UniformTest, RefusesRangesThatAreNotFinite) {
  std::vector<uint8_t> payload = *EncodeToBytes(Uniform(8), TensorOf({1, 2, 3}));
  for (size_t at : {3, 7}) {
    std::vector<uint8_t> bad = payload;
    bad[at] = 0x7F;
    bad[at - 1] = 0xC0;
    EXPECT_FALSE(DecodeFromBytes(Uniform(8), bad, {3}).ok()) << at;
  }
}

TEST(UniformTest, RefusesSetBitsBehindTheLastCode) {
  std::vector<uint8_t> payload = *EncodeToBytes(Uniform(3), TensorOf({1, 2, 3}));
  payload.back() |= 0x80;
  EXPECT_FALSE(DecodeFromBytes(Uniform(3), payload, {3}).ok());
}

TEST(UniformTest, RefusesTheCodeThatSymmetricRangesLack) {
  const CodecSpec spec = Uniform(8, Range::kMaxAbs);
  std::vector<uint8_t> payload = *EncodeToBytes(spec, TensorOf({1, 2, 3}));
  payload.back() = 255;
  EXPECT_FALSE(DecodeFromBytes(spec, payload, {3}).ok());
}

}  // namespace
}  // namespace thinwire
