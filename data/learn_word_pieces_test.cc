#include "data/learn_word_pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_split.h"
#include "data/word_piece.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Learned(const std::string& text, int64_t size) {
  const auto lines = LearnWordPieces({text}, /*lowercase=*/true, size);
  EXPECT_TRUE(lines.ok()) << lines.status();
  std::vector<std::string> learned = absl::StrSplit(*lines, '\n', absl::SkipEmpty());
  learned.erase(learned.begin(), learned.begin() + 5);
  return learned;
}

TEST(LearnWordPiecesTest, JoinsTheMostFrequentPairFirst) {
  EXPECT_THAT(Learned("abc abc ab Bc", 13),
              ElementsAre("a", "##a", "b", "##b", "c", "##c", "ab", "abc"));
}

TEST(LearnWordPiecesTest, OfEqualPairsThatOfTheOlderTokensComesFirst) {
  EXPECT_THAT(Learned("ba ba ab ab", 10), ElementsAre("a", "##a", "b", "##b", "ab"));
}

TEST(LearnWordPiecesTest, StopsWhereNoPairOccursTwice) {
  EXPECT_THAT(Learned("ab cd", 100), ElementsAre("a", "##a", "b", "##b", "c", "##c", "d", "##d"));
}

TEST(LearnWordPiecesTest, APieceThatTwoPairsMakeStandsThereOnce) {
  // "##ab" and then "##abc" by way of "##bc" and of "##ab".
  const std::string text = "xabc xabc yab yab zbc zbc qabc";
  const auto lines = LearnWordPieces({text}, /*lowercase=*/true, 1000);
  ASSERT_TRUE(lines.ok()) << lines.status();
  const auto tokenizer = WordPiece::Parse(*lines, /*lowercase=*/true);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT((*tokenizer)->Encode("xabc")->size(), 1u);
}

TEST(LearnWordPiecesTest, ASizeWithoutRoomForTheCharactersIsRefused) {
  EXPECT_THAT(std::string(LearnWordPieces({"ab"}, true, 8).status().message()),
              HasSubstr("size: 8, want at least 9"));
  EXPECT_THAT(std::string(LearnWordPieces({" "}, true, 99).status().message()),
              HasSubstr("the texts have no words"));
}

}  // namespace
}  // namespace thinwire
