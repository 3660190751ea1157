#include "compress/entropy/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "base/random.h"
#include "compress/entropy/layout.h"
#include "compress/entropy/pairs_layout.h"
#include "compress/entropy/plain_frame_testing.h"
#include "hwy/highway.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<uint8_t>;

Bytes FrameOf(const Bytes& bytes, const CodesPlace& codes = {}) {
  const auto frame = EntropyFrame(bytes, codes);
  return {frame.begin(), frame.end()};
}
absl::StatusOr<Bytes> Read(const Bytes& frame, size_t most) {
  const auto bytes = ReadEntropyFrame(frame, most);
  if (!bytes.ok()) return bytes.status();
  return Bytes(bytes->begin(), bytes->end());
}
std::string RefusalOf(const Bytes& frame, size_t most) {
  const auto bytes = ReadEntropyFrame(frame, most);
  EXPECT_EQ(bytes.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(bytes.status().message());
}

// The refusals of a frame's first bytes, of one with another byte, and of one with a byte too many.
std::string RefusalOfBegin(const Bytes& frame, size_t length, size_t most) {
  return RefusalOf(Bytes(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(length)), most);
}
std::string RefusalWith(Bytes frame, size_t at, uint8_t byte, size_t most) {
  frame[at] = byte;
  return RefusalOf(frame, most);
}
std::string RefusalOfLonger(Bytes frame, size_t most) {
  frame.push_back(0);
  return RefusalOf(frame, most);
}

// Returns bytes that are distributed as a quantiser's codes: two-sided geometric around 128, with
// the factor `decay` from one to the next.
Bytes Geometric(size_t n, double decay, uint64_t seed) {
  RandomStream random(seed);
  Bytes bytes(n);
  for (uint8_t& byte : bytes) {
    const double u = (random.Next() + 0.5) / 4294967296.0;
    const auto away = static_cast<int>(std::min(127.0, std::log(u) / std::log(decay)));
    byte = static_cast<uint8_t>(128 + (random.Next() % 2 != 0 ? away : -away));
  }
  return bytes;
}

// Returns zigzag codes, each of which is likely to be as large as the one `distance` before it.
Bytes Following(size_t n, size_t distance, uint64_t seed) {
  RandomStream random(seed);
  Bytes bytes(n);
  for (size_t i = 0; i < n; ++i) {
    const int before = i < distance ? 0 : (bytes[i - distance] + 1) / 2;
    const double u = (random.Next() + 0.5) / 4294967296.0;
    const auto magnitude = static_cast<int>(std::min(100.0, -std::log(u) * (0.5 + 0.9 * before)));
    const bool is_negative = magnitude > 0 && random.Next() % 2 != 0;
    bytes[i] = static_cast<uint8_t>(2 * magnitude - (is_negative ? 1 : 0));
  }
  return bytes;
}

// Returns the bits of the bytes if they were drawn from their own frequencies.
double Entropy(const Bytes& bytes) {
  std::array<double, 256> counts = {};
  for (const uint8_t byte : bytes) ++counts[byte];
  double bits = 0;
  for (const double count : counts) {
    if (count > 0) bits -= count * std::log2(count / static_cast<double>(bytes.size()));
  }
  return bits;
}

TEST(EntropyFrameTest, GivesBackEveryString) {
  for (const double decay : {0.01, 0.3, 0.8, 0.97}) {
    for (const size_t n : {200u, 201u, 207u, 208u, 5000u, 100003u}) {
      const Bytes bytes = Geometric(n, decay, n);
      const Bytes frame = FrameOf(bytes);
      if (frame.empty()) continue;  // short, and many different bytes
      EXPECT_EQ(*Read(frame, n), bytes) << decay << " " << n;
    }
    EXPECT_FALSE(FrameOf(Geometric(100003, decay, 1)).empty()) << decay;
  }
}

TEST(EntropyFrameTest, IsAsLongAsTheEntropySays) {
  constexpr size_t kBytes = 400000, kParts = kBytes >> 16;
  constexpr size_t kMostOfAllElse = 4 + 1 + 1 + 2 + 2 * 256 + kParts * (4 + 32 * 4);
  for (const double decay : {0.001, 0.05, 0.3, 0.6, 0.9}) {
    const Bytes bytes = Geometric(kBytes, decay, 7);
    EXPECT_LE(static_cast<double>(FrameOf(bytes).size()),
              1.005 * Entropy(bytes) / 8 + kMostOfAllElse)
        << decay;
  }
}

TEST(EntropyFrameTest, OneByteAgainAndAgainTakesNothing) {
  const Bytes bytes(100000, 77);
  const Bytes frame = FrameOf(bytes);
  EXPECT_EQ(frame.size(), 4 + 1 + 2 + 2 + 2 + 32 * 4u);
  EXPECT_EQ(*Read(frame, bytes.size()), bytes);
}

TEST(EntropyFrameTest, AByteThatIsThereOnceCanBeSaid) {
  Bytes bytes(1 << 20, 0);
  bytes[12345] = 255;
  EXPECT_EQ(*Read(FrameOf(bytes), bytes.size()), bytes);
}

// Returns the number of parts that a frame without neighbours says it has.
int PlainParts(const Bytes& frame) {
  EXPECT_EQ(frame[4], kPartsForm);
  EXPECT_EQ(frame[5], 0) << "neighbours";
  return frame[6] + 256 * frame[7];
}

TEST(EntropyFrameTest, ManyBytesAreInParts) {
  EXPECT_EQ(FrameOf(Geometric(131071, 0.5, 1))[4], 0) << "a single string";
  for (const size_t n : {size_t{131072}, size_t{131073}, size_t{200001}, (size_t{1} << 20) - 1}) {
    const Bytes bytes = Geometric(n, 0.5, n);
    const Bytes frame = FrameOf(bytes);
    EXPECT_EQ(PlainParts(frame), n / 65536) << n;
    EXPECT_EQ(frame, PlainFrameInParts(bytes, n / 65536)) << n;
    EXPECT_EQ(*Read(frame, n), bytes) << n;
  }
}

TEST(EntropyFrameTest, ReadsAStringInAsManyPartsAsItHasRows) {
  for (const size_t n : {1u, 32u, 33u, 1000u, 1024u}) {
    const Bytes bytes = Geometric(n, 0.5, n);
    for (size_t parts = 1; parts <= (n + 31) / 32; ++parts) {
      EXPECT_EQ(*Read(PlainFrameInParts(bytes, parts), n), bytes) << n << " " << parts;
    }
  }
}

TEST(EntropyFrameTest, ReadsManyBytesInASingleString) {
  const Bytes bytes = Geometric(300001, 0.5, 1);
  EXPECT_EQ(*Read(PlainFrameInParts(bytes, 0), bytes.size()), bytes);
}

TEST(EntropyFrameTest, ExpectsThePartsOfManyBytes) {
  for (const double decay : {0.05, 0.5, 0.9}) {
    const Bytes bytes = Geometric(600001, decay, 3);
    EntropyHead head = HeadWithoutNeighbours(bytes.size());
    EntropyTables tables;
    const double expected = ChooseTables({CountsOf(bytes)}, &head, &tables);
    const auto length = static_cast<double>(FrameOf(bytes).size());
    EXPECT_NEAR(expected, length, 0.002 * length + 16) << decay;
  }
}

TEST(EntropyFrameTest, RefusesPartsOfBytesThatCannotBe) {
  const size_t n = 1000;
  const Bytes frame = PlainFrameInParts(Geometric(n, 0.5, 1), 3);
  for (size_t length = 0; length < frame.size(); ++length) {
    RefusalOfBegin(frame, length, n);
  }
  const auto with = [&](size_t at, uint8_t byte) { return RefusalWith(frame, at, byte, n); };
  EXPECT_THAT(with(5, 9), HasSubstr("9 neighbours, want at most 8"));
  EXPECT_THAT(with(6, 0), HasSubstr("0 parts of 32 rows, want 1 to 32"));
  EXPECT_THAT(with(6, 33), HasSubstr("33 parts of 32 rows, want 1 to 32"));
  EXPECT_THAT(with(7, 1), HasSubstr("259 parts of 32 rows"));
  EXPECT_THAT(with(0, 0xE9), HasSubstr("want at most 1000"));
  EXPECT_THAT(RefusalOf({0, 0, 0, 0, kPartsForm, 0, 1, 0}, n), HasSubstr("1 parts of 0 rows"));
  EXPECT_THAT(RefusalOfLonger(frame, n), HasSubstr("bytes behind the last part"));
  absl::Span<const uint8_t> rest = absl::MakeConstSpan(frame).subspan(8);
  Frequencies frequencies;
  ASSERT_TRUE(ReadTable(&rest, &frequencies).ok());
  const size_t lengths = frame.size() - rest.size();
  ASSERT_EQ(frame[lengths + 1], 0) << "a part of fewer than 256 bytes";
  EXPECT_THAT(with(lengths, 127), HasSubstr("a part of 127 bytes, want 128 to"));
  EXPECT_THAT(with(lengths, frame[lengths] - 1), HasSubstr("bytes behind the last part"));
  EXPECT_THAT(with(lengths + 3, 1), HasSubstr("a part of 16777"));
}

// Tests 256 different bytes: their frequencies of 16 are rounded up and down before they add up.
TEST(EntropyFrameTest, FrequenciesAddUpWhateverTheCounts) {
  for (int rare = 1; rare < 256; rare += 17) {
    Bytes bytes;
    for (int byte = 0; byte < 256; ++byte) {
      bytes.insert(bytes.end(), byte < rare ? 1 : 40 + 17 * byte, static_cast<uint8_t>(byte));
    }
    const Bytes frame = FrameOf(bytes);
    ASSERT_FALSE(frame.empty()) << rare;
    EXPECT_EQ(*Read(frame, bytes.size()), bytes) << rare;
  }
}

TEST(EntropyFrameTest, WhatDoesNotGetShorterIsLeft) {
  EXPECT_TRUE(FrameOf({}).empty());
  EXPECT_TRUE(FrameOf({1, 1, 1}).empty());
  Bytes noise(100000);
  RandomStream random(3);
  for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random.Next());
  EXPECT_TRUE(FrameOf(noise).empty());
}

