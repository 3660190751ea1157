#include <gtest/gtest.h>

#include <vector>

#include "compress/cpu/loops.h"

namespace thinwire {
namespace {

// Packs codes bit by bit.
std::vector<uint8_t> Packed(const std::vector<uint8_t>& codes, uint32_t bits) {
  std::vector<uint8_t> bytes((codes.size() * bits + 7) / 8);
  for (size_t i = 0; i < codes.size() * bits; ++i) {
    bytes[i / 8] |= ((codes[i / bits] >> (i % bits)) & 1) << (i % 8);
  }
  return bytes;
}

TEST(PackTest, LeavesNoGapsAndComesBack) {
  for (uint32_t bits = 1; bits <= 8; ++bits) {
    for (size_t n : {0, 1, 7, 8, 9, 63, 64, 65, 1000}) {
      std::vector<uint8_t> codes(n);
      for (size_t i = 0; i < n; ++i) codes[i] = (i * 151 + 7) & ((1 << bits) - 1);
      std::vector<uint8_t> scratch = codes;
      scratch.resize((n + 63) / 64 * 64, 0xFF);
      std::vector<uint8_t> bytes((n * bits + 7) / 8);
      PackCodes(scratch.data(), n, bits, bytes.data());
      EXPECT_EQ(bytes, Packed(codes, bits)) << n << " codes of " << bits;
      UnpackCodes(bytes.data(), n, bits, scratch.data());
      scratch.resize(n);
      EXPECT_EQ(scratch, codes) << n << " codes of " << bits;
    }
  }
}

}  // namespace
}  // namespace thinwire
