// Tests frames of strings in device memory against those that the CPU makes and reads.
#include "compress/cuda/entropy_frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "compress/entropy/frame.h"
#include "compress/entropy/layout.h"
#include "compress/entropy/pairs_layout.h"
#include "compress/entropy/plain_frame_testing.h"

namespace thinwire {
namespace {

using Bytes = std::vector<uint8_t>;
constexpr size_t kFormAt = 4;  // of a frame

CudaDevice* TheDevice() {
  static CudaDevice* const device = [] {
    CudaDevice* opened = nullptr;
    EXPECT_TRUE(NewCudaDevice(/*index=*/0, &opened).ok());
    return opened;
  }();
  return device;
}

// String, and where it has codes.
struct Case {
  std::string name;
  Bytes bytes;
  CodesPlace place;
};

// Returns zigzag codes of a source of deviation `scale`. With `volume` it changes slowly, so that
// neighbours tell how large a code is.
Bytes Codes(size_t n, float scale, bool has_volume, uint64_t seed) {
  RandomStream random(seed);
  Bytes codes(n);
  for (size_t i = 0; i < n; ++i) {
    float sum = -6;
    for (int j = 0; j < 12; ++j) sum += random.NextFloat();
    const float volume = has_volume ? std::exp(1.5f * std::sin(static_cast<float>(i) / 50)) : 1;
    const auto rounded = static_cast<int>(std::lround(sum * scale * volume));
    codes[i] = static_cast<uint8_t>(std::min(rounded < 0 ? -2 * rounded - 1 : 2 * rounded, 255));
  }
  return codes;
}

Case CodesCase(size_t n, float scale, bool has_volume, size_t before, size_t behind) {
  Case c{absl::StrCat(n, " codes, scale ", scale, has_volume ? ", volume" : "", ", ", before),
         Bytes(before, 77),
         {before, n, {}}};
  const Bytes codes = Codes(n, scale, has_volume, n);
  c.bytes.insert(c.bytes.end(), codes.begin(), codes.end());
  c.bytes.insert(c.bytes.end(), behind, 3);
  for (const uint32_t distance : {1u, 2u, 7u, 40u, 700u}) {
    if (distance < n) c.place.distances.push_back(distance);
  }
  return c;
}

// Returns codes about as large as those of the same channel before and above.
Case ImageCase(size_t n, uint32_t channels) {
  Case c{absl::StrCat(n, " codes of ", channels, " channels"), Bytes(6, 1), {6, n, {}}};
  const uint32_t above = 30 * channels;
  RandomStream random(n + channels);
  Bytes codes(n);
  for (size_t i = 0; i < n; ++i) {
    const int before = i < channels ? 0 : (codes[i - channels] + 1) / 2;
    const int over = i < above ? 0 : (codes[i - above] + 1) / 2;
    const float near = 0.3f + 0.45f * static_cast<float>(before + over);
    const auto magnitude =
        static_cast<int>(std::min(100.0f, -std::log(random.NextFloat() + 1e-6f) * near));
    codes[i] = static_cast<uint8_t>(2 * magnitude - (magnitude > 0 && random.Next() % 2 != 0));
  }
  c.bytes.insert(c.bytes.end(), codes.begin(), codes.end());
  c.bytes.insert(c.bytes.end(), 5, 3);
  c.place.distances = {1, 2, channels, 2 * channels, above};
  return c;
}

// Returns runs of small and of large codes: the code before tells which.
Case RunsCase(size_t n) {
  Case c{absl::StrCat(n, " codes in runs"), Bytes(5, 1), {5, n, {1}}};
  RandomStream random(n);
  for (size_t i = 0; i < n; ++i) {
    const auto code =
        static_cast<uint8_t>(i / 300 % 2 == 0 ? random.Next() % 2 : random.Next() % 12);
    c.bytes.push_back(code);
  }
  c.bytes.insert(c.bytes.end(), 3, 3);
  return c;
}

// Returns codes about as large as the one `period` before, which lies further back than the rows
// that a decoder has at hand.
Case PeriodicCase(size_t n, uint32_t period) {
  Case c{absl::StrCat(n, " codes of period ", period), {}, {0, n, {1, period}}};
  RandomStream random(n);
  std::vector<uint32_t> largest(period);
  for (uint32_t& most : largest) most = random.Next() % 2 == 0 ? 2 : 24;
  for (size_t i = 0; i < n; ++i) {
    c.bytes.push_back(static_cast<uint8_t>(random.Next() % largest[i % period]));
  }
  return c;
}

// Returns each code twice, so that pairs take half as many bits.
Case TwinsCase(size_t n) {
  Case c{absl::StrCat(n, " codes twice"), Codes(n, 1, false, n), {0, 2 * n, {}}};
  c.bytes.resize(2 * n);
  for (size_t i = 2 * n; i-- > 0;) c.bytes[i] = c.bytes[i / 2];
  return c;
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const size_t n : {0, 1, 2, 31, 32, 33, 150, 1000, 4096, 4097, 40001}) {
    cases.push_back({absl::StrCat(n, " bytes"), Codes(n, 2, false, n + 1), {}});
    cases.push_back({absl::StrCat(n, " equal bytes"), Bytes(n, 9), {}});
    for (const bool has_volume : {false, true}) {
      for (const float scale : {0.0f, 0.4f, 1.0f, 3.0f, 30.0f}) {
        cases.push_back(CodesCase(n, scale, has_volume, n % 7, n % 5));
      }
    }
  }
  for (const size_t n : {300, 1000, 4096, 4097, 40001, 300000}) cases.push_back(TwinsCase(n));
  cases.push_back(CodesCase(300000, 1, false, 11, 6));
  cases.push_back(CodesCase(300000, 1, true, 11, 6));
  for (const uint32_t channels : {3u, 16u, 64u}) {
    for (const size_t n : {131072, 131073, 200001}) cases.push_back(ImageCase(n, channels));
  }
  cases.push_back(PeriodicCase(60000, 600));
  for (const size_t n : {131071, 131072, 131073, 300001}) {
    cases.push_back({absl::StrCat(n, " bytes"), Codes(n, 2, false, n), {}});
  }
  cases.push_back({"many equal bytes", Bytes(200001, 9), {}});
  Bytes noise(5000);
  RandomStream random(3);
  for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random.Next());
  cases.push_back({"noise", noise, {}});
  return cases;
}

