#include "data/characters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Characters> Of(const std::string& corpus) { return *Characters::Of(corpus); }

TEST(CharactersTest, AreNumberedInTheOrderOfTheirCodes) {
  const auto characters = Of("böa\nb");
  EXPECT_EQ(characters->vocabulary(), 4);
  EXPECT_THAT(*characters->Encode("ab\nö"), ElementsAre(1, 2, 0, 3));
  EXPECT_EQ(*characters->Decode({3, 0, 2}), "ö\nb");
}

TEST(CharactersTest, DigestNamesThem) {
  EXPECT_EQ(Of("abc")->digest(), Of("cab")->digest());
  EXPECT_NE(Of("abc")->digest(), Of("abd")->digest());
}

TEST(CharactersTest, OneThatTheCorpusLacksIsRefusedWithItsPlace) {
  EXPECT_THAT(std::string(Of("abc")->Encode("abö").status().message()),
              HasSubstr("byte 2: \"ö\" is none of the 3 characters"));
}

TEST(CharactersTest, AByteThatIsNoUtf8IsRefusedWithItsPlace) {
  const absl::Status status = Characters::Of("ab\xFF").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("byte 2 is 0xff, which is not UTF-8"));
}

TEST(CharactersTest, AnIdThatNoCharacterHasIsRefused) {
  EXPECT_THAT(std::string(Of("abc")->Decode({3}).status().message()),
              HasSubstr("id 3, want 0 to 2"));
}

}  // namespace
}  // namespace thinwire
