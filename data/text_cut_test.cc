#include "data/text_cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "data/bpe.h"
#include "data/bytes.h"
#include "data/hf_tokenizer.h"
#include "data/word_piece.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

using Json = nlohmann::json;

constexpr const char* kStretches[] = {"the",
                                      " king",
                                      "\n",
                                      "\n\n",
                                      "\r\n",
                                      " ",
                                      "  ",
                                      "\t",
                                      "'s",
                                      "'",
                                      "12",
                                      "345",
                                      "\u00e9",
                                      "e\u0301",
                                      "\u0301",
                                      "\u65e5\u672c",
                                      ".",
                                      "\u3002",
                                      "!!",
                                      "/",
                                      "<s>",
                                      "</s>",
                                      "<tool>",
                                      "<pad>",
                                      "\u00c5ngstr",
                                      "\u2581",
                                      "<|endoftext|>",
                                      "[CLS]",
                                      "\u00a0",
                                      "\u2028",
                                      "\xFF",
                                      "\xE2\x80",
                                      "\u0663",
                                      "A",
                                      "aB",
                                      "\u1100\u1161"};

// Returns texts in which ends of lines stand beside everything.
std::vector<std::string> Texts() {
  std::vector<std::string> texts;
  RandomStream random(7);
  for (int i = 0; i < 300; ++i) {
    std::string text;
    for (int j = 0; j < 40; ++j) text += kStretches[random.Next() % std::size(kStretches)];
    texts.push_back(text);
  }
  return texts;
}

// Divides texts at every place where they may be.
void ExpectPartsHaveTheIds(const Tokenizer& tokenizer, const std::string& name) {
  ASSERT_TRUE(tokenizer.may_be_cut()) << name;
  int cuts = 0;
  for (const std::string& text : Texts()) {
    const std::vector<int32_t> whole = *tokenizer.Encode(text);
    const auto last_cut = [&](size_t end) { return tokenizer.LastCut(text.substr(0, end)); };
    for (size_t end = text.size(), cut = 0; (cut = last_cut(end)) > 0; end = cut) {
      std::vector<int32_t> parts = *tokenizer.Encode(text.substr(0, cut));
      const std::vector<int32_t> second = *tokenizer.EncodeRest(text.substr(cut));
      parts.insert(parts.end(), second.begin(), second.end());
      ASSERT_EQ(parts, whole) << name << ", at " << cut << " of "
                              << Json(text).dump(-1, ' ', true, Json::error_handler_t::replace);
      ++cuts;
    }
  }
  EXPECT_GT(cuts, 300);
}

TEST(LastLineEndTest, IsTheEndOfALineBehindALetterOrANumber) {
  EXPECT_EQ(LastLineEnd("ab\ncd\n"), 5u);
  EXPECT_EQ(LastLineEnd("ab\ncd.\n"), 2u);
  EXPECT_EQ(LastLineEnd("1\r\n"), 1u);
  EXPECT_EQ(LastLineEnd("\u65e5\n"), 3u);
  for (const char* const text : {"", "\n", "a", ".\n", "a \n", "\xE6\n", "\u3002\n"}) {
    EXPECT_EQ(LastLineEnd(text), 0u) << text;
  }
}

TEST(LastCutTest, PartsHaveTheIdsOfTheText) {
  ExpectPartsHaveTheIds(Bytes(), "bytes");
  for (const EndOfText end : {EndOfText::kToken, EndOfText::kCharacters}) {
    ExpectPartsHaveTheIds(**Bpe::Load("data/bpe_testdata", /*verify=*/false, end), "bpe");
  }
  for (const bool lowercase : {false, true}) {
    ExpectPartsHaveTheIds(**WordPiece::Load("data/word_piece_testdata", lowercase), "word_piece");
  }
}

// Returns the small tokenizer of a case under its rules.
std::unique_ptr<HfTokenizer> TokenizerUnder(const Json& rules, Specials specials) {
  std::ifstream from("data/hf_testdata/" + rules["file"].get<std::string>() + "/tokenizer.json");
  Json file = Json::parse(from);
  file["normalizer"] = rules["normalizer"];
  file["pre_tokenizer"] = rules["pre_tokenizer"];
  HfFiles files;
  files.contents[kTokenizerFile] = file.dump();
  files.tokenizer = *ParseTokenizerJson(files.contents[kTokenizerFile]);
  return *HfTokenizer::Of(std::move(files), specials);
}

TEST(LastCutTest, PartsHaveTheIdsOfTheTextUnderAllRulesOfPublishedTokenizers) {
  std::ifstream from("data/hf_testdata/cases.json");
  const Json cases = Json::parse(from);
  std::set<std::string> seen;
  for (const Json& rules : cases["rules"]) {
    for (const Specials specials : {Specials::kText, Specials::kIds}) {
      const auto tokenizer = TokenizerUnder(rules, specials);
      ExpectPartsHaveTheIds(*tokenizer, rules["name"]);
      seen.insert(rules["file"]);
    }
  }
  EXPECT_EQ(seen.size(), 2u) << "over bytes and over characters";
}

TEST(LastCutTest, ATokenThatGoesOnBehindALineForbidsIt) {
  std::ifstream from("data/hf_testdata/bytes/tokenizer.json");
  const Json file = Json::parse(from);
  for (const auto& [content, takes_right, may] :
       {std::tuple("<x>", false, true), std::tuple("<x>", true, true), std::tuple("x", false, true),
        std::tuple("x", true, false), std::tuple("a\nb", false, false),
        std::tuple("\n\n", false, false), std::tuple("\n", false, true)}) {
    HfFiles files;
    files.tokenizer = *ParseTokenizerJson(file.dump());
    AddedToken token;
    token.content = content;
    token.takes_right = takes_right;
    files.tokenizer.added.push_back(token);
    EXPECT_EQ((*HfTokenizer::Of(std::move(files), Specials::kText))->may_be_cut(), may) << content;
  }
}

}  // namespace
}  // namespace thinwire
