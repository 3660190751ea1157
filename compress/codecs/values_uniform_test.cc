// Tests of kept values as codes: those that fp32 would have kept, by the formula of
// docs/compression.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "compress/codecs/round_trip_testing.h"
#include "compress/layout.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CodecSpec TopKOfCodes(uint32_t bits, Range range = Range::kMinMax, uint32_t group = 0) {
  CodecSpec spec;
  spec.kind = CodecKind::kTopK;
  spec.ratio = 0.3;
  spec.values = Values::kUniform;
  spec.bits = bits;
  spec.range = range;
  spec.group = group;
  return spec;
}

float Rounded(float y, const CodecSpec& spec, uint32_t random) {
  if (spec.rounding == Rounding::kNearest) return std::nearbyint(y);
  const float chance = static_cast<float>(random >> 8) * 0x1p-24f;
  return std::floor(y) + (chance < y - std::floor(y) ? 1.0f : 0.0f);
}

// Computes one group, value by value, with the operations of docs/compression.md.
void QuantiseGroup(const CodecSpec& spec, RandomStream* random, float* v, size_t n) {
  const UniformGrid grid = GridOf(spec);
  const float least = *std::min_element(v, v + n), largest = *std::max_element(v, v + n);
  float offset = least, range = largest - least;
  if (spec.range == Range::kMaxAbs) {
    offset = 0;
    range = std::max(-least, largest);
  } else if (spec.zero == Zero::kOnGrid && range > 0) {
    const float low = std::min(least, 0.0f);
    range = std::max(largest, 0.0f) - low;
    const double steps = std::nearbyint(-static_cast<double>(low) / range * grid.divisor);
    offset = 0.0f - (static_cast<float>(steps) * (1.0f / grid.divisor)) * range;
  }
  const float inverse = range > 0 ? grid.divisor / range : 0;
  for (size_t i = 0; i < n; ++i) {
    const float y = std::clamp((v[i] - offset) * inverse, -1.0f * grid.zero_code,
                               1.0f * (grid.max_code - grid.zero_code));
    v[i] = ((Rounded(y, spec, random->Next()) * (1.0f / grid.divisor)) * range) + offset;
  }
}

// Returns what arrives of x: the values of the entries that topk with fp32 keeps, in memory order.
std::vector<float> Reference(CodecSpec spec, const Tensor& x, uint64_t key) {
  CodecSpec exact = spec;
  exact.values = Values::kF32;
  exact.group = 0;
  std::vector<float> y = *RoundTrip(exact, x);
  std::vector<float> kept;
  for (float value : y) {
    if (value != 0) kept.push_back(value);
  }
  RandomStream random(key);
  const size_t group = spec.group > 0 ? spec.group : kept.size();
  for (size_t i = 0; i < kept.size(); i += group) {
    QuantiseGroup(spec, &random, &kept[i], std::min(group, kept.size() - i));
  }
  auto next = kept.begin();
  for (float& value : y) {
    if (value != 0) value = *next++;
  }
  return y;
}

TEST(ValuesUniformTest, ArriveAsTheFormulaSays) {
  for (const Shape& shape : {Shape{1}, Shape{7, 1, 5}, Shape{4, 9, 33}, Shape{3, 5000}}) {
    const Tensor x = TensorOf(shape, RandomValues(shape.elements(), 3));
    for (uint32_t group : {0, 1, 7, 64, 100000}) {
      for (Range range : {Range::kMinMax, Range::kMaxAbs}) {
        for (Rounding rounding : {Rounding::kNearest, Rounding::kStochastic}) {
          for (uint32_t bits : {2, 3, 4, 8}) {
            CodecSpec spec = TopKOfCodes(bits, range, group);
            spec.rounding = rounding;
            spec.zero = bits % 2 != 0 && range == Range::kMinMax ? Zero::kOnGrid : Zero::kFree;
            for (Scope scope : {Scope::kTensor, Scope::kSample, Scope::kChannel}) {
              spec.scope = scope;
              EXPECT_EQ(*RoundTrip(spec, x, /*random_key=*/9), Reference(spec, x, 9))
                  << spec.ToString() << shape.ToString();
            }
          }
        }
      }
    }
  }
}

