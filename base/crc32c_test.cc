#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/random.h"

namespace thinwire {
namespace {

uint32_t BitByBit(const std::string& bytes) {
  uint32_t crc = ~0u;
  for (unsigned char byte : bytes) {
    crc ^= byte;
    for (int i = 0; i < 8; ++i) crc = (crc >> 1) ^ ((crc & 1) ? 0x82F63B78u : 0);
  }
  return ~crc;
}

std::string RandomBytes(size_t size) {
  std::string bytes(size, 0);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(RandomKey(7, i));
  return bytes;
}

// RFC 3720, B.4.
TEST(Crc32cTest, KnowsTheVectorsOfTheStandard) {
  std::string ascending(32, 0), descending(32, 0);
  for (int i = 0; i < 32; ++i) ascending[i] = descending[31 - i] = static_cast<char>(i);
  EXPECT_EQ(Crc32c(std::string(32, 0).data(), 32), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xFF').data(), 32), 0x62A8AB43u);
  EXPECT_EQ(Crc32c(ascending.data(), 32), 0x46DD794Eu);
  EXPECT_EQ(Crc32c(descending.data(), 32), 0x113FDB5Cu);
  EXPECT_EQ(Crc32c("123456789", 9), 0xE3069283u);
  EXPECT_EQ(Crc32c(nullptr, 0), 0u);
}

TEST(Crc32cTest, EqualsTheBitwiseSumAtEverySizeAndOffset) {
  const std::string bytes = RandomBytes(320);
  for (size_t size = 0; size <= 300; ++size) {
    for (size_t offset = 0; offset < 9; ++offset) {
      ASSERT_EQ(Crc32c(bytes.data() + offset, size), BitByBit(bytes.substr(offset, size)))
          << size << " bytes at " << offset;
    }
  }
}

TEST(Crc32cTest, EqualsTheBitwiseSumAroundTheLanes) {
  const std::string bytes = RandomBytes(20000);
  for (size_t size : {383, 384, 385, 767, 768, 6143, 6144, 6145, 6528, 12288, 19993}) {
    EXPECT_EQ(Crc32c(bytes.data() + 5, size), BitByBit(bytes.substr(5, size))) << size;
  }
}

TEST(Crc32cTest, IsTheSameHoweverTheBytesAreSplit) {
  const std::string bytes = RandomBytes(9000);
  const uint32_t whole = Crc32c(bytes.data(), bytes.size());
  for (size_t split : {0, 1, 7, 400, 6144, 8999, 9000}) {
    const uint32_t head = Crc32c(bytes.data(), split);
    EXPECT_EQ(ExtendCrc32c(head, bytes.data() + split, bytes.size() - split), whole) << split;
  }
}

TEST(Crc32cTest, CopiesExactlyTheBytesItSums) {
  const std::string bytes = RandomBytes(20000);
  for (size_t size : {0, 1, 7, 8, 9, 383, 384, 6145, 19990}) {
    std::string copy(bytes.size(), '?');
    EXPECT_EQ(ExtendCrc32cAndCopy(0, &copy[3], bytes.data() + 5, size),
              Crc32c(bytes.data() + 5, size));
    EXPECT_EQ(copy, "???" + bytes.substr(5, size) + std::string(bytes.size() - size - 3, '?'));
  }
}

}  // namespace
}  // namespace thinwire