Bytes FrameOf(const Case& c) {
  const auto frame = EntropyFrame(c.bytes, c.place);
  return {frame.begin(), frame.end()};
}

Bytes FrameOnDevice(const Case& c) {
  CudaScratch bytes(TheDevice());
  EXPECT_TRUE(bytes.Reserve(c.bytes.size()).ok());
  EXPECT_TRUE(TheDevice()->CopyFromHost(bytes.as<void>(), c.bytes.data(), c.bytes.size()).ok());
  Bytes frame(c.bytes.size());
  size_t length = 0;
  const Error error = CudaEntropyFrame(TheDevice(), bytes.as<const uint8_t>(), c.bytes.size(),
                                       c.place, frame.data(), &length);
  EXPECT_TRUE(error.ok()) << error.message;
  frame.resize(length);
  return frame;
}

struct Read {
  bool ok = false;
  Bytes bytes;
};

Read ReadOnDevice(const Bytes& frame, size_t most) {
  CudaScratch bytes(TheDevice());
  size_t n = 0;
  Read read;
  read.ok = CudaReadEntropyFrame(TheDevice(), frame, most, &bytes, &n).ok();
  if (!read.ok) return read;
  read.bytes.resize(n);
  EXPECT_TRUE(TheDevice()->CopyToHost(read.bytes.data(), bytes.as<const void>(), n).ok());
  return read;
}

