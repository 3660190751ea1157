#include "coordinator/data/token_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "base/file.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kFolder[] = "data/hf_testdata/bytes";

class TokenFilesTest : public ::testing::Test {
 protected:
  TokenFilesTest() {
    fs::remove_all(dir_);
    fs::create_directories(dir_);
  }
  ~TokenFilesTest() override { fs::remove_all(dir_); }

  std::string Write(const std::string& name, const std::string& content) const {
    std::ofstream(dir_ + "/" + name, std::ios::binary) << content;
    return dir_ + "/" + name;
  }
  static std::unique_ptr<Tokenizer> Small(Specials specials = Specials::kText) {
    return *OpenTokenizer(kFolder, specials);
  }
  std::string ErrorOf(const std::string& text) const {
    return std::string(EncodeFile(Write("text", text), *Small(), out_).status().message());
  }

  const std::string dir_ = ::testing::TempDir() + "/token_files";
  const std::string out_ = dir_ + "/ids.bin";
};

TEST_F(TokenFilesTest, ATextComesBackFromItsIds) {
  const std::string text = "the art\n<s>\xFF";
  const auto line = EncodeFile(Write("text", "\xEF\xBB\xBF" + text), *Small(), out_);
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_THAT(*line, AllOf(HasSubstr(out_ + ": "), HasSubstr(" ids of 16 bits, ")));
  EXPECT_EQ(*DecodeFile(out_, *Small()), text);
}

TEST_F(TokenFilesTest, SpecialTokensAreIdsIfSo) {
  const std::string path = Write("text", "<s>");
  ASSERT_TRUE(EncodeFile(path, *Small(Specials::kIds), out_).ok());
  EXPECT_EQ(*ReadFile(out_), "\x58\x02") << "600";
  EXPECT_EQ(*DecodeFile(out_, *Small()), "<s>");
}

TEST_F(TokenFilesTest, IdsThatAreNoneAreNamed) {
  EXPECT_EQ(DecodeFile(Write("odd", "abc"), *Small()).status().message(),
            dir_ + "/odd has 3 bytes, want ids of 2 bytes for 605 ids");
  EXPECT_EQ(DecodeFile(Write("far", std::string("\0\0\xFF\xFF", 4)), *Small()).status().message(),
            dir_ + "/far: number 1 is 65535, want 0 to 604, an id of the tokenizer");
}

TEST_F(TokenFilesTest, WhatIsNoTextIsNamed) {
  EXPECT_THAT(EncodeFile(dir_ + "/none", *Small(), out_).status().message(), HasSubstr("/none"));
  EXPECT_THAT(ErrorOf("<!DOCTYPE html><html></html>"), HasSubstr("/text: is an HTML page"));
  EXPECT_THAT(EncodeFile(Write("text", "a"), *Small(), dir_).status().message(), HasSubstr(dir_));
}

TEST_F(TokenFilesTest, ATokenizerIsDescribed) {
  const auto lines = DescribeTokenizer(kFolder);
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_THAT(*lines, HasSubstr("rules of GPT-2, merges of bytes\n605 ids, 344 merges\n"
                                "in front of a text: 600 <s>\nend of a text: not known\n"
                                "5 added tokens, 3 of them special\n  600 <s>\n"));
  EXPECT_THAT(*lines, HasSubstr("  603 <tool>, in any text\n"));
  Write("vocabulary.json", R"({"tokens": "bytes"})");
  EXPECT_EQ(*DescribeTokenizer(dir_), "256 ids by vocabulary.json\n");
  fs::remove(dir_ + "/vocabulary.json");
  EXPECT_THAT(DescribeTokenizer(dir_).status().message(), HasSubstr("has no tokenizer.json"));
  fs::copy_file("data/bpe_testdata/encoder.json", dir_ + "/vocab.json");
  EXPECT_THAT(DescribeTokenizer(dir_).status().message(), HasSubstr("data.tokens: bpe reads"));
  fs::copy_file("data/bpe_testdata/vocab.bpe", dir_ + "/merges.txt");
  EXPECT_THAT(*DescribeTokenizer(dir_), HasSubstr(" ids by vocab.json\n"));
}

}  // namespace
}  // namespace thinwire
