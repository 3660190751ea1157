#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compress/codecs/round_trip_testing.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

constexpr Fp8Format kFormats[] = {Fp8Format::kE4M3, Fp8Format::kE5M2};

CodecSpec Fp8(Fp8Format format) {
  CodecSpec spec;
  spec.kind = CodecKind::kFp8;
  spec.format = format;
  return spec;
}

// Decodes by the OCP specification's tables: sign, exponent, fraction.
double ValueOf(Fp8Format format, uint32_t code) {
  const int fraction_bits = format == Fp8Format::kE4M3 ? 3 : 2;
  const int bias = format == Fp8Format::kE4M3 ? 7 : 15;
  const int exponent = (code & 0x7F) >> fraction_bits;
  const int fraction = code & ((1 << fraction_bits) - 1);
  const double sign = code & 0x80 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
}

// 0x7E and 0x7B: S.1111.111 is NaN in e4m3; in e5m2 the last exponent holds infinity and NaN.
int LargestCode(Fp8Format format) { return format == Fp8Format::kE4M3 ? 0x7E : 0x7B; }

int ExponentOf(Fp8Format format, const std::vector<float>& x) {
  double largest = 0;
  for (float value : x) largest = std::max(largest, std::fabs(static_cast<double>(value)));
  if (largest == 0) return 0;
  int e = 126;
  while (std::ldexp(largest, e) > ValueOf(format, LargestCode(format))) --e;
  return e;
}

// Finds the nearest code by a search of all, ties to the even one.
std::vector<float> Reference(Fp8Format format, const std::vector<float>& x) {
  const int e = ExponentOf(format, x);
  std::vector<float> y;
  for (float value : x) {
    const double scaled = std::fabs(std::ldexp(static_cast<double>(value), e));
    int best = 0;
    for (int code = 1; code <= LargestCode(format); ++code) {
      const double gain =
          std::fabs(ValueOf(format, best) - scaled) - std::fabs(ValueOf(format, code) - scaled);
      if (gain > 0 || (gain == 0 && code % 2 == 0)) best = code;
    }
    const double decoded = std::ldexp(ValueOf(format, best), -e);
    y.push_back(static_cast<float>(std::signbit(value) ? -decoded : decoded));
  }
  return y;
}

std::vector<uint8_t> PayloadOf(int16_t exponent, const std::vector<uint8_t>& codes) {
  std::vector<uint8_t> payload(2 + codes.size());
  std::memcpy(payload.data(), &exponent, 2);
  std::copy(codes.begin(), codes.end(), payload.begin() + 2);
  return payload;
}

TEST(Fp8Test, EveryCodePointHasTheValueOfTheSpecification) {
  for (Fp8Format format : kFormats) {
    std::vector<uint8_t> codes;
    for (int code = 0; code < 256; ++code) {
      if ((code & 0x7F) <= LargestCode(format)) codes.push_back(code);
    }
    const Shape shape = {static_cast<int64_t>(codes.size())};
    for (int exponent : {0, 5, -30, 126}) {
      const std::vector<float> y =
          FloatsOf(*DecodeFromBytes(Fp8(format), PayloadOf(exponent, codes), shape));
      for (size_t i = 0; i < codes.size(); ++i) {
        ASSERT_EQ(y[i], std::ldexp(ValueOf(format, codes[i]), -exponent)) << int{codes[i]};
        ASSERT_EQ(std::signbit(y[i]), codes[i] >= 0x80);
      }
    }
  }
}

TEST(Fp8Test, IsTheNearestCodeOfAScaledTensor) {
  for (Fp8Format format : kFormats) {
    for (size_t n : {1, 2, 3, 7, 15, 16, 17, 33, 1000, 4095, 4097}) {
      const std::vector<float> x = RandomValues(n, n);
      EXPECT_EQ(*RoundTrip(Fp8(format), TensorOf(x)), Reference(format, x)) << n;
    }
  }
}

// Tests values between each value and the next: below, at and above the middle.
TEST(Fp8Test, TiesGoToEven) {
  for (Fp8Format format : kFormats) {
    const float top = ValueOf(format, LargestCode(format));
    for (int code = 0; code < LargestCode(format); ++code) {
      const float low = ValueOf(format, code), high = ValueOf(format, code + 1);
      const float middle = (low + high) / 2;
      const std::vector<float> x = {top, std::nextafter(middle, low), middle, -middle,
                                    std::nextafter(middle, high)};
      const float even = code % 2 ? high : low;
      EXPECT_THAT(*RoundTrip(Fp8(format), TensorOf(x)),
                  testing::ElementsAre(top, low, even, -even, high))
          << code;
    }
  }
}