TEST(EntropyFrameTest, RefusesEveryCutAndEveryAddition) {
  const Bytes bytes = Geometric(3000, 0.5, 1);
  Bytes frame = FrameOf(bytes);
  for (size_t length = 0; length < frame.size(); ++length) {
    RefusalOf(Bytes(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(length)), 3000);
  }
  frame.push_back(0);
  EXPECT_THAT(RefusalOf(frame, 3000), HasSubstr("half a word"));
  frame.push_back(0);
  EXPECT_THAT(RefusalOf(frame, 3000), HasSubstr("words that are too many"));
}

// String like ecsq's: steps, then codes of a normal source, then four bytes for each code that has
// no byte. With `has_volume` the size of the codes varies slowly.
struct String {
  Bytes bytes;
  CodesPlace place;
};
String StringOf(size_t n, size_t num_steps, double scale, bool has_volume) {
  RandomStream random(n + num_steps);
  String string{{}, {num_steps, n, {1, 2, 16}}};
  for (size_t i = 0; i < num_steps; ++i) {
    string.bytes.push_back(static_cast<uint8_t>(i % 2 != 0 ? 0x3C : random.Next() % 64));
  }
  Bytes behind;
  for (size_t i = 0; i < n; ++i) {
    double sum = -6;
    for (int j = 0; j < 12; ++j) sum += random.NextFloat();
    const double volume = has_volume ? std::exp(1.5 * std::sin(static_cast<double>(i) / 50)) : 1;
    const auto code = static_cast<int>(std::lround(sum * scale * volume));
    const int zigzag = code < 0 ? -2 * code - 1 : 2 * code;
    string.bytes.push_back(static_cast<uint8_t>(std::min(zigzag, 255)));
    if (zigzag < 255) continue;
    for (int shift = 0; shift < 32; shift += 8)
      behind.push_back(static_cast<uint8_t>(code >> shift));
  }
  string.bytes.insert(string.bytes.end(), behind.begin(), behind.end());
  return string;
}

