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

TEST(CharactersTest, ATextMayBeCutBetweenAnyTwo) {
  const auto characters = *Characters::Of("ab\u00e9\u65e5");
  EXPECT_EQ(characters->LastCut("a\u00e9\u65e5"), 3u);
  EXPECT_EQ(characters->LastCut("a\u00e9\xE6\x97"), 1u) << "what may yet become a character";
  EXPECT_EQ(characters->LastCut("\u65e5"), 0u);
  EXPECT_EQ(characters->LastCut("\xE6\x97"), 0u);
  EXPECT_EQ(characters->LastCut(""), 0u);
}

TEST(CharactersTest, PiecesOfACorpusHaveTheCharactersOfTheWhole) {
  const std::string corpus = "b\u65e5a\u00e9\U0001f468";
  for (size_t first = 0; first <= corpus.size(); ++first) {
    for (size_t second = first; second <= corpus.size(); ++second) {
      Characters::Finder finder;
      ASSERT_TRUE(finder.Add(corpus.substr(0, first)).ok());
      ASSERT_TRUE(finder.Add(corpus.substr(first, second - first)).ok());
      ASSERT_TRUE(finder.Add(corpus.substr(second)).ok());
      EXPECT_EQ((*finder.End())->digest(), (*Characters::Of(corpus))->digest());
    }
  }
}

TEST(CharactersTest, AByteThatIsNoUtf8IsNamedByItsPlaceInAllPieces) {
  Characters::Finder finder;
  ASSERT_TRUE(finder.Add("ab\xE6").ok());
  EXPECT_THAT(std::string(finder.Add("xy").message()), testing::HasSubstr("byte 2 is 0xe6"));
  Characters::Finder cut;
  ASSERT_TRUE(cut.Add("ab\xE6\x97").ok());
  EXPECT_THAT(std::string(cut.End().status().message()), testing::HasSubstr("byte 2 is 0xe6"));
}

}  // namespace
}  // namespace thinwire
