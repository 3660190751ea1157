#include "data/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace thinwire {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> WordsOf(const std::string& text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size(); at += words.back().size()) {
    words.push_back(text.substr(at, WordEnd(text, at) - at));
  }
  return words;
}

TEST(WordEndTest, ASpaceBelongsToTheWordBehindIt) {
  EXPECT_THAT(WordsOf("To be, or 12 not2be!"),
              ElementsAre("To", " be", ",", " or", " 12", " not", "2", "be", "!"));
}

TEST(WordEndTest, EnglishEndingsAreWords) {
  EXPECT_THAT(WordsOf("we'll it's I'd"), ElementsAre("we", "'ll", " it", "'s", " I", "'d"));
  EXPECT_THAT(WordsOf("it'S ''s 'sx '"), ElementsAre("it", "'", "S", " ''", "s", " '", "sx", " '"));
  EXPECT_THAT(WordsOf("'rex"), ElementsAre("'re", "x"));
}

TEST(WordEndTest, WhiteSpaceLeavesItsLastCharacterToTheNextWord) {
  EXPECT_THAT(WordsOf("a   b"), ElementsAre("a", "  ", " b"));
  EXPECT_THAT(WordsOf("a\n\nb"), ElementsAre("a", "\n", "\n", "b"));
  EXPECT_THAT(WordsOf("a\nb"), ElementsAre("a", "\n", "b"));
  EXPECT_THAT(WordsOf("a \n "), ElementsAre("a", " \n "));
  EXPECT_THAT(WordsOf(" "), ElementsAre(" "));
  EXPECT_THAT(WordsOf("\u3000x"), ElementsAre("\u3000", "x"));
}

TEST(WordEndTest, BytesThatAreNoUtf8StandWithPunctuation) {
  EXPECT_THAT(WordsOf("a\xFF\xFE!b \xC3 c"), ElementsAre("a", "\xFF\xFE!", "b", " \xC3", " c"));
}

}  // namespace
}  // namespace thinwire
