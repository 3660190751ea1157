#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compress/codecs/round_trip_testing.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

CodecSpec Blockwise8(uint32_t block) {
  CodecSpec spec;
  spec.kind = CodecKind::kBlockwise8;
  spec.block = block;
  return spec;
}

// Returns the values by the published construction: in each decade below 1, [0.1, 1] is cut into
// 2^i parts, and their middles are the values.
std::vector<float> Codebook() {
  std::vector<float> values = {0, 1};
  for (int i = 0; i < 7; ++i) {
    const long double parts = 1 << i, scale = std::pow(10.0L, i - 6);
    for (int j = 0; j < 1 << i; ++j) {
      const long double low = 0.1L + 0.9L * j / parts, high = 0.1L + 0.9L * (j + 1) / parts;
      const float value = static_cast<float>(scale * (low + high) / 2);
      values.push_back(value);
      values.push_back(-value);
    }
  }
  std::sort(values.begin(), values.end());
  return values;
}

// Finds the nearest value by a search of all; the first of equally near ones.
int NearestCode(const std::vector<float>& codebook, float t) {
  int best = 0;
  for (int code = 1; code < 256; ++code) {
    if (std::fabs(static_cast<double>(codebook[code]) - t) <
        std::fabs(static_cast<double>(codebook[best]) - t)) {
      best = code;
    }
  }
  return best;
}

std::vector<uint8_t> ReferencePayload(const std::vector<float>& x, size_t block) {
  const std::vector<float> codebook = Codebook();
  std::vector<uint8_t> payload, codes;
  for (size_t begin = 0; begin < x.size(); begin += block) {
    const size_t end = std::min(begin + block, x.size());
    float absmax = 0;
    for (size_t i = begin; i < end; ++i) absmax = std::max(absmax, std::fabs(x[i]));
    for (int byte = 0; byte < 4; ++byte) {
      payload.push_back(reinterpret_cast<const uint8_t*>(&absmax)[byte]);
    }
    for (size_t i = begin; i < end; ++i) {
      codes.push_back(absmax > 0 ? NearestCode(codebook, x[i] / absmax) : 127);
    }
  }
  payload.resize(payload.size() + codes.size());
  std::copy(codes.begin(), codes.end(), payload.end() - codes.size());
  return payload;
}

TEST(Blockwise8Test, TheCodebookIsThePublishedOne) {
  std::vector<uint8_t> payload = {0, 0, 0x80, 0x3F};  // absmax 1
  for (int code = 0; code < 256; ++code) payload.push_back(code);
  const std::vector<float> values = FloatsOf(*DecodeFromBytes(Blockwise8(4096), payload, {256}));
  EXPECT_EQ(values, Codebook());
  EXPECT_EQ(values[127], 0);
  EXPECT_EQ(values[255], 1);
  EXPECT_NEAR(values[0], -0.99296875f, 1e-7);
  EXPECT_NEAR(values[128], 5.5e-7f, 1e-12);
}

TEST(Blockwise8Test, IsTheNearestEntryForEveryShapeAndBlock) {
  for (size_t n : {0, 1, 2, 7, 16, 17, 33, 1000, 4095, 4097, 9001}) {
    const std::vector<float> x = RandomValues(n, n);
    for (uint32_t block : {1u, 5u, 64u, 4096u, 5000u, 4000000000u}) {
      EXPECT_EQ(*EncodeToBytes(Blockwise8(block), TensorOf(x)), ReferencePayload(x, block))
          << n << " in blocks of " << block;
    }
  }
}

