#include "compress/entropy/pairs_frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/random.h"
#include "compress/entropy/frame.h"
#include "compress/entropy/pairs_layout.h"
#include "hwy/highway.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<uint8_t>;

// Returns zigzag codes of a normal source of deviation `scale`, rounded to nearest: sums of twelve
// uniform numbers.
Bytes Codes(size_t n, float scale, uint64_t seed) {
  RandomStream random(seed);
  Bytes codes(n);
  for (uint8_t& code : codes) {
    float sum = -6;
    for (int j = 0; j < 12; ++j) sum += random.NextFloat();
    const auto rounded = static_cast<int>(std::lround(sum * scale));
    code = static_cast<uint8_t>(rounded < 0 ? -2 * rounded - 1 : 2 * rounded);
  }
  return codes;
}

// Codes with other bytes on both sides.
struct String {
  Bytes bytes;
  CodesPlace place;
};
String StringOf(size_t n, float scale, size_t around) {
  String string{Codes(n, scale, n), {around, n, {}}};
  for (size_t i = 0; i < n; i += 4999) string.bytes[i] = 200;
  const Bytes sides = {9, 200, 255, 3, 17};
  for (size_t i = 0; i < around; ++i) {
    string.bytes.insert(string.bytes.begin(), sides[i % 5]);
    string.bytes.push_back(sides[i % 4]);
  }
  return string;
}

Bytes FrameOf(const String& string) {
  const auto frame = PairsFrameWriter(string.bytes, string.place).Write();
  return {frame.begin(), frame.end()};
}
std::string RefusalOf(const Bytes& frame, size_t most) {
  const auto bytes = ReadEntropyFrame(frame, most);
  EXPECT_EQ(bytes.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(bytes.status().message());
}

double EntropyBytes(const Bytes& codes) {
  double counts[256] = {}, bits = 0;
  for (const uint8_t code : codes) ++counts[code];
  for (const double count : counts) {
    if (count > 0) bits -= count * std::log2(count / static_cast<double>(codes.size()));
  }
  return bits / 8;
}

TEST(PairsFrameTest, GivesBackCodesAndWhatStandsAroundThem) {
  for (const size_t n : {90000u, 90001u, 90063u, 262144u, 262145u, 600001u}) {
    for (const float scale : {0.8f, 1.5f}) {
      for (const size_t around : {0u, 1u, 7u}) {
        const String string = StringOf(n, scale, around);
        const Bytes frame = FrameOf(string);
        ASSERT_FALSE(frame.empty()) << n << " " << scale;
        const auto read = ReadEntropyFrame(frame, string.bytes.size());
        ASSERT_TRUE(read.ok()) << read.status();
        EXPECT_EQ(Bytes(read->begin(), read->end()), string.bytes) << n << " " << scale;
      }
    }
  }
}

// Tests independent codes: above their entropy a frame takes the table, the states, and what is
// lost because no frequency is below 2^-12.
TEST(PairsFrameTest, TakesOnePercentMoreThanTheEntropy) {
  for (const float scale : {0.5f, 0.8f, 1.0f, 1.5f}) {
    const String string = StringOf(1 << 20, scale, 0);
    const Bytes frame = FrameOf(string);
    ASSERT_FALSE(frame.empty()) << scale;
    EXPECT_LT(static_cast<double>(frame.size()), 1.01 * EntropyBytes(string.bytes) + 512) << scale;
  }
}

TEST(PairsFrameTest, IsAsLongAsExpected) {
  for (const float scale : {0.1f, 0.5f, 1.5f, 3.0f}) {
    for (const size_t n : {5000u, 50000u, 600001u}) {
      const String string = StringOf(n, scale, 5);
      const PairsFrameWriter writer(string.bytes, string.place);
      const auto length = static_cast<double>(writer.Write().size());
      EXPECT_NEAR(writer.expected_bytes(), length, 0.002 * length + 16) << scale << " " << n;
    }
  }
}

TEST(PairsFrameTest, KnowsHowOftenEachCodeIsThere) {
  for (const size_t n : {1u, 63u, 5001u}) {
    const String string = StringOf(n, 3, 7);
    Frequencies counts = {};
    for (size_t i = 0; i < n; ++i) ++counts[string.bytes[7 + i]];
    EXPECT_EQ(PairsFrameWriter(string.bytes, string.place).CountsOfCodes(), counts) << n;
  }
}

TEST(PairsFrameTest, ManyLargeCodesDoNotPay) {
  EXPECT_FALSE(MayPayInPairs(Codes(100000, 8.0f, 1)));
  EXPECT_TRUE(MayPayInPairs(Codes(100000, 2.0f, 1)));
  EXPECT_TRUE(MayPayInPairs(Codes(1000, 8.0f, 1))) << "so few are taken both ways";
}

TEST(PairsFrameTest, IsTheSameOnEverySimdTarget) {
  const String string = StringOf(300007, 1.0f, 5);
  const Bytes frame = FrameOf(string);
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    EXPECT_EQ(FrameOf(string), frame) << hwy::TargetName(target);
    const auto read = ReadEntropyFrame(frame, string.bytes.size());
    ASSERT_TRUE(read.ok()) << hwy::TargetName(target) << read.status();
    EXPECT_EQ(Bytes(read->begin(), read->end()), string.bytes) << hwy::TargetName(target);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST(PairsFrameTest, RefusesEveryCutAndEveryAddition) {
  const String string = StringOf(50000, 1.0f, 3);
  Bytes frame = FrameOf(string);
  ASSERT_EQ(frame[4], kPairsForm);
  for (size_t length = 0; length < frame.size(); ++length) {
    RefusalOf(Bytes(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(length)), 50006);
  }
  frame.push_back(0);
  EXPECT_THAT(RefusalOf(frame, 50006), HasSubstr("bytes behind the last part"));
}

TEST(PairsFrameTest, RefusesWhatCannotBe) {
  const String string = StringOf(50000, 1.0f, 3);
  const Bytes frame = FrameOf(string);
  const auto with = [&](size_t at, uint8_t byte) {
    Bytes changed = frame;
    changed[at] = byte;
    return RefusalOf(changed, 50006);
  };
  EXPECT_THAT(RefusalOf(frame, 50005), HasSubstr("a frame of 50006 bytes, want at most 50005"));
  EXPECT_THAT(with(5, 7), HasSubstr("codes up to byte 50007 of 50006"));
  EXPECT_THAT(with(17, 0), HasSubstr("0 parts of 782 rows"));
  EXPECT_THAT(with(18, 4), HasSubstr("1025 parts of 782 rows"));
  // The large codes stand behind the six bytes around the codes.
  ASSERT_GE(frame[13], 1) << "large codes";
  EXPECT_THAT(with(25, 14), HasSubstr("large codes that are too few or not large"));
}

// Tests that a changed bit gives other bytes or an error, and touches nothing outside (the
// sanitizers look).
TEST(PairsFrameTest, AChangedBitDoesNoHarm) {
  const String string = StringOf(50000, 1.0f, 3);
  Bytes frame = FrameOf(string);
  for (size_t bit = 0; bit < 8 * frame.size(); bit += 7) {
    frame[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    const auto read = ReadEntropyFrame(frame, 100000);
    if (read.ok()) {
      EXPECT_NE(Bytes(read->begin(), read->end()), string.bytes) << bit;
    }
    frame[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
  }
}

}  // namespace
}  // namespace thinwire
