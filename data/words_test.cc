#include "data/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace thinwire {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> WordsOf(const std::string& text, WordRule rule = WordRule::kGpt2) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size(); at += words.back().size()) {
    words.push_back(text.substr(at, WordEnd(rule, text, at) - at));
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

TEST(WordEndTest, DigitsMayStandApart) {
  const WordRule rule = WordRule::kDigitsApart;
  EXPECT_THAT(WordsOf("in 12  3 a", rule), ElementsAre("in", " ", "1", "2", "  ", "3", " a"));
  EXPECT_THAT(WordsOf("!\U00011DE3! \u0663", rule),
              ElementsAre("!", "\U00011DE3", "!", " ", "\u0663"));
}

TEST(WordEndTest, ThreeDigitsOrOneAreAWord) {
  EXPECT_THAT(WordsOf("x12345", WordRule::kThreeDigits), ElementsAre("x", "123", "45"));
  EXPECT_THAT(WordsOf("x12 3", WordRule::kOneDigit), ElementsAre("x", "1", "2", " ", "3"));
}

TEST(WordEndTest, OneCharacterMayPrecedeLetters) {
  const WordRule rule = WordRule::kThreeDigits;
  EXPECT_THAT(WordsOf("(to\tbe !!or\nnot", rule),
              ElementsAre("(to", "\tbe", " !!", "or", "\n", "not"));
  EXPECT_THAT(WordsOf("I'LL it'\u017Fx\t'Re", rule),
              ElementsAre("I", "'LL", " it", "'\u017F", "x", "\t", "'Re"));
}

TEST(WordEndTest, LineEndsEndWhiteSpaceAndPunctuation) {
  const WordRule rule = WordRule::kOneDigit;
  EXPECT_THAT(WordsOf("\n\n a", rule), ElementsAre("\n\n", " a"));
  EXPECT_THAT(WordsOf("\r\n \r\n  q", rule), ElementsAre("\r\n \r\n", " ", " q"));
  EXPECT_THAT(WordsOf("!\n\n\n !", rule), ElementsAre("!\n\n\n", " !"));
}

TEST(WordEndTest, CapitalsBehindSmallLettersMayBeginAWord) {
  const WordRule rule = WordRule::kCased;
  EXPECT_THAT(WordsOf("HELLOworld helloWorld", rule), ElementsAre("HELLOworld", " hello", "World"));
  EXPECT_THAT(WordsOf("XML12", rule), ElementsAre("XML", "1", "2"));
  EXPECT_THAT(WordsOf("\u65E5\u672CABC \u65E5ABCdef", rule),
              ElementsAre("\u65E5\u672C", "ABC", " \u65E5ABCdef"));
  EXPECT_THAT(WordsOf("\u0301ABC", rule), ElementsAre("\u0301", "ABC"));
  EXPECT_THAT(WordsOf("!/\n/ a/b", rule), ElementsAre("!/\n/", " a", "/b"));
}

TEST(WordEndTest, EveryByteBelongsToAWordUnderEachRule) {
  const std::string text = "a'\xFF \n\xC3 \u0301\u00BD\u3000\u3000'S 9 \U0001F600B";
  for (const WordRule rule : {WordRule::kGpt2, WordRule::kDigitsApart, WordRule::kThreeDigits,
                              WordRule::kOneDigit, WordRule::kCased}) {
    std::string joined;
    for (const std::string& word : WordsOf(text, rule)) joined += word;
    EXPECT_EQ(joined, text);
  }
}

TEST(WordEndTest, BytesThatAreNoUtf8StandWithPunctuation) {
  EXPECT_THAT(WordsOf("a\xFF\xFE!b \xC3 c"), ElementsAre("a", "\xFF\xFE!", "b", " \xC3", " c"));
}

}  // namespace
}  // namespace thinwire
