#include "base/crc32c_polynomials.h"

#include <gtest/gtest.h>

#include <string>

#include "base/crc32c.h"

namespace thinwire {
namespace crc32c {
namespace {

// Returns the remainder of the bytes' polynomial times x^32, computed byte by byte.
uint32_t RemainderOf(const std::string& bytes) {
  uint32_t remainder = 0;
  for (const unsigned char byte : bytes) remainder = Multiply(remainder ^ byte, PowerOfX(1));
  return remainder;
}

TEST(Crc32cPolynomialsTest, PowersOfXAddUpTheirBytes) {
  EXPECT_EQ(PowerOfX(0), kOne);
  EXPECT_EQ(PowerOfX(1), kOne >> 8);
  EXPECT_EQ(PowerOfX(4), kPolynomial);  // x^32 modulo the polynomial
  for (size_t a : {0, 1, 7, 4096}) {
    for (size_t b : {1, 3, 1 << 20}) {
      EXPECT_EQ(Multiply(PowerOfX(a), PowerOfX(b)), PowerOfX(a + b)) << a << " and " << b;
    }
  }
}

TEST(Crc32cPolynomialsTest, RemaindersOfPiecesMakeTheCrcOfAll) {
  const std::string bytes = "what is summed in pieces, one behind the other";
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    uint32_t crc = 0;
    for (const std::string& piece : {bytes.substr(0, cut), bytes.substr(cut)}) {
      crc = Append(crc, RemainderOf(piece), PowerOfX(piece.size()));
    }
    EXPECT_EQ(crc, Crc32c(bytes.data(), bytes.size())) << cut;
  }
}

}  // namespace
}  // namespace crc32c
}  // namespace thinwire