// Tests values between each entry and the next: below, at and above the middle.
TEST(Blockwise8Test, TiesGoToTheLowerEntry) {
  const std::vector<float> codebook = Codebook();
  int num_ties = 0;
  for (int code = 0; code < 255; ++code) {
    const double exact = (static_cast<double>(codebook[code]) + codebook[code + 1]) / 2;
    const float middle = static_cast<float>(exact);
    num_ties += middle == exact;
    const std::vector<float> x = {1, std::nextafter(middle, -1.0f), middle,
                                  std::nextafter(middle, 1.0f)};
    const auto payload = *EncodeToBytes(Blockwise8(4096), TensorOf(x));
    EXPECT_EQ(payload[5], code);
    EXPECT_EQ(payload[6], middle > exact ? code + 1 : code);
    EXPECT_EQ(payload[7], code + 1);
  }
  EXPECT_GT(num_ties, 10);
}

TEST(Blockwise8Test, ManyMagnitudesOfEitherSign) {
  std::vector<float> x = {1};
  for (uint32_t bits = 0; bits < 0x3F800000; bits += 9973 * 3) {
    float t;
    std::memcpy(&t, &bits, 4);
    x.push_back(t);
    x.push_back(-t);
  }
  EXPECT_EQ(*EncodeToBytes(Blockwise8(1u << 31), TensorOf(x)), ReferencePayload(x, 1u << 31));
}

TEST(Blockwise8Test, TheLargestOfABlockIsExactIfPositive) {
  for (float largest : {1.0f, 1e-42f, 0.3f, std::numeric_limits<float>::max()}) {
    const std::vector<float> y =
        *RoundTrip(Blockwise8(2), TensorOf({largest, 0, -largest, largest / 2}));
    EXPECT_EQ(y[0], largest);
    EXPECT_EQ(y[1], 0);
    EXPECT_NEAR(y[2] / largest, -1, largest < 1e-38f ? 0.01 : 0.0071);
  }
}

TEST(Blockwise8Test, ZerosAreExact) {
  const std::vector<float> zeros(100, 0.0f);
  EXPECT_EQ(*RoundTrip(Blockwise8(64), TensorOf(zeros)), zeros);
  EXPECT_EQ((*EncodeToBytes(Blockwise8(64), TensorOf({0.0f, -0.0f}))),
            (std::vector<uint8_t>{0, 0, 0, 0, 127, 127}));
}

TEST(Blockwise8Test, BlocksDoNotSeeEachOther) {
  std::vector<float> x = RandomValues(8192, 3);
  for (int i = 4096; i < 8192; ++i) x[i] *= 1e-12f;
  const std::vector<float> y = *RoundTrip(Blockwise8(4096), TensorOf(x));
  for (int i = 4096; i < 8192; ++i) ASSERT_NEAR(y[i], x[i], 1.5e-12f * 0.0071f);
}

TEST(Blockwise8Test, NonFiniteInputIsAnErrorThatNamesTheElement) {
  for (float bad : {NAN, INFINITY, -INFINITY}) {
    for (size_t at : {0, 17, 99}) {
      std::vector<float> x = RandomValues(100, 9);
      x[at] = bad;
      const auto payload = EncodeToBytes(Blockwise8(32), TensorOf(x));
      ASSERT_EQ(payload.status().code(), absl::StatusCode::kOutOfRange);
      EXPECT_THAT(std::string(payload.status().message()),
                  HasSubstr("blockwise8: element " + std::to_string(at)));
    }
  }
}

TEST(Blockwise8Test, RefusesAnAbsmaxThatIsNoMagnitude) {
  const std::vector<uint8_t> payload = *EncodeToBytes(Blockwise8(2), TensorOf({1, 2, 3}));
  for (const std::vector<uint8_t>& absmax : {std::vector<uint8_t>{0, 0, 0x80, 0x7F},
                                             {0, 0, 0xC0, 0x7F},
                                             {0, 0, 0x80, 0xBF},
                                             {0, 0, 0, 0x80}}) {
    for (int at : {0, 4}) {
      std::vector<uint8_t> bad = payload;
      std::copy(absmax.begin(), absmax.end(), bad.begin() + at);
      EXPECT_FALSE(DecodeFromBytes(Blockwise8(2), bad, {3}).ok());
    }
  }
}

}  // namespace
}  // namespace thinwire
