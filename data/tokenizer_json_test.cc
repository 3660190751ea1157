#include "data/tokenizer_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

Json Small(const char* name = "bytes") {
  std::ifstream file(std::string("data/hf_testdata/") + name + "/tokenizer.json");
  return Json::parse(file);
}

std::string Refusal(const std::string& text) {
  const auto tokenizer = ParseTokenizerJson(text);
  EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kInvalidArgument) << tokenizer.status();
  return std::string(tokenizer.status().message());
}

std::string RefusalOf(Json file, const std::function<void(Json*)>& change) {
  change(&file);
  return Refusal(file.dump());
}

TEST(ParseTokenizerJsonTest, HasEachTokenAtItsId) {
  const auto tokenizer = ParseTokenizerJson(Small().dump());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(tokenizer->tokens.size(), 605u);
  EXPECT_EQ(tokenizer->tokens[0], "!");
  EXPECT_TRUE(tokenizer->is_piece[599]);
  EXPECT_FALSE(tokenizer->is_piece[600]);
  EXPECT_EQ(tokenizer->tokens[600], "<s>");
  EXPECT_EQ(tokenizer->beginning, 600);
  EXPECT_EQ(tokenizer->added.size(), 5u);
  EXPECT_TRUE(tokenizer->added[2].takes_left);
  EXPECT_STREQ(tokenizer->rules.name, "GPT-2");
}

TEST(ParseTokenizerJsonTest, OlderAndNewerSpellingsOfMergesAreTheSame) {
  Json older = Small();
  for (Json& merge : older["model"]["merges"]) {
    merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  }
  const auto a = ParseTokenizerJson(Small().dump()), b = ParseTokenizerJson(older.dump());
  ASSERT_TRUE(a.ok() && b.ok()) << b.status();
  ASSERT_EQ(a->merges.size(), b->merges.size());
  for (size_t i = 0; i < a->merges.size(); ++i) {
    EXPECT_EQ(a->merges[i].left, b->merges[i].left);
    EXPECT_EQ(a->merges[i].product, b->merges[i].product);
  }
}

TEST(ParseTokenizerJsonTest, WhatChangesNoIdIsIgnored) {
  Json file = Small();
  file["normalizer"] = {{"type", "Sequence"}, {"normalizers", Json::array()}};
  file["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}}}}};
  file["model"].erase("type");
  file["model"]["unk_token"] = "";
  file["model"]["dropout"] = 0;
  file["truncation"] = {{"max_length", 5}};
  EXPECT_TRUE(ParseTokenizerJson(file.dump()).ok()) << ParseTokenizerJson(file.dump()).status();
}

TEST(ParseTokenizerJsonTest, OtherRulesAreRefusedWithThoseThatAreKnown) {
  const std::string refusal = RefusalOf(Small(), [](Json* file) {
    (*file)["normalizer"] = {{"type", "NFKC"}};
  });
  EXPECT_THAT(refusal,
              HasSubstr("normalizer {\"type\":\"NFKC\"} with pre_tokenizer {\"add_prefix"));
  EXPECT_THAT(refusal, HasSubstr("want those of GPT-2, SmolLM2, Llama 3, Qwen 2, Mistral Nemo, "
                                 "Llama 2, Mistral, Gemma"));
}

TEST(ParseTokenizerJsonTest, WhatIsBrokenIsNamed) {
  EXPECT_EQ(Refusal(""), "is broken JSON, want a JSON map");
  EXPECT_EQ(Refusal("[1]"), "is array, want a JSON map");
  EXPECT_THAT(Refusal(Small().dump().substr(0, 5000)), HasSubstr("is broken JSON"));
  EXPECT_THAT(Refusal(std::string(100000, '[')), HasSubstr("byte 64 is nested more than 64 times"));
  EXPECT_THAT(Refusal("{}"), HasSubstr("model.type is null, want \"BPE\""));
  const std::vector<std::pair<std::function<void(Json*)>, const char*>> changes = {
      {[](Json* f) { (*f)["model"]["type"] = "Unigram"; },
       "model.type is \"Unigram\", want \"BPE\""},
      {[](Json* f) { (*f)["model"]["type"] = "WordPiece"; }, "data.tokens: word_piece reads"},
      {[](Json* f) { (*f)["model"]["dropout"] = 0.1; }, "model.dropout is 0.1, want null"},
      {[](Json* f) { (*f)["model"]["end_of_word_suffix"] = "</w>"; },
       "model.end_of_word_suffix is \"</w>\", want null"},
      {[](Json* f) { (*f)["model"]["vocab"] = 3; }, "model.vocab is number, want a map"},
      {[](Json* f) { (*f)["model"]["merges"] = "a b"; }, "model.merges is string, want a list"},
      {[](Json* f) { (*f)["model"]["vocab"]["a"] = 0; }, "id 0 is that of \"!\" and of \"a\""},
      {[](Json* f) { (*f)["model"]["vocab"]["a"] = 1000; },
       "\"a\" has id 1000, want 0 to 604, one of each token"},
      {[](Json* f) { (*f)["model"]["vocab"]["a"] = -1; }, "\"a\" has id -1, want 0 to 604"},
      {[](Json* f) { (*f)["model"]["vocab"].erase("a"); }, "has id 604, want 0 to 603"},
      {[](Json* f) { (*f)["added_tokens"][0]["id"] = 5; }, "id 5 is that of "},
      {[](Json* f) { (*f)["added_tokens"][0]["content"] = "a"; },
       "added token \"a\" has id 600, but "},
      {[](Json* f) { (*f)["added_tokens"][0]["content"] = ""; }, "added_tokens has {"},
      {[](Json* f) { (*f)["added_tokens"][0]["single_word"] = true; },
       "added token \"<s>\" has single_word true, want false"},
      {[](Json* f) { (*f)["model"]["merges"][7] = "a"; },
       "model.merges[7] is \"a\", want two tokens"},
      {[](Json* f) {
         (*f)["model"]["merges"][7] = {"a", "none"};
       },
       "model.merges[7] has \"none\", want a token of model.vocab"},
      {[](Json* f) {
         (*f)["model"]["merges"][7] = {"a", "!"};
       },
       "model.merges[7] has \"a!\", want a token of model.vocab"},
      {[](Json* f) { (*f)["model"]["unk_token"] = "none"; },
       "model.unk_token is \"none\", want null or a token of model.vocab"},
      {[](Json* f) { (*f)["post_processor"]["single"][0]["SpecialToken"]["id"] = "none"; },
       "post_processor puts \"none\" in front of a text"},
  };
  for (const auto& [change, message] : changes) {
    EXPECT_THAT(RefusalOf(Small(), change), HasSubstr(message));
  }
}

TEST(ParseTokenizerJsonTest, SentencePiecesKindNeedsATokenForEachByte) {
  EXPECT_THAT(
      RefusalOf(Small("characters"), [](Json* f) { (*f)["model"]["byte_fallback"] = false; }),
      HasSubstr("model.byte_fallback is false, want true"));
  EXPECT_THAT(
      RefusalOf(Small("characters"), [](Json* f) { (*f)["model"]["ignore_merges"] = true; }),
      HasSubstr("model.ignore_merges is true with the rules of Llama 2, want false"));
}

}  // namespace
}  // namespace thinwire
