#include "data/bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kFolder[] = "data/bpe_testdata";  // made by bpe_fixture.py

std::string Content(const std::string& name) {
  std::ifstream file(std::string(kFolder) + "/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::unique_ptr<Bpe> Small(EndOfText end_of_text = EndOfText::kToken) {
  auto bpe = Bpe::Load(kFolder, /*verify=*/false, end_of_text);
  EXPECT_TRUE(bpe.ok()) << bpe.status();
  return *std::move(bpe);
}

TEST(BpeTest, GivesTheIdsOfTheReference) {
  // As the reference treats <|endoftext|> in ordinary text.
  const auto bpe = Small(EndOfText::kCharacters);
  const auto cases = nlohmann::json::parse(Content("cases.json"));
  ASSERT_GT(cases.size(), 15u);
  for (const auto& known : cases) {
    EXPECT_EQ(*bpe->Encode(known["text"].get<std::string>()),
              known["ids"].get<std::vector<int32_t>>())
        << known["text"];
  }
}

TEST(BpeTest, AnyBytesComeBack) {
  const auto bpe = Small();
  std::string all;
  for (int pair = 0; pair < 0x10000; ++pair) {
    all += {static_cast<char>(pair >> 8), static_cast<char>(pair)};
  }
  EXPECT_EQ(*bpe->Decode(*bpe->Encode(all)), all);
  EXPECT_EQ(*bpe->Decode(*bpe->Encode("")), "");
}

TEST(BpeTest, ALongWordTakesNoLongerPerByteThanAShortOne) {
  const auto bpe = Small();
  const std::string word(4'000'000, 'e');  // quadratic time would be hours
  EXPECT_EQ(*bpe->Decode(*bpe->Encode(word)), word);
}

TEST(BpeTest, EndOfTextIsATokenUnlessItIsToBeCharacters) {
  const auto bpe = Small();
  const int32_t end = *bpe->end_of_text();
  EXPECT_EQ(end, bpe->vocabulary() - 1);
  const std::vector<int32_t> a = *bpe->Encode("a"), b = *bpe->Encode("b");
  EXPECT_THAT(*bpe->Encode("a<|endoftext|>b<|endoftext|>a"),
              ElementsAre(a[0], end, b[0], end, a[0]));
  EXPECT_THAT(*bpe->Encode("<|endoftext|><|endoftext|>"), ElementsAre(end, end));
  EXPECT_EQ(*bpe->Decode({a[0], end}), "a<|endoftext|>");
  const auto plain = Small(EndOfText::kCharacters);
  EXPECT_EQ(plain->end_of_text(), std::nullopt);
  EXPECT_THAT(*plain->Encode("a<|endoftext|>b"), Not(Contains(end)));
  EXPECT_EQ(plain->vocabulary(), bpe->vocabulary());
}

TEST(BpeTest, AWordIsKnownBeyondTheEndOfADocument) {
  const auto bpe = Small();
  std::vector<int32_t> wanted = *bpe->Encode("First Citizen:\nspeak");
  const std::vector<int32_t> once = wanted;
  wanted.push_back(*bpe->end_of_text());
  wanted.insert(wanted.end(), once.begin(), once.end());
  EXPECT_EQ(*bpe->Encode("First Citizen:\nspeak<|endoftext|>First Citizen:\nspeak"), wanted);
}

TEST(BpeTest, AnIdOutsideTheVocabularyIsRefused) {
  const auto bpe = Small();
  for (const int32_t id : {-1, bpe->vocabulary()}) {
    EXPECT_THAT(std::string(bpe->Decode({id}).status().message()),
                HasSubstr("id " + std::to_string(id) + ", want 0 to 956"));
  }
}

TEST(BpeTest, DigestNamesTheVocabulary) {
  const std::string tokens = Content("encoder.json"), merges = Content("vocab.bpe");
  constexpr EndOfText kEnd = EndOfText::kToken;
  EXPECT_EQ((*Bpe::Parse(tokens, merges, kEnd))->digest(), Small()->digest());
  EXPECT_NE((*Bpe::Parse(tokens, "#version: 0.2\n", kEnd))->digest(), Small()->digest());
  EXPECT_NE(Small(EndOfText::kCharacters)->digest(), Small()->digest()) << "other ids of a text";
}

TEST(BpeTest, OtherFilesThanTheOfficialOnesAreRefusedWhenVerified) {
  const absl::Status status = Bpe::Load(kFolder, /*verify=*/true, EndOfText::kToken).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("encoder.json has SHA-256 "), HasSubstr("want 196139668be63f"),
                    HasSubstr("(1042301 bytes)")));
}

TEST(BpeTest, AMissingFolderIsNamedWithHowToGetTheFiles) {
  const absl::Status status = Bpe::Load("no/such", /*verify=*/true, EndOfText::kToken).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("no/such/encoder.json"), HasSubstr("thinwire data fetch gpt2-bpe")));
}

std::string Refusal(const std::string& tokens, const std::string& merges) {
  const absl::Status status = Bpe::Parse(tokens, merges, EndOfText::kToken).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(BpeTest, AVocabularyThatIsNoneIsRefused) {
  EXPECT_THAT(Refusal("[1]", ""), HasSubstr("want a JSON object of tokens and their ids"));
  EXPECT_THAT(Refusal("{\"a\": 0", ""), HasSubstr("want a JSON object"));
  EXPECT_THAT(Refusal("{\"a\": 7}", ""), HasSubstr("\"a\" has id 7, want 0 to 0"));
  EXPECT_THAT(Refusal("{\"a\": 0, \"b\": 0}", ""), HasSubstr("id 0 stands there twice"));
  EXPECT_THAT(Refusal("{\"a b\": 0}", ""), HasSubstr("\"a b\" is not spelled by bytes"));
  EXPECT_THAT(Refusal("{\"a\": 0}", ""), HasSubstr("byte 0x00 has no token"));
}

TEST(BpeTest, MergesThatDoNotFitTheVocabularyAreRefused) {
  const std::string tokens = Content("encoder.json");
  EXPECT_THAT(Refusal(tokens, "a b c\n"), HasSubstr("line 1, \"a b c\": want two tokens"));
  EXPECT_THAT(Refusal(tokens, "#version: 0.2\nth e\n"),
              HasSubstr("line 2, \"th e\": \"th\" is no byte and no line before makes it"));
  EXPECT_THAT(Refusal(tokens, "q z\n"), HasSubstr("has no id for what it makes"));
  EXPECT_THAT(Refusal(tokens, "t h\nt h\n"), HasSubstr("line 2"));
  EXPECT_THAT(Refusal(tokens, "t h\nt h\n"), HasSubstr("makes the same token"));
}

}  // namespace
}  // namespace thinwire
