#include "data/unpacked_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>

#include "base/random.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

std::string Gzipped(const std::string& text) {
  const std::string path = testing::TempDir() + "/unpacked_gzip";
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  std::ifstream read(path, std::ios::binary);
  std::string packed((std::istreambuf_iterator<char>(read)), {});
  std::filesystem::remove(path);
  return packed;
}

std::string Zstandard(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 1));
  return packed;
}

class UnpackedFileTest : public testing::Test {
 protected:
  ~UnpackedFileTest() override { std::filesystem::remove(path_); }

  absl::Status Read(const std::string& bytes, std::string* text) const {
    std::ofstream(path_, std::ios::binary) << bytes;
    return ReadUnpacked(path_, [text](std::string_view piece) {
      *text += piece;
      return absl::OkStatus();
    });
  }
  std::string TextOf(const std::string& bytes) const {
    std::string text;
    const absl::Status status = Read(bytes, &text);
    EXPECT_TRUE(status.ok()) << status;
    return text;
  }

  const std::string path_ = testing::TempDir() + "/unpacked_" +
                            testing::UnitTest::GetInstance()->current_test_info()->name();
};

// Returns bytes that pack badly, so that a packed file has several pieces.
std::string Noise(size_t bytes) {
  RandomStream random(RandomKey(1, "noise"));
  std::string noise(bytes, '\0');
  for (char& byte : noise) byte = static_cast<char>(random.Below(256));
  return noise;
}

TEST_F(UnpackedFileTest, PackedFilesAreWhatWasPacked) {
  for (const std::string& text :
       {std::string(), std::string("a"), Noise(2'300'000), std::string(5'000'000, 'a')}) {
    EXPECT_TRUE(TextOf(text) == text);
    EXPECT_TRUE(TextOf(Gzipped(text)) == text);
    EXPECT_TRUE(TextOf(Zstandard(text)) == text);
    EXPECT_TRUE(TextOf(Gzipped(text) + Gzipped("b")) == text + "b");
    EXPECT_TRUE(TextOf(Zstandard(text) + Zstandard("b")) == text + "b");
  }
}

TEST_F(UnpackedFileTest, FramesOfZstdThatAreToBeSkippedAreSkipped) {
  for (const char first : {'\x50', '\x5F'}) {
    const std::string skipped = first + std::string("\x2A\x4D\x18\x03\0\0\0abc", 10);
    EXPECT_EQ(TextOf(skipped + Zstandard("to be")), "to be");
    EXPECT_EQ(TextOf(Zstandard("to ") + skipped + Zstandard("be") + skipped), "to be");
  }
}

TEST_F(UnpackedFileTest, WhatEndsTooEarlyOrIsBrokenIsNamed) {
  for (const bool is_gzip : {true, false}) {
    const std::string packed = is_gzip ? Gzipped("to be or not to be") : Zstandard("to be, to be");
    for (size_t size = 4; size < packed.size(); ++size) {
      std::string text;
      EXPECT_EQ(Read(packed.substr(0, size), &text).message(),
                path_ + (is_gzip ? ": gzip" : ": zstd") + ": ends too early")
          << size;
    }
    std::string text;
    const absl::Status status = Read(packed + "behind", &text);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()), HasSubstr(path_ + (is_gzip ? ": gzip" : ": zstd")));
  }
}

TEST_F(UnpackedFileTest, AnErrorOfTheSinkEndsIt) {
  std::ofstream(path_, std::ios::binary) << Gzipped(Noise(3'000'000));
  int pieces = 0;
  EXPECT_EQ(ReadUnpacked(path_,
                         [&pieces](std::string_view) {
                           ++pieces;
                           return absl::InvalidArgumentError("enough");
                         })
                .message(),
            "enough");
  EXPECT_EQ(pieces, 1);
}

}  // namespace
}  // namespace thinwire