TEST(ValuesUniformTest, TheTwoLargestSurviveOneBit) {
  CodecSpec spec = TopKOfCodes(1);
  spec.ratio = 0.5;
  EXPECT_THAT(*RoundTrip(spec, TensorOf({0.1f, -3.0f, 2.0f, 0.0f})), ElementsAre(0, -3, 2, 0));
}

TEST(ValuesUniformTest, AKeptValueMayArriveAsZero) {
  CodecSpec spec = TopKOfCodes(2, Range::kMaxAbs);
  spec.ratio = 1;
  const auto payload = *EncodeToBytes(spec, TensorOf({8, 1, -8, 0}));
  EXPECT_EQ(payload[4], 3);  // entries
  EXPECT_THAT(FloatsOf(*DecodeFromBytes(spec, payload, {4})), ElementsAre(8, 0, -8, 0));
}

TEST(ValuesUniformTest, EveryGroupHasItsRange) {
  CodecSpec spec = TopKOfCodes(2, Range::kMaxAbs, /*group=*/2);
  spec.ratio = 1;
  EXPECT_THAT(*RoundTrip(spec, TensorOf({1e6f, 0, -1e6f, 0, 0, 1e-6f, -1e-6f, 3})),
              ElementsAre(1e6f, 0, -1e6f, 0, 0, 1e-6f, -1e-6f, 3));
}

TEST(ValuesUniformTest, StochasticRoundingIsRightOnAverage) {
  CodecSpec spec = TopKOfCodes(2);
  spec.ratio = 1;
  spec.rounding = Rounding::kStochastic;
  const std::vector<float> x = {1, 4, 1.4f, 2.9f};
  std::vector<double> sums(4);
  constexpr int kTimes = 20000;
  for (int i = 0; i < kTimes; ++i) {
    const std::vector<float> y = *RoundTrip(spec, TensorOf(x), RandomKey(1, i));
    for (int j = 0; j < 4; ++j) sums[j] += y[j];
  }
  for (int j = 0; j < 4; ++j) EXPECT_NEAR(sums[j] / kTimes, x[j], 5 * 0.5 / std::sqrt(kTimes));
}

TEST(ValuesUniformTest, NoPayloadIsLongerThanPromised) {
  for (uint32_t group : {0, 3}) {
    for (Scope scope : {Scope::kTensor, Scope::kToken}) {
      CodecSpec spec = TopKOfCodes(3, Range::kMinMax, group);
      spec.scope = scope;
      for (int64_t n = 0; n < 200; ++n) {
        const Tensor x = TensorOf({2, n}, RandomValues(2 * n, n));
        const size_t most = CodecOf(spec)->MaxPayloadBytes(x.shape(), DType::kF32);
        EXPECT_LE(EncodeToBytes(spec, x)->size(), most);
        EXPECT_LE(most, 8 + 16 * (1 + n) + (2 * n + 7));  // and that is not much more
      }
    }
  }
}

TEST(ValuesUniformTest, RefusesNonFiniteInputARangeThatOverflowsAndOneThatIsNone) {
  CodecSpec spec = TopKOfCodes(4);
  spec.ratio = 1;
  EXPECT_THAT(std::string(EncodeToBytes(spec, TensorOf({1, NAN})).status().message()),
              HasSubstr("topk: element 1"));
  EXPECT_THAT(std::string(EncodeToBytes(spec, TensorOf({3e38f, -3e38f})).status().message()),
              HasSubstr("want a range that fp32 holds"));
  auto payload = *EncodeToBytes(spec, TensorOf({1, 2}));
  payload[8 + 7] |= 0x80;  // a negative range
  EXPECT_FALSE(DecodeFromBytes(spec, payload, {2}).ok());
}

TEST(ValuesUniformTest, RefusesACodeOutsideAnOddGrid) {
  const CodecSpec spec = TopKOfCodes(2, Range::kMaxAbs);
  auto payload = *EncodeToBytes(spec, TensorOf({1}));
  payload[8 + 4] = 3;
  EXPECT_FALSE(DecodeFromBytes(spec, payload, {1}).ok());
}

}  // namespace
}  // namespace thinwire