TEST(EntropyFrameTest, IsWithinAPercentOfTheShortestForm) {
  int of_pairs = 0, of_neighbours = 0, plain = 0;
  for (const size_t n : {300u, 1000u, 4096u, 40000u, 100000u}) {
    for (const size_t num_steps : {size_t{2}, n / 16}) {
      for (const double scale : {0.02, 0.3, 1.0, 3.0, 5.0, 8.0, 40.0, 200.0}) {
        for (const bool has_volume : {false, true}) {
          const String string = StringOf(n, num_steps, scale, has_volume);
          const Bytes frame = FrameOf(string.bytes, string.place);
          const size_t length = frame.empty() ? string.bytes.size() : frame.size();
          size_t shortest = string.bytes.size();
          for (const EntropyForm form :
               {EntropyForm::kPlain, EntropyForm::kNeighbours, EntropyForm::kPairs}) {
            const size_t of_form = EntropyFrameOfForm(form, string.bytes, string.place).size();
            if (of_form > 0) shortest = std::min(shortest, of_form);
          }
          EXPECT_LE(static_cast<double>(length), 1.01 * static_cast<double>(shortest))
              << n << " " << num_steps << " " << scale << " " << has_volume;
          if (frame.empty()) continue;
          EXPECT_EQ(*Read(frame, string.bytes.size()), string.bytes);
          const bool is_plain = frame[4] == 0 || (frame[4] == kPartsForm && frame[5] == 0);
          of_pairs += frame[4] == kPairsForm;
          of_neighbours += frame[4] != kPairsForm && !is_plain;
          plain += is_plain;
        }
      }
    }
  }
  EXPECT_GT(of_pairs, 10);
  EXPECT_GT(of_neighbours, 10);
  EXPECT_GT(plain, 10);
}

