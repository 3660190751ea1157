#include "base/digest.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

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
