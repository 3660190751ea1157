#include "data/vocabulary_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kGpt2[] = "data/bpe_testdata";         // encoder.json, vocab.bpe
constexpr char kHf[] = "data/hf_testdata/bytes";      // tokenizer.json
constexpr char kBert[] = "data/word_piece_testdata";  // vocab.txt

class VocabularyFilesTest : public ::testing::Test {
 protected:
  VocabularyFilesTest() {
    fs::remove_all(dir_);
    fs::create_directories(dir_);
    options_.name = "text";
    options_.verify = false;
    options_.text.file = dir_ + "/corpus.txt";
    options_.text.vocabulary = kGpt2;
    options_.text.tokens = TokenKind::kCharacters;
    WriteFile("corpus.txt", "to be, or not to be: \xC3\xA4");
  }
  ~VocabularyFilesTest() override { fs::remove_all(dir_); }

  void WriteFile(const std::string& name, const std::string& content) {
    std::ofstream(dir_ + "/" + name, std::ios::binary) << content;
  }
  // Leaves nothing of another vocabulary.
  void Write(const DataOptions& options) {
    for (const auto& entry : fs::directory_iterator(dir_)) {
      if (entry.path().filename() != "corpus.txt") fs::remove(entry.path());
    }
    const auto files = VocabularyFiles(options);
    ASSERT_TRUE(files.ok()) << files.status();
    for (const auto& [name, content] : *files) WriteFile(name, content);
  }
  DataOptions With(TokenKind tokens) const {
    DataOptions options = options_;
    options.text.tokens = tokens;
    if (tokens == TokenKind::kWordPiece) options.text.vocabulary = kBert;
    if (tokens == TokenKind::kHf) options.text.vocabulary = kHf;
    return options;
  }
  std::string Refusal(const DataOptions& options) {
    const absl::Status status = CheckVocabulary(dir_, options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }
  std::string ErrorOfOpening() { return std::string(OpenVocabulary(dir_).status().message()); }
  static nlohmann::json Gpt2Ids() {
    std::ifstream file(std::string(kGpt2) + "/encoder.json");
    return nlohmann::json::parse(file);
  }

  const std::string dir_ = ::testing::TempDir() + "/vocabulary_files";
  DataOptions options_;
};

TEST_F(VocabularyFilesTest, KeepTheEndsOfTextsThatOtherFilesName) {
  fs::create_directories(dir_ + "/model");
  fs::copy_file(std::string(kHf) + "/tokenizer.json", dir_ + "/model/tokenizer.json");
  DataOptions options = With(TokenKind::kHf);
  options.text.vocabulary = dir_ + "/model";
  const auto kept = [&] { return VocabularyFiles(options)->at("generation_config.json"); };
  WriteFile("model/config.json", R"({"eos_token_id": [601, 9]})");
  EXPECT_EQ(kept(), R"({"eos_token_id":[601,9]})");
  WriteFile("model/generation_config.json", R"({"eos_token_id": 7})");
  EXPECT_EQ(kept(), R"({"eos_token_id": 7})");
}

TEST_F(VocabularyFilesTest, GiveTheIdsOfTheTextWithoutTheText) {
  for (const TokenKind tokens : thinwire::AllOf<TokenKind>()) {
    if (tokens == TokenKind::kIds) continue;
    SCOPED_TRACE(Name(tokens));
    Write(With(tokens));
    const auto wanted = *LoadTokenizer(With(tokens));
    const std::string corpus = dir_ + "/corpus.txt", away = dir_ + "/away";
    fs::rename(corpus, away);
    const auto opened = OpenVocabulary(dir_);
    fs::rename(away, corpus);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ((*opened)->digest(), wanted->digest());
    EXPECT_EQ((*opened)->end_of_text(), wanted->end_of_text());
    EXPECT_EQ(*(*opened)->Encode("to be \xC3\xA4"), *wanted->Encode("to be \xC3\xA4"));
  }
}

TEST_F(VocabularyFilesTest, KnowWhatStandsBetweenDocuments) {
  DataOptions options = With(TokenKind::kBpe);
  options.text.end_of_text = EndOfText::kCharacters;
  Write(options);
  EXPECT_EQ((*OpenVocabulary(dir_))->end_of_text(), std::nullopt);
}

TEST_F(VocabularyFilesTest, AFolderWithoutThemOrWithOthersIsRefused) {
  EXPECT_EQ(OpenVocabulary(dir_).status().code(), absl::StatusCode::kNotFound);
  const std::vector<std::pair<const char*, const char*>> refusals = {
      {"[]", "vocabulary.json: is no JSON map"},
      {"<!DOCTYPE html>", "vocabulary.json: is an HTML page"},
      {"{}", "vocabulary.json: tokens: unknown"},
      {R"({"tokens": 3})", "vocabulary.json: tokens: unknown"},
      {R"({"tokens": "characters"})", "vocabulary.json: has no characters, want at least one"},
      {R"({"tokens": "bpe", "end_of_text": "no"})", "vocabulary.json: end_of_text: unknown"},
      {R"({"tokens": "bpe", "end_of_text": "token"})", "/encoder.json"},
      {R"({"tokens": "hf", "specials": "no"})", "vocabulary.json: specials: unknown"},
      {R"({"tokens": "word_piece"})", "vocabulary.json: lowercase is null, want true or false"},
      {R"({"tokens": "word_piece", "lowercase": true})", "/vocab.txt"},
  };
  for (const auto& [content, message] : refusals) {
    WriteFile(kVocabularyFile, content);
    EXPECT_THAT(ErrorOfOpening(), HasSubstr(message)) << content;
  }
}

TEST_F(VocabularyFilesTest, IdsAloneHaveNoFilesAndFitAnyCheckpoint) {
  EXPECT_TRUE(VocabularyFiles(With(TokenKind::kIds))->empty());
  Write(With(TokenKind::kBytes));
  EXPECT_EQ(CheckVocabulary(dir_, With(TokenKind::kIds)), absl::OkStatus());
}

TEST_F(VocabularyFilesTest, IdsThatStandForSomethingElseAreRefused) {
  for (const TokenKind tokens : thinwire::AllOf<TokenKind>()) {
    Write(With(tokens));
    EXPECT_EQ(CheckVocabulary(dir_, With(tokens)), absl::OkStatus()) << Name(tokens);
  }
  Write(With(TokenKind::kCharacters));
  EXPECT_THAT(Refusal(With(TokenKind::kBytes)),
              AllOf(HasSubstr("it has 256 tokens, but 10 by " + dir_ + "/vocabulary.json"),
                    HasSubstr("want the tokens that the checkpoint was trained with")));
  WriteFile("corpus.txt", "to be, or not to be: x");
  EXPECT_THAT(Refusal(options_), HasSubstr("id 9 is \"x\", but \"\xC3\xA4\" by"));
}

TEST_F(VocabularyFilesTest, OtherwiseReadTokensAreTheSameTokens) {
  Write(With(TokenKind::kBpe));
  DataOptions options = With(TokenKind::kBpe);
  options.text.end_of_text = EndOfText::kCharacters;
  EXPECT_EQ(CheckVocabulary(dir_, options), absl::OkStatus());
}

TEST_F(VocabularyFilesTest, APublishedVocabularyIsComparedTokenByToken) {
  EXPECT_EQ(CheckVocabulary(dir_, options_), absl::OkStatus()) << "nothing is known";
  nlohmann::json ids = Gpt2Ids();
  WriteFile("vocab.json", ids.dump(1));
  EXPECT_EQ(CheckVocabulary(dir_, With(TokenKind::kBpe)), absl::OkStatus());
  EXPECT_THAT(Refusal(options_),
              AllOf(HasSubstr("data.tokens is characters, but " + dir_ + "/vocab.json has byte"),
                    HasSubstr("want data.tokens: bpe and data.vocabulary: ")));
  ids["e"] = 1000;
  WriteFile("vocab.json", ids.dump());
  EXPECT_THAT(Refusal(With(TokenKind::kBpe)),
              HasSubstr("token \"e\" has id " + Gpt2Ids()["e"].dump() +
                        " in data/bpe_testdata, but 1000 in "));
  ids.erase("e");
  WriteFile("vocab.json", ids.dump());
  EXPECT_THAT(Refusal(With(TokenKind::kBpe)), HasSubstr("data/bpe_testdata, but none in "));
}

TEST_F(VocabularyFilesTest, SoAreWordPieces) {
  std::ifstream file(std::string(kBert) + "/vocab.txt");
  std::stringstream lines;
  lines << file.rdbuf();
  WriteFile("vocab.txt", lines.str());
  EXPECT_EQ(CheckVocabulary(dir_, With(TokenKind::kWordPiece)), absl::OkStatus());
  EXPECT_THAT(Refusal(options_), AllOf(HasSubstr("data.tokens is characters, but "),
                                       HasSubstr("/vocab.txt has word pieces")));
  std::string other = lines.str();
  other.replace(other.find("\na\n"), 3, "\n\xC3\xA4\n");
  WriteFile("vocab.txt", other);
  EXPECT_THAT(Refusal(With(TokenKind::kWordPiece)),
              HasSubstr("id 5 is \"a\" in data/word_piece_testdata, but \"\xC3\xA4\" in "));
  WriteFile("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n");
  EXPECT_THAT(Refusal(With(TokenKind::kWordPiece)), HasSubstr("id 5 is \"a\" in data"));
}

TEST_F(VocabularyFilesTest, AFolderWithATokenizerIsToldToUseIt) {
  fs::copy_file(std::string(kHf) + "/tokenizer.json", dir_ + "/tokenizer.json");
  EXPECT_EQ(CheckVocabulary(dir_, With(TokenKind::kHf)), absl::OkStatus());
  EXPECT_THAT(Refusal(options_), HasSubstr("want data.tokens: hf and data.vocabulary: " + dir_));
  DataOptions other = With(TokenKind::kHf);
  other.text.vocabulary = "data/hf_testdata/characters";
  EXPECT_THAT(Refusal(other), HasSubstr(" in data/hf_testdata/characters, but "));
}

TEST_F(VocabularyFilesTest, SoIsATokenizerInOneFileWithWhatWasAddedToIt) {
  nlohmann::json ids = Gpt2Ids();
  const nlohmann::json end = ids["<|endoftext|>"];
  ids.erase("<|endoftext|>");
  nlohmann::json file = {{"model", {{"type", "BPE"}, {"vocab", ids}}},
                         {"added_tokens", {{{"id", end}, {"content", "<|endoftext|>"}}}}};
  WriteFile("tokenizer.json", file.dump());
  EXPECT_EQ(CheckVocabulary(dir_, With(TokenKind::kBpe)), absl::OkStatus());
  file["added_tokens"] = nlohmann::json::array();
  WriteFile("tokenizer.json", file.dump());
  EXPECT_THAT(Refusal(With(TokenKind::kBpe)),
              AllOf(HasSubstr("token \"<|endoftext|>\" has id "), HasSubstr("but none in ")));
  file["model"]["type"] = "Unigram";
  WriteFile("tokenizer.json", file.dump());
  EXPECT_EQ(CheckVocabulary(dir_, With(TokenKind::kBpe)), absl::OkStatus()) << "not comparable";
}

}  // namespace
}  // namespace thinwire
