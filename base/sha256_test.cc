#include "base/sha256.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

TEST(Sha256Test, IsThatOfTheStandard) {  // FIPS 180-2, appendix B
  EXPECT_EQ(Sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Sha256StreamTest, PiecesOfAnySizeGiveTheSameDigest) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += static_cast<char>(i * 7);
  for (const size_t size : {1, 3, 63, 64, 65, 999, 1000, 2000}) {
    Sha256Stream stream;
    for (size_t at = 0; at < bytes.size(); at += size) {
      stream.Add(std::string_view(bytes).substr(at, size));
      stream.Add("");
    }
    EXPECT_EQ(stream.Digest(), Sha256(bytes)) << size;
  }
}

TEST(Sha256StreamTest, MorePiecesMayFollowADigest) {
  Sha256Stream stream;
  EXPECT_EQ(stream.Digest(), Sha256(""));
  stream.Add("a");
  EXPECT_EQ(stream.Digest(), Sha256("a"));
  EXPECT_EQ(stream.Digest(), Sha256("a"));
  stream.Add("bc");
  EXPECT_EQ(stream.Digest(), Sha256("abc"));
}

}  // namespace
}  // namespace thinwire
