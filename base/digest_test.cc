#include "base/digest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "base/digest_pieces.h"

namespace thinwire {
namespace {

uint64_t DigestOf(const std::string& bytes) {
  Digest digest;
  digest.Add(bytes.data(), bytes.size());
  return digest.value();
}

TEST(DigestTest, EveryFlippedBitChangesTheValue) {
  const std::string bytes(100, 'a');
  std::set<uint64_t> seen = {DigestOf(bytes)};
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    EXPECT_TRUE(seen.insert(DigestOf(flipped)).second) << "bit " << bit;
  }
}

TEST(DigestTest, ItIsThatOfThePieces) {
  for (const size_t size : {0, 31, 32, 33, 100, 128}) {
    std::string bytes;
    for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(7 * i);
    for (size_t piece = 32; piece <= 128; piece += 32) {
      Digest digest;
      DigestPieces pieces(&digest, size);
      size_t at = 0;
      do {
        pieces.Add(bytes.data() + at, std::min(piece, size - at));
        at += std::min(piece, size - at);
      } while (at < size);
      EXPECT_EQ(digest.value(), DigestOf(bytes)) << size << " in pieces of " << piece;
    }
  }
}

TEST(DigestTest, TrailingZerosCount) {
  EXPECT_NE(DigestOf(std::string(7, '\0')), DigestOf(std::string(8, '\0')));
}

TEST(DigestTest, OrderMatters) {
  Digest ab, ba;
  ab.AddWord(1);
  ab.AddWord(2);
  ba.AddWord(2);
  ba.AddWord(1);
  EXPECT_NE(ab.value(), ba.value());
}

}  // namespace
}  // namespace thinwire