TEST(EntropyFrameTest, RefusesMoreThanIsWanted) {
  const Bytes frame = FrameOf(Geometric(3000, 0.5, 1));
  EXPECT_THAT(RefusalOf(frame, 2999), HasSubstr("a frame of 3000 bytes, want at most 2999"));
}

TEST(EntropyFrameTest, RefusesTablesThatCannotBe) {
  const Bytes states(128, 1);
  const auto with = [&](const Bytes& table) {
    Bytes frame = {1, 0, 0, 0, 0};
    frame.insert(frame.end(), table.begin(), table.end());
    frame.insert(frame.end(), states.begin(), states.end());
    return RefusalOf(frame, 100);
  };
  EXPECT_THAT(with({0, 255}), HasSubstr("add up to 0, want 4096"));
  EXPECT_THAT(with({0x8F, 0xFF, 0, 254}), HasSubstr("add up to 4095, want 4096"));
  EXPECT_THAT(with({0x90, 0x00, 0, 255}), HasSubstr("a table of 257 bytes, want 256"));
  EXPECT_THAT(with({0x80, 0x7F, 0, 254}), HasSubstr("a small frequency in two bytes"));
}

TEST(EntropyFrameTest, RefusesStatesThatCannotBe) {
  Bytes frame = {8, 0, 0, 0, 0, 0x90, 0x00, 0, 254};
  frame.resize(frame.size() + 128);
  EXPECT_THAT(RefusalOf(frame, 8), HasSubstr("a state below 2^15"));
  for (size_t lane = 0; lane < 32; ++lane) frame[9 + 4 * lane + 1] = 0x80;
  EXPECT_EQ(*Read(frame, 8), Bytes(8, 0));
  frame[9] = 1;
  EXPECT_THAT(RefusalOf(frame, 8), HasSubstr("do not end where they began"));
}

TEST(EntropyFrameTest, GivesBackCodesWithNeighboursAndWhatStandsAroundThem) {
  for (const size_t n : {2048u, 2049u, 2063u, 4000u, 50007u}) {
    for (const uint32_t distance : {1u, 7u, 100u}) {
      const Bytes codes = Following(n, distance, n);
      for (const size_t around : {0u, 3u, 300u}) {
        Bytes bytes = Geometric(2 * around, 0.97, 5);
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(around), codes.begin(),
                     codes.end());
        const Bytes frame = FrameOf(bytes, {around, n, {3, distance}});
        EXPECT_EQ(*Read(frame, bytes.size()), bytes) << n << " " << distance << " " << around;
        if (n > 10000) {
          EXPECT_LT(frame.size(), FrameOf(bytes).size()) << distance;
        }
      }
    }
  }
}

