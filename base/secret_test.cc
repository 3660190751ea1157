#include "base/secret.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

TEST(SecretTest, EachOneDrawnIsAnother) {
  EXPECT_EQ(NewSecret().size(), 32u);
  EXPECT_NE(NewSecret(), NewSecret());
}

TEST(SecretTest, IsTheSameOnlyWithEveryByte) {
  const std::string secret = NewSecret();
  EXPECT_TRUE(SameSecret(secret, secret));
  for (size_t i = 0; i < secret.size(); ++i) {
    std::string other = secret;
    other[i] = static_cast<char>(other[i] ^ 0x80);
    EXPECT_FALSE(SameSecret(secret, other)) << i;
  }
  EXPECT_FALSE(SameSecret(secret, secret.substr(1)));
}

TEST(SecretTest, OneThatIsTooShortIsNeverTheSame) {
  EXPECT_FALSE(SameSecret("", ""));
  EXPECT_FALSE(SameSecret("fifteen letters", "fifteen letters"));
  EXPECT_TRUE(SameSecret("sixteen letters!", "sixteen letters!"));
}

}  // namespace
}  // namespace thinwire
