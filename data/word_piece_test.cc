#include "data/word_piece.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kPieces[] = "data/word_piece_testdata";  // made by word_piece_fixture.py
constexpr char kTiny[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##able\n##a\n,\n";

std::unique_ptr<WordPiece> Tiny() {
  auto tiny = WordPiece::Parse(kTiny, /*lowercase=*/true);
  EXPECT_TRUE(tiny.ok()) << tiny.status();
  return *std::move(tiny);
}

TEST(WordPieceTest, GivesTheIdsOfTheReference) {
  std::ifstream file(std::string(kPieces) + "/cases.json");
  std::stringstream text;
  text << file.rdbuf();
  const auto cases = nlohmann::json::parse(text.str());
  ASSERT_GT(cases.size(), 50u);
  for (const auto& known : cases) {
    const auto tokenizer = WordPiece::Load(kPieces, known["lowercase"].get<bool>());
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    EXPECT_EQ(*(*tokenizer)->Encode(known["text"].get<std::string>()),
              known["ids"].get<std::vector<int32_t>>())
        << known;
  }
}

TEST(WordPieceTest, TakesTheLongestTokensAndElseTheWordIsUnknown) {
  EXPECT_THAT(*Tiny()->Encode("Unable, unaab"), ElementsAre(5, 6, 8, 1));
  EXPECT_THAT(*Tiny()->Encode("una"), ElementsAre(5, 7));
}

TEST(WordPieceTest, BytesThatAreNoUtf8AreLeftOut) {
  EXPECT_THAT(*Tiny()->Encode("u\xFFn\xE4\xB8"), ElementsAre(5));
}

TEST(WordPieceTest, KnowsItsSpecialTokensAndFindsThemInATextByName) {
  const auto tiny = Tiny();
  EXPECT_EQ(tiny->special().mask, 4);
  EXPECT_TRUE(tiny->special().has(3));
  EXPECT_FALSE(tiny->special().has(5));
  EXPECT_THAT(*tiny->Encode("un[MASK]able[SEP]"), ElementsAre(5, 4, 1, 3));
}

TEST(WordPieceTest, DecodesToTokensWithSpacesBetweenWords) {
  EXPECT_EQ(*Tiny()->Decode({2, 5, 6, 8, 3}), "[CLS] unable , [SEP]");
  EXPECT_THAT(std::string(Tiny()->Decode({9}).status().message()),
              HasSubstr("id 9, want 0 to 8, the vocabulary"));
}

TEST(WordPieceTest, DigestNamesTheVocabularyAndTheCase) {
  EXPECT_EQ(Tiny()->digest(), Tiny()->digest());
  EXPECT_NE(Tiny()->digest(), (*WordPiece::Parse(kTiny, /*lowercase=*/false))->digest());
}

std::string WhyNot(const std::string& vocabulary) {
  const absl::Status status = WordPiece::Parse(vocabulary, /*lowercase=*/true).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(WordPieceTest, AVocabularyThatIsNoneIsRefused) {
  EXPECT_THAT(WhyNot(""), HasSubstr("line 1 is empty, want a token"));
  EXPECT_THAT(WhyNot("[PAD]\n\n[UNK]\n"), HasSubstr("line 2 is empty, want a token"));
  EXPECT_THAT(WhyNot("a\n##a\na\n"), HasSubstr("line 3: \"a\" stands on line 1, too"));
  EXPECT_THAT(WhyNot("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n"), HasSubstr("no line is [MASK]"));
}

TEST(WordPieceTest, AMissingFileIsNamedWithHowToGetOne) {
  const absl::Status status = WordPiece::Load("no/such", /*lowercase=*/true).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("no/such/vocab.txt"), HasSubstr("thinwire data vocabulary")));
}

}  // namespace
}  // namespace thinwire