TEST(Fp8Test, TheLargestValueIsBroughtToTheUpperEnd) {
  for (Fp8Format format : kFormats) {
    for (float largest : {1.0f, 448.0f, 449.0f, 57344.0f, 57345.0f, 1e-20f, 1e-30f, 1e30f}) {
      const auto payload = *EncodeToBytes(Fp8(format), TensorOf({-largest, 0}));
      int16_t exponent;
      std::memcpy(&exponent, payload.data(), 2);
      EXPECT_LE(std::ldexp(largest, exponent), ValueOf(format, LargestCode(format)));
      EXPECT_GT(std::ldexp(largest, exponent + 1), ValueOf(format, LargestCode(format)));
    }
  }
}

TEST(Fp8Test, TinyAndHugeTensorsKeepTheirPrecision) {
  for (Fp8Format format : kFormats) {
    const float half_step = format == Fp8Format::kE4M3 ? 0x1p-4f : 0x1p-3f;
    for (float scale : {1e-36f, 1e-20f, 1e-7f, 1e10f, 1e38f}) {
      const std::vector<float> x = {scale, -2 * scale, 0.1f * scale, 0};
      const std::vector<float> y = *RoundTrip(Fp8(format), TensorOf(x));
      for (int i = 0; i < 4; ++i) EXPECT_NEAR(y[i], x[i], std::fabs(x[i]) * half_step) << scale;
    }
  }
}

TEST(Fp8Test, TheLargestFloatsStayFinite) {
  const float max = std::numeric_limits<float>::max();
  EXPECT_THAT(*RoundTrip(Fp8(Fp8Format::kE4M3), TensorOf({max, -max, 0x1.0p127f})),
              testing::ElementsAre(0x1.Ep127f, -0x1.Ep127f, 0x1p127f));
  EXPECT_THAT(*RoundTrip(Fp8(Fp8Format::kE5M2), TensorOf({max, -max, 0x1.Cp127f})),
              testing::ElementsAre(0x1.Cp127f, -0x1.Cp127f, 0x1.Cp127f));
}

TEST(Fp8Test, ZerosAndDenormalsTravel) {
  for (Fp8Format format : kFormats) {
    const std::vector<float> y = *RoundTrip(Fp8(format), TensorOf({0.0f, -0.0f}));
    EXPECT_TRUE(y[0] == 0 && !std::signbit(y[0]) && y[1] == 0 && std::signbit(y[1]));
    const std::vector<float> x = {1e-41f, -3e-40f, 2e-42f, 0};
    EXPECT_EQ(*RoundTrip(Fp8(format), TensorOf(x)), Reference(format, x));
  }
}

TEST(Fp8Test, NonFiniteInputIsAnErrorThatNamesTheElement) {
  for (float bad : {NAN, INFINITY, -INFINITY}) {
    for (size_t at : {0, 17, 99}) {
      std::vector<float> x = RandomValues(100, 9);
      x[at] = bad;
      const auto payload = EncodeToBytes(Fp8(Fp8Format::kE5M2), TensorOf(x));
      ASSERT_EQ(payload.status().code(), absl::StatusCode::kOutOfRange);
      EXPECT_THAT(std::string(payload.status().message()),
                  HasSubstr("fp8: element " + std::to_string(at)));
    }
  }
}

TEST(Fp8Test, RefusesCodesThatAreNoNumber) {
  for (Fp8Format format : kFormats) {
    for (int code = LargestCode(format) + 1; code < 0x80; ++code) {
      for (int sign : {0, 0x80}) {
        std::vector<uint8_t> codes(40, 0x30);
        codes[37] = code | sign;
        EXPECT_FALSE(DecodeFromBytes(Fp8(format), PayloadOf(0, codes), {40}).ok()) << code;
      }
    }
  }
}

TEST(Fp8Test, RefusesWhatWouldOverflow) {
  const int least[] = {-120, -113};
  for (Fp8Format format : kFormats) {
    const int e = least[static_cast<int>(format)];
    EXPECT_TRUE(DecodeFromBytes(Fp8(format), PayloadOf(e, {0x77}), {1}).ok());
    EXPECT_FALSE(DecodeFromBytes(Fp8(format), PayloadOf(e, {0x78}), {1}).ok());
    EXPECT_FALSE(DecodeFromBytes(Fp8(format), PayloadOf(e - 1, {0x10}), {1}).ok());
    EXPECT_FALSE(DecodeFromBytes(Fp8(format), PayloadOf(127, {0x10}), {1}).ok());
  }
}

}  // namespace
}  // namespace thinwire
