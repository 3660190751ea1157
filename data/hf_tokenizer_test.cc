#include "data/hf_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

constexpr char kFolder[] = "data/hf_testdata";  // made by hf_fixture.py

Json ReadJson(const std::string& name) {
  std::ifstream file(std::string(kFolder) + "/" + name);
  return Json::parse(file);
}

absl::StatusOr<std::unique_ptr<HfTokenizer>> Parsed(const Json& file, Specials specials) {
  HfFiles files;
  files.contents[kTokenizerFile] = file.dump();
  auto tokenizer = ParseTokenizerJson(files.contents[kTokenizerFile]);
  if (!tokenizer.ok()) return tokenizer.status();
  files.tokenizer = *std::move(tokenizer);
  return HfTokenizer::Of(std::move(files), specials);
}

// Returns the small vocabulary under the rules of a case.
std::unique_ptr<HfTokenizer> WithRules(const Json& rules, Specials specials) {
  Json file = ReadJson(rules["file"].get<std::string>() + "/tokenizer.json");
  file["normalizer"] = rules["normalizer"];
  file["pre_tokenizer"] = rules["pre_tokenizer"];
  file["model"]["ignore_merges"] = rules["ignore_merges"];
  auto tokenizer = Parsed(file, specials);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

std::unique_ptr<HfTokenizer> Small(const char* name, Specials specials = Specials::kText) {
  auto tokenizer = HfTokenizer::Load(std::string(kFolder) + "/" + name, specials);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

TEST(HfTokenizerTest, IdsAreThoseOfHuggingFacesTokenizersUnderAllRules) {
  const Json cases = ReadJson("cases.json");
  for (const Json& rules : cases["rules"]) {
    for (const Specials specials : {Specials::kText, Specials::kIds}) {
      const auto tokenizer = WithRules(rules, specials);
      const Json& wanted = rules[specials == Specials::kText ? "text" : "ids"];
      for (size_t i = 0; i < wanted.size(); ++i) {
        const auto text = cases["texts"][i].get<std::string>();
        EXPECT_EQ(*tokenizer->Encode(text), wanted[i].get<Ids>()) << rules["name"] << ": " << text;
      }
    }
  }
}

TEST(HfTokenizerTest, AnyBytesComeBack) {
  std::string all = "a ";
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  for (const char* const name : {"bytes", "characters"}) {
    const auto tokenizer = Small(name);
    for (const std::string& text : {all, std::string(), std::string(" a  b"), all + all}) {
      EXPECT_EQ(*tokenizer->Decode(*tokenizer->Encode(text)), text) << name;
    }
  }
}

TEST(HfTokenizerTest, ATextThatGoesOnKeepsItsSpaces) {
  const auto tokenizer = Small("characters");
  const Ids ids = *tokenizer->Encode("the art");
  EXPECT_EQ(*tokenizer->Decode(ids), "the art");
  EXPECT_EQ(*tokenizer->Continue(ids), " the art");
}

TEST(HfTokenizerTest, ATextBeginsAsThePostProcessorSays) {
  const auto tokenizer = Small("bytes", Specials::kIds);
  ASSERT_TRUE(tokenizer->begin_of_text().has_value());
  EXPECT_EQ(*tokenizer->Decode({*tokenizer->begin_of_text()}), "<s>");
  EXPECT_EQ(*tokenizer->Encode("<s>"), Ids{*tokenizer->begin_of_text()});
  EXPECT_EQ(tokenizer->end_of_text(), std::nullopt) << "no file says";
}

TEST(HfTokenizerTest, SpecialTokensMakeAnotherDigest) {
  EXPECT_EQ(Small("bytes")->digest(), Small("bytes")->digest());
  EXPECT_NE(Small("bytes")->digest(), Small("bytes", Specials::kIds)->digest());
  EXPECT_NE(Small("bytes")->digest(), Small("characters")->digest());
}

TEST(HfTokenizerTest, BytesWithoutATokenAreUnknownOrLost) {
  Json file = ReadJson("bytes/tokenizer.json");
  Json& vocabulary = file["model"]["vocab"];
  const int32_t a = vocabulary["a"], lost = vocabulary["Ā"], last = vocabulary["Ń"];
  vocabulary.erase("Ā");  // byte 0
  vocabulary.erase("Ń");  // byte 173
  vocabulary["first"] = lost;
  vocabulary["second"] = last;
  const std::string text = std::string("a\0\0", 3) + "a";
  EXPECT_EQ(*(*Parsed(file, Specials::kText))->Encode(text), (Ids{a, a}));
  file["model"]["unk_token"] = "first";
  EXPECT_EQ(*(*Parsed(file, Specials::kText))->Encode(text), (Ids{a, lost, lost, a}));
  file["model"]["fuse_unk"] = true;
  EXPECT_EQ(*(*Parsed(file, Specials::kText))->Encode(text), (Ids{a, lost, a}));
}

TEST(HfTokenizerTest, ALongTextWithoutSpacesTakesNoLongerThanItMust) {
  const auto tokenizer = Small("characters");
  EXPECT_EQ(*tokenizer->Decode(*tokenizer->Encode(std::string(1 << 20, 'e'))),
            std::string(1 << 20, 'e'));
}

TEST(HfTokenizerTest, TokensOfBytesMayBeMerged) {
  Json file = ReadJson("characters/tokenizer.json");
  const auto next = static_cast<int32_t>(file["model"]["vocab"].size() + 5);  // behind added ones
  file["model"]["vocab"]["<0x09><0x09>"] = next;
  file["model"]["merges"].push_back({"<0x09>", "<0x09>"});
  const auto tokenizer = Parsed(file, Specials::kText);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT(*(*tokenizer)->Encode("\t\t"), ::testing::Contains(next));
}

TEST(HfTokenizerTest, AMergeThatStandsTwiceIsRefused) {
  Json file = ReadJson("bytes/tokenizer.json");
  file["model"]["merges"].push_back(file["model"]["merges"][0]);
  EXPECT_THAT(Parsed(file, Specials::kText).status().message(),
              HasSubstr("model.merges[344] stands there before, want each pair once"));
}

TEST(HfTokenizerTest, IdsOutsideTheVocabularyAreRefused) {
  EXPECT_THAT(Small("bytes")->Decode({605}).status().message(), HasSubstr("id 605, want 0 to 604"));
}

}  // namespace
}  // namespace thinwire
