#include "data/hf_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class HfFilesTest : public ::testing::Test {
 protected:
  HfFilesTest() {
    fs::remove_all(dir_);
    fs::create_directories(dir_);
    fs::copy_file("data/hf_testdata/bytes/tokenizer.json", dir_ + "/tokenizer.json");
  }
  ~HfFilesTest() override { fs::remove_all(dir_); }

  void Write(const std::string& name, const std::string& content) const {
    fs::remove(dir_ + "/" + name);  // a copy may be read-only
    std::ofstream(dir_ + "/" + name) << content;
  }
  HfFiles Read() const {
    auto files = ReadHfFiles(dir_);
    EXPECT_TRUE(files.ok()) << files.status();
    return files.ok() ? *std::move(files) : HfFiles();
  }
  std::string Refusal(absl::StatusCode code = absl::StatusCode::kInvalidArgument) const {
    const absl::Status status = ReadHfFiles(dir_).status();
    EXPECT_EQ(status.code(), code) << status;
    return std::string(status.message());
  }

  const std::string dir_ = ::testing::TempDir() + "/hf_files";
};

TEST_F(HfFilesTest, EndsOfTextAreTheConfiguredOnes) {
  EXPECT_THAT(Read().ends_of_text, IsEmpty());
  Write("config.json", R"({"eos_token_id": 7, "bos_token_id": 3})");
  EXPECT_THAT(Read().ends_of_text, ElementsAre(7));
  Write("generation_config.json", R"({"eos_token_id": [601, 9]})");
  EXPECT_THAT(Read().ends_of_text, ElementsAre(601, 9));
  Write("tokenizer_config.json", R"({"eos_token": "</s>"})");
  EXPECT_THAT(Read().ends_of_text, ElementsAre(601, 9));
  Write("tokenizer_config.json", R"({"eos_token": {"content": "<tool>", "lstrip": false}})");
  EXPECT_THAT(Read().ends_of_text, ElementsAre(603, 601, 9));
  Write("tokenizer_config.json", R"({"eos_token": null})");
  EXPECT_THAT(Read().ends_of_text, ElementsAre(601, 9));
}

TEST_F(HfFilesTest, EndsOfALargerTokenizerAreLeftOutWhereOneIsNamed) {
  Write("tokenizer_config.json", R"({"eos_token": "</s>"})");
  Write("config.json", R"({"eos_token_id": 50256})");
  EXPECT_THAT(Read().ends_of_text, ElementsAre(601));
  Write("generation_config.json", R"({"eos_token_id": [50256, 9]})");
  EXPECT_THAT(Read().ends_of_text, ElementsAre(601, 9));
  Write("generation_config.json", R"({"eos_token_id": "</s>"})");
  EXPECT_THAT(Refusal(), HasSubstr("generation_config.json: eos_token_id is \"</s>\", want"));
}

TEST_F(HfFilesTest, TheBeginningIsThePostProcessorsUnlessConfigured) {
  EXPECT_EQ(Read().begin_of_text, 600);
  Write("tokenizer_config.json", R"({"bos_token": "</s>"})");
  EXPECT_EQ(Read().begin_of_text, 600);
  Write("tokenizer_config.json", R"({"bos_token": "</s>", "add_bos_token": true})");
  EXPECT_EQ(Read().begin_of_text, 601);
  Write("tokenizer_config.json", R"({"bos_token": "</s>", "add_bos_token": false})");
  EXPECT_EQ(Read().begin_of_text, std::nullopt);
}

TEST_F(HfFilesTest, FilesThatTransformersReadWithItAreKept) {
  Write("tokenizer_config.json", R"({"model_max_length": 5})");
  Write("chat_template.jinja", "{{ x }}");
  Write("generation_config.json", R"({"eos_token_id": [601, 9]})");
  Write("model.safetensors", "");
  const HfFiles files = Read();
  EXPECT_EQ(files.contents.size(), 4u);
  EXPECT_EQ(files.contents.count("generation_config.json"), 1u);
  EXPECT_EQ(files.contents.at("chat_template.jinja"), "{{ x }}");
}

