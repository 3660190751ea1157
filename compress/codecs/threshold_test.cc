#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compress/codecs/round_trip_testing.h"
#include "compress/layout.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CodecSpec Threshold(double threshold, RelativeTo relative_to = RelativeTo::kAbsolute) {
  CodecSpec spec;
  spec.kind = CodecKind::kThreshold;
  spec.threshold = threshold;
  spec.relative_to = relative_to;
  return spec;
}

// Returns the root mean square, with its sum in the order of docs/compression.md.
double Rms(const std::vector<float>& x) {
  double sum = 0;
  for (size_t begin = 0; begin < x.size(); begin += 4096) {
    double stretch = 0;
    for (size_t lane = 0; lane < 16; ++lane) {
      double lane_sum = 0;
      for (size_t i = begin + lane; i < std::min(begin + 4096, x.size()); i += 16) {
        lane_sum += static_cast<double>(x[i]) * x[i];
      }
      stretch += lane_sum;
    }
    sum += stretch;
  }
  return std::sqrt(sum / x.size());
}

std::vector<float> Reference(const CodecSpec& spec, std::vector<float> x) {
  double unit = 1;
  if (spec.relative_to == RelativeTo::kRms) unit = Rms(x);
  if (spec.relative_to == RelativeTo::kMax) {
    unit = 0;
    for (float value : x) unit = std::max<double>(unit, std::fabs(value));
  }
  const double threshold = spec.threshold * unit;
  for (float& value : x) {
    if (!(std::fabs(static_cast<double>(value)) >= threshold)) value = 0;
  }
  return x;
}

TEST(ThresholdTest, KeepsWhatIsAtLeastTheThreshold) {
  EXPECT_THAT(*RoundTrip(Threshold(2), TensorOf({1.9f, -2, 2, 0, -5, 1.9999999f})),
              ElementsAre(0, -2, 2, 0, -5, 0));
}

TEST(ThresholdTest, SelectsAsTheFormulaDoesForEveryShape) {
  for (int64_t n : {1, 2, 15, 16, 17, 63, 64, 65, 4095, 4096, 4097, 20001}) {
    const std::vector<float> smooth = RandomValues(n, 3);
    const std::vector<float> relu = RandomValues(n, 4, /*relu=*/true);
    for (const auto& x : {smooth, relu}) {
      for (RelativeTo to : {RelativeTo::kAbsolute, RelativeTo::kRms, RelativeTo::kMax}) {
        for (double threshold : {1e-30, 0.1, 0.5, 1.0, 1.5, 100.0}) {
          const CodecSpec spec = Threshold(threshold, to);
          EXPECT_EQ(*RoundTrip(spec, TensorOf(x)), Reference(spec, x)) << spec.ToString() << n;
        }
      }
    }
  }
}

// Tests that a threshold between two neighbouring fp32 numbers keeps the upper one alone.
TEST(ThresholdTest, IsNotRoundedToFp32) {
  const float upper = std::nextafter(1.0f, 2.0f);
  const double between = 0.5 * (1.0 + upper);
  for (double threshold : {between, 1.0 + 1e-12, static_cast<double>(upper)}) {
    EXPECT_THAT(*RoundTrip(Threshold(threshold), TensorOf({1, upper})), ElementsAre(0, upper));
  }
}

TEST(ThresholdTest, RelativeToTheLargestOneIsTheLargest) {
  EXPECT_THAT(*RoundTrip(Threshold(1, RelativeTo::kMax), TensorOf({1, -3, 2, 3, 2.99f})),
              ElementsAre(0, -3, 0, 3, 0));
}

// All have the root mean square itself.
TEST(ThresholdTest, AConstantTensorIsKeptWhole) {
  for (RelativeTo to : {RelativeTo::kRms, RelativeTo::kMax}) {
    const std::vector<float> x(1000, -0.75f);
    EXPECT_EQ(*RoundTrip(Threshold(1, to), TensorOf(x)), x);
  }
}

TEST(ThresholdTest, ZerosAreNeverSent) {
  for (RelativeTo to : {RelativeTo::kAbsolute, RelativeTo::kRms, RelativeTo::kMax}) {
    const auto payload = *EncodeToBytes(Threshold(1e-300, to), TensorOf({0, -0.0f, 0}));
    EXPECT_EQ(payload.size(), 8u);
  }
  EXPECT_EQ((*EncodeToBytes(Threshold(1e-300), TensorOf({0, 1e-45f, 0})))[4], 1);
}

TEST(ThresholdTest, OneAboveEverythingSendsNothing) {
  EXPECT_EQ(EncodeToBytes(Threshold(3e38), TensorOf({1, 2, 3}))->size(), 8u);
  EXPECT_EQ(EncodeToBytes(Threshold(3e38, RelativeTo::kMax), TensorOf({1, 3e38f}))->size(), 8u);
}

TEST(ThresholdTest, KeepsDenormals) {
  EXPECT_THAT(*RoundTrip(Threshold(0.5, RelativeTo::kMax), TensorOf({1e-44f, 1e-45f, -6e-45f})),
              ElementsAre(1e-44f, 0, -6e-45f));
}

TEST(ThresholdTest, AllEntriesFitTheLongestPayload) {
  for (Values values : {Values::kF32, Values::kF16, Values::kUniform}) {
    for (int64_t n : {1, 7, 8, 9, 100, 1000}) {
      CodecSpec spec = Threshold(1e-30);
      spec.values = values;
      const size_t bytes = EncodeToBytes(spec, TensorOf(RandomValues(n, 1)))->size();
      EXPECT_LE(bytes, CodecOf(spec)->MaxPayloadBytes({n}, DType::kF32));
    }
  }
}

TEST(ThresholdTest, NonFiniteInputIsAnErrorThatNamesTheElement) {
  for (float bad : {NAN, INFINITY, -INFINITY}) {
    std::vector<float> x = RandomValues(100, 9);
    x[77] = bad;
    for (RelativeTo to : {RelativeTo::kAbsolute, RelativeTo::kRms, RelativeTo::kMax}) {
      EXPECT_THAT(std::string(EncodeToBytes(Threshold(1, to), TensorOf(x)).status().message()),
                  HasSubstr("threshold: element 77"));
    }
  }
}

TEST(ThresholdTest, RefusesMoreEntriesThanElements) {
  auto payload = *EncodeToBytes(Threshold(1), TensorOf({1, 2, 3}));
  payload[4] = 4;
  EXPECT_THAT(std::string(DecodeFromBytes(Threshold(1), payload, {3}).status().message()),
              HasSubstr("threshold: 4 entries, want at most 3"));
}

}  // namespace
}  // namespace thinwire