// Tests codes in parts, of channels-last images whose channels have volumes that change slowly.
// Neighbours are before, beside and above.
Bytes Image(size_t n, size_t channels, size_t width, uint64_t seed) {
  RandomStream random(seed);
  Bytes bytes(n);
  const size_t row = channels * width;
  for (size_t i = 0; i < n; ++i) {
    const auto before = [&](size_t distance) {
      return i < distance ? 0.0 : (bytes[i - distance] + 1) / 2;
    };
    const double u = (random.Next() + 0.5) / 4294967296.0;
    const double near = 0.3 + 0.35 * (before(channels) + before(row)) + 0.2 * before(2 * channels);
    const auto magnitude = static_cast<int>(std::min(100.0, -std::log(u) * near));
    bytes[i] = static_cast<uint8_t>(2 * magnitude - (magnitude > 0 && random.Next() % 2 != 0));
  }
  return bytes;
}

TEST(EntropyFrameTest, ManyCodesAreInPartsWhoseRowsSuitTheirNeighbours) {
  for (const size_t n : {size_t{131072}, size_t{131073}, size_t{200001}, size_t{1} << 20}) {
    for (const auto& [channels, stretches_log2] : {std::pair(64, 0), {16, 1}, {3, 5}}) {
      const Bytes codes = Image(n, channels, 30, n);
      const auto left = static_cast<uint32_t>(channels);
      Bytes bytes(6, 9);
      bytes.insert(bytes.end(), codes.begin(), codes.end());
      bytes.insert(bytes.end(), 5, 8);
      const Bytes frame = FrameOf(bytes, {6, n, {1, 2, left, 2 * left, 30 * left}});
      ASSERT_GT(frame.size(), 30u);
      EXPECT_EQ(frame[4], kPartsForm) << n << " " << channels;
      EXPECT_EQ(frame[6], stretches_log2) << n << " " << channels;
      EXPECT_EQ(frame[15] + 256 * frame[16], n / 65536) << "parts";
      EXPECT_EQ(*Read(frame, bytes.size()), bytes) << n << " " << channels;
      EXPECT_LT(static_cast<double>(frame.size()),
                0.95 * static_cast<double>(FrameOf(bytes).size()))
          << n << " " << channels;
    }
  }
}

TEST(EntropyFrameTest, RefusesPartsThatCannotBe) {
  const size_t n = 131073;
  const Bytes bytes = Image(n, 16, 30, 1);
  const Bytes frame = FrameOf(bytes, {0, n, {16, 480}});
  ASSERT_EQ(frame[4], kPartsForm);
  for (size_t length = 0; length < frame.size(); length += length < 2000 ? 1 : 997) {
    RefusalOfBegin(frame, length, n);
  }
  const auto with = [&](size_t at, uint8_t byte) { return RefusalWith(frame, at, byte, n); };
  EXPECT_THAT(with(5, 9), HasSubstr("9 neighbours, want at most 8"));
  EXPECT_THAT(with(6, 6), HasSubstr("2^6 stretches, want at most 32"));
  EXPECT_THAT(with(13, 3), HasSubstr("codes up to byte"));
  EXPECT_THAT(with(16, 0x7F), HasSubstr("parts of 4097 rows"));
  EXPECT_THAT(with(17, frame[17] | 1), HasSubstr("a boundary before the first sum"));
  EXPECT_THAT(with(19, 0), HasSubstr("a neighbour 0 rows before a code"));
  EXPECT_THAT(RefusalOfLonger(frame, n), HasSubstr("bytes behind the last part"));
  Bytes none = frame;
  none[15] = none[16] = 0;
  EXPECT_THAT(RefusalOf(none, n), HasSubstr("0 parts of 4097 rows"));
}

