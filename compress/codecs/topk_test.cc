#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compress/codecs/round_trip_testing.h"
#include "compress/layout.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CodecSpec TopK(double ratio, Scope scope = Scope::kTensor) {
  CodecSpec spec;
  spec.kind = CodecKind::kTopK;
  spec.ratio = ratio;
  spec.scope = scope;
  return spec;
}

// Sorts each scope by (magnitude descending, index ascending) and zeroes what comes after K.
std::vector<float> Reference(const CodecSpec& spec, const Shape& shape,
                             const std::vector<float>& x) {
  const Scopes scopes = ScopesOf(shape, spec.scope, spec.group);
  std::vector<float> y(x.size(), 0.0f);
  for (int64_t s = 0; s < scopes.count; ++s) {
    const int64_t before = scopes.strided ? 0 : s * scopes.elements;
    const int64_t elements = std::min(scopes.elements, scopes.total - before);
    std::vector<int64_t> order(elements);
    for (int64_t i = 0; i < elements; ++i) {
      order[i] = scopes.strided ? i * scopes.count + s : s * scopes.elements + i;
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return std::fabs(x[a]) > std::fabs(x[b]); });
    const int64_t kept = NumKept(spec, elements);
    for (int64_t i = 0; i < kept; ++i) y[order[i]] = x[order[i]];
  }
  return y;
}

std::vector<float> Quantised(std::vector<float> x, float step) {
  for (float& value : x) value = std::round(value / step) * step;
  return x;
}

TEST(TopKTest, KeepsLargestMagnitudesAndZeroesTheRest) {
  EXPECT_THAT(*RoundTrip(TopK(0.5), TensorOf({0.1f, -3.0f, 2.0f, 0.0f})),
              ElementsAre(0.0f, -3.0f, 2.0f, 0.0f));
}

TEST(TopKTest, TiesGoToTheLowerIndex) {
  EXPECT_THAT(*RoundTrip(TopK(0.5), TensorOf({1, -1, 1, -1})), ElementsAre(1, -1, 0, 0));
}

TEST(TopKTest, SelectsAsSortingDoesForEveryShapeScopeAndRatio) {
  const Shape shapes[] = {{0, 3},  {1},        {2, 3},       {7, 1, 5},
                          {3, 17}, {4, 9, 33}, {3, 50, 100}, {5, 3000}};
  for (const Shape& shape : shapes) {
    const std::vector<float> smooth = RandomValues(shape.elements(), 3);
    const std::vector<float> relu = RandomValues(shape.elements(), 4, /*relu=*/true);
    for (const auto& x : {smooth, relu, Quantised(smooth, 0.25f)}) {
      for (Scope scope : {Scope::kTensor, Scope::kSample, Scope::kChannel, Scope::kToken}) {
        for (double ratio : {0.001, 0.05, 0.1, 0.3, 0.5, 0.9, 1.0}) {
          const CodecSpec spec = TopK(ratio, scope);
          EXPECT_EQ(*RoundTrip(spec, TensorOf(shape, x)), Reference(spec, shape, x))
              << spec.ToString() << shape.ToString();
        }
      }
    }
  }
}

TEST(TopKTest, SelectsAsSortingDoesInGroupsOfWhichTheLastIsShort) {
  for (const int64_t elements : {1, 63, 500, 4097, 20000}) {
    const std::vector<float> smooth = RandomValues(elements, 3);
    for (const auto& x : {smooth, Quantised(smooth, 0.25f)}) {
      for (const uint32_t group : {1, 7, 64, 4096, 9001, 100000}) {
        for (double ratio : {0.001, 1.0 / 64, 0.3, 1.0}) {
          CodecSpec spec = TopK(ratio, Scope::kGroup);
          spec.group = group;
          EXPECT_EQ(*RoundTrip(spec, TensorOf(x)), Reference(spec, {elements}, x))
              << spec.ToString() << elements;
        }
      }
    }
  }
}

TEST(TopKTest, AReluTensorWithFewerNonZerosArrivesWhole) {
  const std::vector<float> x = RandomValues(20000, 5, /*relu=*/true);
  EXPECT_EQ(*RoundTrip(TopK(0.6), TensorOf(x)), x);
}

TEST(TopKTest, ZerosAreNeverSent) {
  const auto payload = *EncodeToBytes(TopK(1), TensorOf({0, 0, 5, -0.0f, 0, 0, 0, 0}));
  EXPECT_EQ(payload[4], 1);  // the count
  EXPECT_EQ(EncodeToBytes(TopK(1), TensorOf(std::vector<float>(10000)))->size(), 8u);
}

TEST(TopKTest, ExactKSendsZerosToo) {
  CodecSpec spec = TopK(0.5);
  spec.pad = Pad::kExactK;
  for (size_t n : {8, 10000}) {
    std::vector<float> x(n);
    x[5] = 1;
    const auto payload = *EncodeToBytes(spec, TensorOf(x));
    EXPECT_EQ(payload[4] + 256 * payload[5], static_cast<int>(n / 2));
    EXPECT_EQ(*RoundTrip(spec, TensorOf(x)), x);
  }
}

TEST(TopKTest, ExactKOfNonZerosSendsNoZero) {
  CodecSpec spec = TopK(0.25);
  spec.pad = Pad::kExactK;
  for (size_t n : {16, 8192}) {
    std::vector<float> x(n);
    for (size_t i = 0; i < n; i += 4) x[i] = 1e-42f * (1 + i % 3);  // all in the lowest bucket
    EXPECT_EQ(*RoundTrip(spec, TensorOf(x)), x);
  }
}

TEST(TopKTest, KeepsDenormals) {
  EXPECT_THAT(*RoundTrip(TopK(0.5), TensorOf({1e-44f, 1e-45f, -3e-44f, 0})),
              ElementsAre(1e-44f, 0, -3e-44f, 0));
}

