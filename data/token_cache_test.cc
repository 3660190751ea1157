#include "data/token_cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "data/characters.h"

namespace thinwire {
namespace {

// Counts its calls.
class CountingTokenizer final : public Tokenizer {
 public:
  int32_t vocabulary() const override { return characters_->vocabulary(); }
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const override {
    ++encoded;
    return characters_->Encode(text);
  }
  const std::string& digest() const override { return characters_->digest(); }
  std::optional<int32_t> end_of_text() const override { return end; }

  std::optional<int32_t> end;
  mutable int encoded = 0;

 private:
  void Append(int32_t id, std::string* text) const override { *text += *characters_->Decode({id}); }

  const std::unique_ptr<Characters> characters_ = *Characters::Of("abcde");
};

class TokenCacheTest : public testing::Test {
 protected:
  TokenCacheTest() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = testing::TempDir() + "/token_cache_" + test->name();
    std::filesystem::create_directories(folder_);
  }
  ~TokenCacheTest() override { std::filesystem::remove_all(folder_); }

  std::vector<std::filesystem::path> Files() const {
    std::vector<std::filesystem::path> files;
    for (const auto& file : std::filesystem::directory_iterator(folder_)) files.push_back(file);
    return files;
  }
  // Checks that the tokenizer and the file give the same ids.
  void ExpectIds(const std::string& text, int encoded) {
    const std::vector<int32_t> wanted = *CountingTokenizer().Encode(text);
    tokenizer_.encoded = 0;
    EXPECT_EQ(*CachedTokens(folder_, tokenizer_, text), wanted);
    EXPECT_EQ(tokenizer_.encoded, encoded);
  }

  std::string folder_;
  CountingTokenizer tokenizer_;
};

TEST_F(TokenCacheTest, TheSecondTimeNothingIsEncoded) {
  ExpectIds("abcabc", 1);
  ASSERT_EQ(Files().size(), 1u);
  EXPECT_EQ(Files()[0].extension(), ".tokens");
  EXPECT_NE(std::filesystem::status(Files()[0]).permissions() & std::filesystem::perms::others_read,
            std::filesystem::perms::none);
  ExpectIds("abcabc", 0);
  ExpectIds("abcab", 1);
  EXPECT_EQ(Files().size(), 2u);
}

TEST_F(TokenCacheTest, ADamagedFileIsWrittenAnew) {
  ExpectIds("abcabc", 1);
  const std::filesystem::path file = Files()[0];
  const auto bytes = std::filesystem::file_size(file);
  for (std::uintmax_t kept = 0; kept < bytes; ++kept) {
    std::filesystem::resize_file(file, kept);
    ExpectIds("abcabc", 1);
    ASSERT_EQ(std::filesystem::file_size(file), bytes);
  }
  for (std::uintmax_t at = 0; at < bytes; ++at) {
    std::fstream(file, std::ios::in | std::ios::out | std::ios::binary)
        .seekp(static_cast<std::streamoff>(at))
        .put('\x7F');
    ExpectIds("abcabc", 1);
    ExpectIds("abcabc", 0);
  }
}

TEST_F(TokenCacheTest, AnotherTokenBetweenDocumentsMakesAnotherFile) {
  using Ids = std::vector<int32_t>;
  ExpectIds("ab", 1);
  EXPECT_EQ(*CachedTokens(folder_, tokenizer_, "ab", {1}), (Ids{0, 1}));
  for (const int32_t end : {3, 4}) {
    tokenizer_.end = end;
    EXPECT_EQ(*CachedTokens(folder_, tokenizer_, "ab", {1}), (Ids{0, end, 1}));
  }
  ExpectIds("ab", 0);
}

TEST_F(TokenCacheTest, AFolderThatIsNotThereChangesNothing) {
  folder_ += "/none";
  ExpectIds("abc", 1);
  ExpectIds("abc", 1);
  EXPECT_FALSE(std::filesystem::exists(folder_));
}

TEST_F(TokenCacheTest, WhatTheTokenizerRefusesIsRefused) {
  EXPECT_EQ(CachedTokens(folder_, tokenizer_, "xyz").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Files().empty());
}

}  // namespace
}  // namespace thinwire