// Codes that follow a magnitude are as if drawn from their own frequencies; the first ones of each
// part follow nothing. With this many different codes one percent is lost, because no frequency is
// below 2^-12.
TEST(EntropyFrameTest, WithNeighboursIsAsLongAsTheEntropyOfTheContextsSays) {
  constexpr size_t kNumCodes = 1 << 20;
  for (const uint32_t distance : {1u, 64u, 704u}) {
    const Bytes codes = Following(kNumCodes, distance, 3);
    std::array<Bytes, 16> by_magnitude;
    for (size_t i = 0; i < codes.size(); ++i) {
      const bool is_first = i % (1 << 16) < distance;
      const int before = is_first ? 0 : (codes[i - distance] + 1) / 2;
      by_magnitude[std::min(before, 15)].push_back(codes[i]);
    }
    double bits = 0;
    for (const Bytes& following : by_magnitude) bits += Entropy(following);
    const Bytes frame = FrameOf(codes, {0, kNumCodes, {distance}});
    EXPECT_LT(static_cast<double>(frame.size()), 1.03 * bits / 8) << distance;
    EXPECT_LT(static_cast<double>(frame.size()), 0.9 * Entropy(codes) / 8) << distance;
  }
}

TEST(EntropyFrameTest, IsTheSameOnEverySimdTarget) {
  const Bytes codes = Following(50007, 7, 1), many = Geometric(400001, 0.6, 1);
  const CodesPlace places[] = {{}, {0, codes.size(), {1, 7}}};
  const Bytes frames[] = {FrameOf(codes, places[0]), FrameOf(codes, places[1])};
  const Bytes in_parts = FrameOf(many);
  EXPECT_LT(frames[1].size(), frames[0].size());
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(FrameOf(codes, places[i]), frames[i]) << hwy::TargetName(target);
      EXPECT_EQ(*Read(frames[i], codes.size()), codes) << hwy::TargetName(target);
    }
    EXPECT_EQ(FrameOf(many), in_parts) << hwy::TargetName(target);
    EXPECT_EQ(*Read(in_parts, many.size()), many) << hwy::TargetName(target);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST(EntropyFrameTest, NeighboursThatSayNothingAreNotUsed) {
  for (const double decay : {0.05, 0.5, 0.9}) {
    Bytes codes = Geometric(100000, decay, 9);
    for (uint8_t& code : codes) code = static_cast<uint8_t>(code - 100);
    const CodesPlace none = {0, codes.size(), {}};
    EXPECT_EQ(FrameOf(codes, {0, codes.size(), {1, 2, 64, 1000, 200000}}), FrameOf(codes, none))
        << decay;
  }
}

TEST(EntropyFrameTest, RefusesNeighboursThatCannotBe) {
  const Bytes codes = Following(20000, 1, 1);
  const Bytes frame = FrameOf(codes, {0, 20000, {1}});
  ASSERT_GE(frame[4], 1) << "neighbours";
  for (size_t length = 0; length < frame.size(); ++length) {
    RefusalOf(Bytes(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(length)), 20000);
  }
  const auto with = [&](size_t at, uint8_t byte) {
    Bytes changed = frame;
    changed[at] = byte;
    return RefusalOf(changed, 20000);
  };
  EXPECT_THAT(with(4, 9), HasSubstr("9 neighbours, want at most 8"));
  EXPECT_THAT(with(6, 1), HasSubstr("codes up to byte 20256 of 20000"));
  EXPECT_THAT(with(13, frame[13] | 1), HasSubstr("a boundary before the first sum"));
  EXPECT_THAT(with(15, 0), HasSubstr("a neighbour 0 rows before a code"));
}

// Tests that a changed bit gives other bytes or an error, and touches nothing outside (the
// sanitizers look).
TEST(EntropyFrameTest, AChangedBitDoesNoHarm) {
  const Bytes bytes = Following(4096, 1, 1);
  for (Bytes frame :
       {FrameOf(bytes), FrameOf(bytes, {0, bytes.size(), {1}}), PlainFrameInParts(bytes, 3)}) {
    for (size_t bit = 0; bit < 8 * frame.size(); ++bit) {
      frame[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
      const auto read = Read(frame, 100000);
      if (read.ok()) {
        EXPECT_NE(*read, bytes);
      }
      frame[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    }
  }
}

}  // namespace
}  // namespace thinwire