TEST_F(HfFilesTest, AFolderWithoutItIsToldWhatToDo) {
  fs::remove(dir_ + "/tokenizer.json");
  EXPECT_EQ(Refusal(absl::StatusCode::kNotFound),
            dir_ + " has no tokenizer.json, want one of Hugging Face's tokenizers");
  Write("vocab.json", "{}");
  EXPECT_THAT(Refusal(absl::StatusCode::kNotFound), HasSubstr("data.tokens: bpe reads"));
  Write("tokenizer.model", "");
  EXPECT_THAT(Refusal(absl::StatusCode::kNotFound),
              HasSubstr("AutoTokenizer.from_pretrained(\"" + dir_ + "\").save_pretrained("));
}

TEST_F(HfFilesTest, WhatIsNoTokenizerIsNamed) {
  Write("tokenizer.json", "version https://git-lfs.github.com/spec/v1\noid sha256:" +
                              std::string(64, 'a') + "\nsize 9085657\n");
  EXPECT_THAT(Refusal(absl::StatusCode::kDataLoss),
              HasSubstr("tokenizer.json: is a pointer of Git LFS to 9085657 bytes"));
  Write("tokenizer.json", "<!DOCTYPE html><html></html>");
  EXPECT_THAT(Refusal(absl::StatusCode::kDataLoss), HasSubstr("is an HTML page"));
  Write("tokenizer.json", "{");
  EXPECT_THAT(Refusal(), HasSubstr("tokenizer.json: is broken JSON, want a JSON map"));
  Write("tokenizer.json", "");
  fs::resize_file(dir_ + "/tokenizer.json", uint64_t{1} << 30);
  EXPECT_THAT(Refusal(), HasSubstr("has 1073741824 bytes, want at most 268435456"));
}

TEST_F(HfFilesTest, TwoTokenizersThatDifferAreRefused) {
  Write("vocab.json", R"({"!": 0, "\"": 1})");
  Read();
  Write("vocab.json", R"({"!": 0, "\"": 2})");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("has two tokenizers: token \"\\\"\" is 2 in vocab.json, "),
                               HasSubstr("but 1 in tokenizer.json; want the same in both")));
  fs::remove(dir_ + "/vocab.json");
  Write("added_tokens.json", R"({"<new>": 605})");
  EXPECT_THAT(Refusal(), HasSubstr("token \"<new>\" is 605 in added_tokens.json, but none in"));
  fs::remove(dir_ + "/added_tokens.json");
  Write("tokenizer_config.json", R"({"added_tokens_decoder": {"600": {"content": "<s>"}}})");
  Read();
  Write("tokenizer_config.json", R"({"added_tokens_decoder": {"601": {"content": "<s>"}}})");
  EXPECT_THAT(Refusal(), HasSubstr("token \"<s>\" is 601 in tokenizer_config.json, but 600 in"));
}

TEST_F(HfFilesTest, ConfiguredTokensAreThoseOfTheTokenizer) {
  Write("tokenizer_config.json", R"({"eos_token": "<none>"})");
  EXPECT_THAT(Refusal(), HasSubstr("tokenizer_config.json: eos_token is \"<none>\", want a token"));
  Write("tokenizer_config.json", "[]");
  EXPECT_THAT(Refusal(), HasSubstr("tokenizer_config.json: is no JSON map"));
  fs::remove(dir_ + "/tokenizer_config.json");
  for (const char* const wrong : {"605", "[1, -1]", "\"</s>\"", "{}"}) {
    Write("config.json", std::string("{\"eos_token_id\": ") + wrong + "}");
    EXPECT_THAT(Refusal(),
                AllOf(HasSubstr("config.json: eos_token_id is "), HasSubstr("want 0 to 604")))
        << wrong;
  }
}

}  // namespace
}  // namespace thinwire
