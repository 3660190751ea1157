#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "compress/codecs/round_trip_testing.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;

CodecSpec Cast(CodecKind kind) {
  CodecSpec spec;
  spec.kind = kind;
  return spec;
}

TEST(NoneTest, PayloadIsTheTensorsMemory) {
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    const std::vector<float> x = {1, -2, 0.5f, NAN, INFINITY};
    const Tensor tensor = dtype == DType::kF32 ? TensorOf(x) : BFloatTensorOf({5}, x);
    const auto payload = *EncodeToBytes(Cast(CodecKind::kNone), tensor);
    ASSERT_EQ(payload.size(), 5 * SizeOf(dtype));
    EXPECT_EQ(std::memcmp(payload.data(), tensor.data(), payload.size()), 0);
    const Tensor back = *DecodeFromBytes(Cast(CodecKind::kNone), payload, {5}, dtype);
    EXPECT_EQ(std::memcmp(back.data(), tensor.data(), payload.size()), 0);
  }
}

TEST(Bf16Test, RoundsToNearestEven) {
  EXPECT_THAT(*RoundTrip(Cast(CodecKind::kBf16),
                         TensorOf({1.0f, 0x1.01p0f, 0x1.03p0f, 0x1.0101p0f, -0x1.03p0f})),
              ElementsAre(1.0f, 0x1p0f, 0x1.04p0f, 0x1.02p0f, -0x1.04p0f));
}

TEST(Bf16Test, CarriesNaNAndInfinity) {
  const auto y = *RoundTrip(Cast(CodecKind::kBf16), TensorOf({NAN, INFINITY, -INFINITY}));
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], INFINITY);
  EXPECT_EQ(y[2], -INFINITY);
}

TEST(Fp16Test, KeepsElevenBits) {
  const std::vector<float> x = RandomValues(1000, 1);
  const std::vector<float> y = *RoundTrip(Cast(CodecKind::kFp16), TensorOf(x));
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], x[i], std::fabs(x[i]) * 0x1p-11f);
}

TEST(Fp16Test, TiesGoToEven) {
  EXPECT_THAT(*RoundTrip(Cast(CodecKind::kFp16), TensorOf({0x1.002p0f, 0x1.006p0f})),
              ElementsAre(0x1.0p0f, 0x1.008p0f));
}

TEST(Fp16Test, TinyAndHugeTensorsKeepTheirPrecision) {
  for (float scale : {1e-38f, 1e-20f, 1e-7f, 1e10f, 1e38f}) {
    const std::vector<float> x = {scale, -2 * scale, 0.1f * scale, 0};
    const std::vector<float> y = *RoundTrip(Cast(CodecKind::kFp16), TensorOf(x));
    for (int i = 0; i < 4; ++i) EXPECT_NEAR(y[i], x[i], std::fabs(x[i]) * 0x1p-10f) << scale;
  }
}

TEST(Fp16Test, TheLargestFloatsStayFinite) {
  const float max = std::numeric_limits<float>::max();
  const std::vector<float> y = *RoundTrip(Cast(CodecKind::kFp16), TensorOf({max, -max}));
  EXPECT_TRUE(std::isfinite(y[0]) && std::isfinite(y[1]));
}

TEST(Fp16Test, CarriesNaNAndInfinityBesideFiniteValues) {
  const auto y = *RoundTrip(Cast(CodecKind::kFp16), TensorOf({NAN, INFINITY, -INFINITY, 1e-9f}));
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], INFINITY);
  EXPECT_EQ(y[2], -INFINITY);
  EXPECT_NEAR(y[3] / 1e-9f, 1, 0x1p-11);
}

TEST(Fp16Test, RefusesAnExponentThatWouldOverflow) {
  auto payload = *EncodeToBytes(Cast(CodecKind::kFp16), TensorOf({1, 2}));
  payload[1] = 0x70;
  EXPECT_FALSE(DecodeFromBytes(Cast(CodecKind::kFp16), payload, {2}).ok());
}

}  // namespace
}  // namespace thinwire
