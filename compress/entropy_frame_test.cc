#include "compress/entropy_frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "base/random.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<uint8_t>;

Bytes FrameOf(const Bytes& bytes) {
  const auto frame = EntropyFrame(bytes);
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

// Two-sided geometric around 128: what codes of a quantiser look like. `decay`: of one to the next.
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

// Bits, of the bytes as if drawn from their own frequencies.
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
  constexpr size_t kMostOfAllElse = 4 + 2 * 256 + 8 * 4;
  for (const double decay : {0.001, 0.05, 0.3, 0.6, 0.9}) {
    const Bytes bytes = Geometric(400000, decay, 7);
    EXPECT_LE(static_cast<double>(FrameOf(bytes).size()),
              1.005 * Entropy(bytes) / 8 + kMostOfAllElse)
        << decay;
  }
}

TEST(EntropyFrameTest, OneByteAgainAndAgainTakesNothing) {
  const Bytes bytes(100000, 77);
  const Bytes frame = FrameOf(bytes);
  EXPECT_EQ(frame.size(), 4 + 2 + 2 + 2 + 8 * 4u);
  EXPECT_EQ(*Read(frame, bytes.size()), bytes);
}

TEST(EntropyFrameTest, AByteThatIsThereOnceCanBeSaid) {
  Bytes bytes(1 << 20, 0);
  bytes[12345] = 255;
  EXPECT_EQ(*Read(FrameOf(bytes), bytes.size()), bytes);
}

// 256 different bytes: as many frequencies of 16, rounded up and down before they add up.
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
  EXPECT_THAT(RefusalOf(frame, 3000), HasSubstr("2 bytes too many"));
}

TEST(EntropyFrameTest, RefusesMoreThanIsWanted) {
  const Bytes frame = FrameOf(Geometric(3000, 0.5, 1));
  EXPECT_THAT(RefusalOf(frame, 2999), HasSubstr("a frame of 3000 bytes, want at most 2999"));
}

TEST(EntropyFrameTest, RefusesTablesThatCannotBe) {
  const Bytes states(32, 1);
  const auto with = [&](const Bytes& table) {
    Bytes frame = {1, 0, 0, 0};
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
  Bytes frame = {8, 0, 0, 0, 0x90, 0x00, 0, 254};
  frame.resize(frame.size() + 32);
  EXPECT_THAT(RefusalOf(frame, 8), HasSubstr("a state of 0"));
  for (size_t lane = 0; lane < 8; ++lane) frame[8 + 4 * lane + 2] = 1;
  EXPECT_EQ(*Read(frame, 8), Bytes(8, 0));
  frame[8] = 1;
  EXPECT_THAT(RefusalOf(frame, 8), HasSubstr("do not end where they began"));
}

// A changed bit gives other bytes or none; nothing outside is touched (the sanitizers look).
TEST(EntropyFrameTest, AChangedBitDoesNoHarm) {
  const Bytes bytes = Geometric(500, 0.5, 1);
  Bytes frame = FrameOf(bytes);
  for (size_t bit = 0; bit < 8 * frame.size(); ++bit) {
    frame[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    const auto read = Read(frame, 100000);
    if (read.ok()) {
      EXPECT_NE(*read, bytes);
    }
    frame[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
  }
}

}  // namespace
}  // namespace thinwire