TEST(TopKTest, IndicesCostTheSmallestOfThreeCodings) {
  std::vector<float> x(4096);
  x[17] = 1;
  const auto one = *EncodeToBytes(TopK(1), TensorOf(x));
  EXPECT_EQ(one[0], static_cast<int>(IndexCoding::kPacked));
  EXPECT_EQ(one.size(), 8 + 4 + 2u);

  const auto dense = *EncodeToBytes(TopK(0.5), TensorOf(RandomValues(4096, 6)));
  EXPECT_EQ(dense[0], static_cast<int>(IndexCoding::kBitmap));
  EXPECT_EQ(dense.size(), 8 + 4 * 2048 + 512u);

  const auto sparse = *EncodeToBytes(TopK(0.05), TensorOf(RandomValues(4096, 6)));
  EXPECT_EQ(sparse[0], static_cast<int>(IndexCoding::kRice));
  EXPECT_LT(sparse.size(), 8 + 4 * 205 + 205 * 12 / 8u);
}

// 4.69 bits are the entropy of one position at a density of a tenth.
TEST(TopKTest, TenPercentCostAboutFiveBitsAnIndex) {
  const auto payload = *EncodeToBytes(TopK(0.1), TensorOf(RandomValues(100000, 7)));
  const double index_bits = 8.0 * (payload.size() - 8 - 4 * 10000) / 10000;
  EXPECT_LT(index_bits, 4.9);
}

TEST(TopKTest, HalfPrecisionValuesSurviveWhenTiny) {
  CodecSpec spec = TopK(0.5);
  spec.values = Values::kF16;
  const std::vector<float> y = *RoundTrip(spec, TensorOf({1e-12f, 0, -3e-13f, 0}));
  EXPECT_NEAR(y[0] / 1e-12f, 1, 0x1p-11);
  EXPECT_NEAR(y[2] / -3e-13f, 1, 0x1p-11);
}

TEST(TopKTest, ShortValuesAreFiniteEvenAtTheEndOfTheRange) {
  for (Values type : {Values::kF16, Values::kBF16}) {
    CodecSpec spec = TopK(0.5);
    spec.values = type;
    const std::vector<float> y = *RoundTrip(spec, TensorOf({3.4028235e38f, 0}));
    EXPECT_NEAR(y[0] / 3.4028235e38f, 1, 0.01) << Name(type);
  }
}

TEST(TopKTest, BFloatTensorsLoseNothingButTheSmall) {
  CodecSpec spec = TopK(0.5);
  spec.values = Values::kBF16;
  EXPECT_THAT(*RoundTrip(spec, BFloatTensorOf({2, 2}, {1.5f, -0.25f, 0.125f, -8.0f})),
              ElementsAre(1.5f, 0, 0, -8.0f));
}

TEST(TopKTest, NonFiniteInputIsAnErrorThatNamesTheElement) {
  for (size_t n : {100, 10000}) {
    for (float bad : {NAN, INFINITY, -INFINITY}) {
      std::vector<float> x = RandomValues(n, 9);
      x[77] = bad;
      for (Scope scope : {Scope::kTensor, Scope::kSample, Scope::kChannel, Scope::kToken}) {
        const auto bytes = EncodeToBytes(TopK(0.1, scope), TensorOf({4, (int64_t)n / 4}, x));
        ASSERT_EQ(bytes.status().code(), absl::StatusCode::kOutOfRange);
        EXPECT_THAT(std::string(bytes.status().message()), HasSubstr("topk: element 77"));
      }
    }
  }
}

// Tests that a payload is refused if a scope has more entries than K, although it is well-formed
// for the tensor as one scope.
TEST(TopKTest, RefusesMoreEntriesInAScopeThanK) {
  const Tensor x = TensorOf({2, 4}, {1, 2, 3, 4, 0, 0, 0, 0});
  const auto payload = *EncodeToBytes(TopK(0.5), x);  // all four in the first sample
  EXPECT_TRUE(DecodeFromBytes(TopK(0.5), payload, {2, 4}).ok());
  EXPECT_FALSE(DecodeFromBytes(TopK(0.5, Scope::kSample), payload, {2, 4}).ok());
}

TEST(TopKTest, RefusesANonFiniteValue) {
  auto payload = *EncodeToBytes(TopK(0.5), TensorOf({1, 2, 3, 4}));
  payload[8 + 3] = 0x7F;
  payload[8 + 2] = 0x80;
  EXPECT_FALSE(DecodeFromBytes(TopK(0.5), payload, {4}).ok());
}

TEST(TopKTest, RefusesPackedIndicesOutOfOrder) {
  std::vector<float> x(4096);
  x[17] = 1;
  x[4000] = 1;
  auto payload = *EncodeToBytes(TopK(1), TensorOf(x));
  ASSERT_EQ(payload[0], static_cast<int>(IndexCoding::kPacked));
  payload[16] = payload[17] = payload[18] = 0;  // twice index 0
  const auto decoded = DecodeFromBytes(TopK(1), payload, {4096});
  EXPECT_THAT(std::string(decoded.status().message()), HasSubstr("out of order"));
}

TEST(TopKTest, RefusesSetBitsBeyondTheTensor) {
  auto payload = *EncodeToBytes(TopK(0.8), TensorOf({1, 2, 3, 4, 5}));
  ASSERT_EQ(payload[0], static_cast<int>(IndexCoding::kBitmap));
  payload.back() = 0xF0;  // as many bits, three of them for elements 5 to 7
  EXPECT_FALSE(DecodeFromBytes(TopK(0.8), payload, {5}).ok());
}

}  // namespace
}  // namespace thinwire
