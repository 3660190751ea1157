#include "base/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace thinwire {
namespace {

using ::testing::ElementsAre;

// Known answers for philox4x32-10, published by the authors of Random123.
TEST(PhiloxTest, AgreesWithThePublishedZeroVector) {
  EXPECT_THAT(Philox(0, 0), ElementsAre(0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u));
}

TEST(RandomKeyTest, DiffersBySeedNameAndEvent) {
  EXPECT_NE(RandomKey(1, "init"), RandomKey(2, "init"));
  EXPECT_NE(RandomKey(1, "init"), RandomKey(1, "data"));
  const uint64_t key = RandomKey(1, "augment");
  EXPECT_NE(RandomKey(key, 1, 2), RandomKey(key, 2, 1));
}

TEST(RandomStreamTest, BelowIsUniform) {
  RandomStream random(RandomKey(1, "test"));
  std::vector<int> counts(5);
  for (int i = 0; i < 50000; ++i) ++counts[random.Below(5)];
  for (int count : counts) EXPECT_NEAR(count, 10000, 500);
}

TEST(RandomStreamTest, FloatsStayBelowOne) {
  RandomStream random(7);
  for (int i = 0; i < 100000; ++i) {
    const float x = random.NextFloat();
    ASSERT_GE(x, 0.0f);
    ASSERT_LT(x, 1.0f);
  }
}

}  // namespace
}  // namespace thinwire
