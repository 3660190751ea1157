#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"
#include "compress/cpu/loops.h"

namespace thinwire {
namespace {

TEST(PhiloxNumbersTest, AreThoseOfTheStream) {
  const uint64_t key = RandomKey(1, "philox");
  RandomStream stream(key);
  std::vector<uint32_t> wanted(1000);
  for (uint32_t& number : wanted) number = stream.Next();
  std::vector<uint32_t> numbers(1024);
  PhiloxNumbers(key, 0, 500, numbers.data());
  EXPECT_TRUE(std::equal(numbers.begin(), numbers.begin() + 500, wanted.begin()));
  PhiloxNumbers(key, 500, 500, numbers.data());
  EXPECT_TRUE(std::equal(numbers.begin(), numbers.begin() + 500, wanted.begin() + 500));
}

TEST(PhiloxNumbersTest, CountersGoBeyond32Bits) {
  std::vector<uint32_t> numbers(64);
  PhiloxNumbers(3, uint64_t{1} << 36, 4, numbers.data());
  const auto wanted = Philox(3, uint64_t{1} << 34);
  EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), numbers.begin()));
}

}  // namespace
}  // namespace thinwire