// Expects that the device reads what the host reads of a frame, and refuses what it refuses.
void ExpectSameVerdict(const Bytes& frame, size_t most) {
  const auto expected = ReadEntropyFrame(frame, most);
  const Read met = ReadOnDevice(frame, most);
  ASSERT_EQ(met.ok, expected.ok()) << expected.status();
  if (!met.ok) return;
  EXPECT_TRUE(met.bytes == Bytes(expected->begin(), expected->end()));
}

TEST(CudaEntropyFrameTest, HasTheCpusBytesAndReadsThem) {
  int pairs = 0, parts = 0, plain_parts = 0, neighbours = 0, plain = 0;
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    const Bytes expected = FrameOf(c);
    ASSERT_TRUE(FrameOnDevice(c) == expected) << "of " << expected.size() << " bytes";
    if (expected.empty()) continue;
    const int form = expected[kFormAt];
    const bool is_plain = form == kPartsForm && expected[kFormAt + 1] == 0;
    ++(form == kPairsForm   ? pairs
       : is_plain           ? plain_parts
       : form == kPartsForm ? parts
       : form == 0          ? plain
                            : neighbours);
    const Read read = ReadOnDevice(expected, c.bytes.size());
    EXPECT_TRUE(read.ok);
    EXPECT_TRUE(read.bytes == c.bytes);
  }
  EXPECT_GE(pairs, 5);
  EXPECT_GE(parts, 5);
  EXPECT_GE(plain_parts, 4);
  EXPECT_GE(neighbours, 5);
  EXPECT_GE(plain, 5);
}

TEST(CudaEntropyFrameTest, ReadsCodesWhoseNeighboursLieFarBack) {
  const Case c = PeriodicCase(60000, 600);
  const Bytes frame = FrameOf(c);
  EntropyHead head;
  absl::Span<const uint8_t> rest = frame;
  ASSERT_TRUE(ReadEntropyHead(&rest, c.bytes.size(), &head).ok());
  ASSERT_EQ(*std::max_element(head.neighbours.rows, head.neighbours.rows + head.neighbours.count),
            600u);
  EXPECT_TRUE(ReadOnDevice(frame, c.bytes.size()).bytes == c.bytes);
}

// Returns a frame of codes with neighbours as one of a single part, whose rows are of 32 stretches.
Bytes InOnePart(const Bytes& frame) {
  EntropyHead head;
  absl::Span<const uint8_t> rest = frame;
  EXPECT_TRUE(ReadEntropyHead(&rest, /*most=*/UINT16_MAX, &head).ok());
  EntropyFrameView view;
  EXPECT_TRUE(ViewEntropyFrame(head, rest, &view).ok());
  const absl::Span<const uint8_t> states = view.parts.front();
  const auto length = static_cast<uint32_t>(states.size());
  head.is_in_parts = true;
  Bytes parts(head.head_bytes());
  WriteEntropyHead(head, parts.data());
  parts.insert(parts.end(), rest.begin(), rest.end() - length);
  for (int bits = 0; bits < 32; bits += 8) parts.push_back(static_cast<uint8_t>(length >> bits));
  parts.insert(parts.end(), states.begin(), states.end());
  return parts;
}

// Short string, and a frame of it.
struct Short {
  std::string name;
  int form = 0;
  Bytes bytes, frame;
};

// Returns one of each form.
std::vector<Short> ShortFrames() {
  Case large = TwinsCase(450);
  for (size_t i = 20; i < 900; i += 300) large.bytes[i] = 200;
  const Case codes = RunsCase(3000);
  const Case bytes = {"bytes", Codes(333, 1, false, 4), {}};
  return {{large.name, kPairsForm, large.bytes, FrameOf(large)},
          {codes.name, 1, codes.bytes, FrameOf(codes)},
          {bytes.name, 0, bytes.bytes, FrameOf(bytes)},
          {"bytes in parts", kPartsForm, bytes.bytes, PlainFrameInParts(bytes.bytes, 3)},
          {"in parts", kPartsForm, codes.bytes, InOnePart(FrameOf(codes))}};
}

