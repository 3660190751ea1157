#include <gtest/gtest.h>

#include "base/sha256.h"
#include "data/known_sets.h"

namespace thinwire {
namespace {

TEST(ShakespeareTest, IsTheOfficialTextDividedAsNanoGptDoes) {
  const auto text = ReadShakespeare({});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(Sha256(text->train + text->test),
            "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed");
  EXPECT_EQ(text->train.size(), 1003854u);
  EXPECT_EQ(text->test.size(), 111540u);
  EXPECT_EQ(text->train.substr(0, 14), "First Citizen:");
  EXPECT_EQ(text->folder, "");
}

TEST(ShakespeareTest, ItsSizeByCharactersAndBytesIsWhatItHas) {
  const CorpusText text = *ReadShakespeare({});
  DataOptions options;
  for (const TokenKind kind : {TokenKind::kCharacters, TokenKind::kBytes}) {
    options.text.tokens = kind;
    EXPECT_EQ(*SizeOf(text, options), ShakespeareSize(kind));
  }
}

}  // namespace
}  // namespace thinwire
