#include "compress/cpu/set_bits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace thinwire {
namespace {

TEST(SetBitsTest, ListsEachInOrderHoweverTheyAreTaken) {
  RandomStream random(1);
  for (size_t bytes : {1, 7, 8, 9, 127, 128, 129, 1000}) {
    for (uint32_t one_in : {1, 2, 20, 3000}) {
      std::vector<uint8_t> flags(bytes);
      std::vector<uint64_t> want, got;
      for (size_t bit = 0; bit < 8 * bytes; ++bit) {
        if (random.Below(one_in) != 0) continue;
        flags[bit / 8] |= static_cast<uint8_t>(1 << (bit % 8));
        want.push_back(bit);
      }
      SetBits bits;
      bits.Open(flags.data(), flags.data() + bytes);
      while (got.size() < want.size()) {
        const size_t n = std::min<size_t>(bits.size(), 1 + random.Below(100));
        for (size_t i = 0; i < n; ++i) got.push_back(bits.first() + bits.offsets()[i]);
        bits.Skip(n);
      }
      EXPECT_EQ(got, want) << bytes << " bytes, one in " << one_in;
    }
  }
}

TEST(SetBitsTest, OpensAnew) {
  const uint8_t first[] = {0x81}, second[] = {0x00, 0x02};
  SetBits bits;
  bits.Open(first, first + 1);
  EXPECT_EQ(bits.size(), 2u);
  bits.Open(second, second + 2);
  ASSERT_EQ(bits.size(), 1u);
  EXPECT_EQ(bits.first() + bits.offsets()[0], 9u);
}

}  // namespace
}  // namespace thinwire