TEST(CudaEntropyFrameTest, ReadsAShortFrameOfEachForm) {
  for (const Short& c : ShortFrames()) {
    SCOPED_TRACE(c.name);
    ASSERT_EQ(c.frame[kFormAt], c.form);
    const Read read = ReadOnDevice(c.frame, c.bytes.size());
    EXPECT_TRUE(read.ok);
    EXPECT_TRUE(read.bytes == c.bytes);
  }
}

TEST(CudaEntropyFrameTest, ReadsManyBytesInASingleString) {
  const Bytes bytes = Codes(200001, 2, false, 1);
  const Read read = ReadOnDevice(PlainFrameInParts(bytes, 0), bytes.size());
  EXPECT_TRUE(read.ok);
  EXPECT_TRUE(read.bytes == bytes);
}

// Tests lengths of parts that do not add up, and distances beyond a part.
TEST(CudaEntropyFrameTest, HasTheCpusVerdictOnDamageToManyParts) {
  const Case c = ImageCase(131072, 16);
  const Bytes frame = FrameOf(c);
  ASSERT_EQ(frame[kFormAt], kPartsForm);
  RandomStream random(8);
  for (int turn = 0; turn < 60; ++turn) {
    Bytes damaged = frame;
    const size_t at = random.Next() % (turn < 30 ? 30 : frame.size());
    damaged[at] = static_cast<uint8_t>(random.Next());
    SCOPED_TRACE(absl::StrCat("byte ", at, " is ", damaged[at]));
    ExpectSameVerdict(damaged, c.bytes.size());
  }
}

TEST(CudaEntropyFrameTest, RefusesEveryCutAndEveryAddition) {
  for (const Short& c : ShortFrames()) {
    SCOPED_TRACE(c.name);
    const Bytes& frame = c.frame;
    for (size_t bytes = 0; bytes <= frame.size() + 3; ++bytes) {
      Bytes cut = frame;
      cut.resize(bytes);
      ExpectSameVerdict(cut, c.bytes.size());
    }
    ExpectSameVerdict(frame, c.bytes.size() - 1);
  }
}

TEST(CudaEntropyFrameTest, HasTheCpusVerdictOnEveryDamagedByte) {
  constexpr uint8_t kValues[] = {0x00, 0x01, 0x10, 0x7F, 0x80, 0xFF};
  constexpr size_t kHead = 64;  // bytes that take every value; those behind take one each
  for (const Short& c : ShortFrames()) {
    SCOPED_TRACE(c.name);
    const Bytes& frame = c.frame;
    ASSERT_FALSE(frame.empty());
    for (size_t i = 0; i < frame.size(); ++i) {
      const size_t first = i < kHead ? 0 : i % std::size(kValues);
      const size_t end = i < kHead ? std::size(kValues) : first + 1;
      for (size_t j = first; j < end; ++j) {
        SCOPED_TRACE(absl::StrCat("byte ", i, " is ", kValues[j]));
        Bytes damaged = frame;
        damaged[i] = kValues[j];
        ExpectSameVerdict(damaged, c.bytes.size());
      }
    }
  }
}

// Tests frames that are noise from some byte on.
TEST(CudaEntropyFrameTest, ReadsNoisyTails) {
  RandomStream random(5);
  for (const Short& c : ShortFrames()) {
    SCOPED_TRACE(c.name);
    const Bytes& frame = c.frame;
    for (int turn = 0; turn < 200; ++turn) {
      Bytes noisy = frame;
      const size_t from = random.Next() % frame.size();
      for (size_t i = from; i < noisy.size(); ++i) noisy[i] = static_cast<uint8_t>(random.Next());
      ExpectSameVerdict(noisy, c.bytes.size());
    }
  }
}

}  // namespace
}  // namespace thinwire
