#include "data/large_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/file.h"
#include "base/random.h"
#include "data/text.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

// Files of more than a piece, that are read as a whole and in pieces.
class LargeTextTest : public testing::Test {
 protected:
  LargeTextTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    options_.name = "text";
    options_.text.tokens = TokenKind::kBpe;
    options_.text.vocabulary = "data/bpe_testdata";
    options_.text.context = 64;
    options_.text.file = folder_ + "/*.txt";
    options_.verify = false;
  }
  ~LargeTextTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, uint64_t key, size_t bytes) const {
    constexpr const char* kWords[] = {"the ", "king", "\n", ".\n", "\u00e9", " 12", "\n\n", "\xFF"};
    RandomStream random(key);
    std::string text;
    while (text.size() < bytes) text += kWords[random.Next() % std::size(kWords)];
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
  }
  DataSplits LoadInPieces() const {
    auto splits = LoadTextFile(options_);
    EXPECT_TRUE(splits.ok()) << splits.status();
    return *std::move(splits);
  }
  DataSplits LoadAsAWhole() const {
    const auto text = ReadTextFile(options_);
    EXPECT_TRUE(text.ok()) << text.status();
    auto splits = LoadText(*text, options_);
    EXPECT_TRUE(splits.ok()) << splits.status();
    return *std::move(splits);
  }
  std::set<std::string> Caches() const {
    std::set<std::string> caches;
    for (const auto& file : std::filesystem::directory_iterator(folder_)) {
      if (file.path().extension() == ".tokens") caches.insert(file.path().string());
    }
    return caches;
  }
  void RemoveCaches() const {
    for (const std::string& cache : Caches()) std::filesystem::remove(cache);
  }

  void ExpectTheSameInPieces() const {
    const DataSplits pieces = LoadInPieces();
    RemoveCaches();
    const DataSplits whole = LoadAsAWhole();
    EXPECT_EQ(pieces.train->digest(), whole.train->digest());
    EXPECT_EQ(pieces.test->digest(), whole.test->digest());
  }

  const std::string folder_ = testing::TempDir() + "/large_text";
  DataOptions options_;
};

TEST_F(LargeTextTest, TokensAndTheirFilesAreThoseOfTheTextAsAWhole) {
  Write("a.txt", 1, 18'000'000);
  Write("b.txt", 2, 1'500'000);
  std::ofstream(folder_ + "/bb.txt");
  Write("c.txt", 3, 200'000);
  options_.text.split = 0.95;
  const DataSplits whole = LoadAsAWhole();
  const std::set<std::string> caches = Caches();
  EXPECT_EQ(caches.size(), 2u);
  for (const char* const when : {"kept", "encoded"}) {
    const DataSplits pieces = LoadInPieces();
    EXPECT_EQ(pieces.train->digest(), whole.train->digest()) << when;
    EXPECT_EQ(pieces.test->digest(), whole.test->digest()) << when;
    EXPECT_EQ(pieces.train->size(), whole.train->size()) << when;
    EXPECT_EQ(Caches(), caches) << when;
    RemoveCaches();
  }
  options_.text.size = *MeasureTextFile(options_);
  EXPECT_EQ(LoadInPieces().train->size(), DescribeData(options_)->train_samples);
}

TEST_F(LargeTextTest, FilesOfTheirOwnAreReadInPiecesToo) {
  Write("a.txt", 1, 17'000'000);
  Write("b.val", 2, 300'000);
  options_.text.file = "";
  options_.text.train = folder_ + "/a.txt";
  options_.text.test = folder_ + "/b.val";
  ExpectTheSameInPieces();
}

TEST_F(LargeTextTest, HiddenWordPiecesAreThoseOfTheTextAsAWhole) {
  Write("a.txt", 1, 17'000'000);
  options_.text.tokens = TokenKind::kWordPiece;
  options_.text.vocabulary = "data/word_piece_testdata";
  options_.text.objective = Objective::kMasked;
  options_.text.mask_rate = 0.15;
  options_.text.split = 0.9;
  ExpectTheSameInPieces();
}

TEST_F(LargeTextTest, TokensWithoutWordsAreThoseOfTheTextAsAWhole) {
  Write("a.txt", 1, 17'000'000);
  Write("b.txt", 2, 100'000);
  options_.text.tokens = TokenKind::kHf;
  options_.text.vocabulary = "data/hf_testdata/characters";
  options_.text.split = 0.95;
  ExpectTheSameInPieces();
}

TEST_F(LargeTextTest, CharactersAreThoseOfTheTextAsAWhole) {
  Write("a.txt", 1, 17'000'000);
  Write("b.txt", 2, 100'000);
  for (const std::string name : {"/a.txt", "/b.txt"}) {
    std::string text = *ReadFile(folder_ + name);
    std::replace(text.begin(), text.end(), '\xFF', 'z');
    std::ofstream(folder_ + name, std::ios::binary) << text;
  }
  options_.text.tokens = TokenKind::kCharacters;
  options_.text.split = 0.95;
  ExpectTheSameInPieces();
  options_.text.size = *MeasureTextFile(options_);
  EXPECT_EQ((*LoadTokenizer(options_))->vocabulary(), options_.text.size.vocabulary);
  options_.text.size.train_tokens += 1;
  EXPECT_THAT(std::string(LoadTokenizer(options_).status().message()),
              HasSubstr("with which the experiment was resolved"));
  Write("c.txt", 3, 100'000);
  EXPECT_THAT(std::string(LoadTextFile(options_).status().message()), HasSubstr("/*.txt: byte "));
}

TEST_F(LargeTextTest, SeveralHtmlPagesAreATextAndOneIsNone) {
  Write("a.txt", 1, 17'000'000);
  Write("c.txt", 2, 3'000'000);
  const std::string page = "<!doctype html>\n" + *ReadFile(folder_ + "/c.txt") + "</html>\n";
  std::ofstream(folder_ + "/c.txt", std::ios::binary) << page << page;
  options_.text.split = 0.9;
  ExpectTheSameInPieces();
  std::ofstream(folder_ + "/c.txt", std::ios::binary) << page;
  EXPECT_THAT(std::string(LoadTextFile(options_).status().message()),
              HasSubstr("/c.txt: is an HTML page"));
}

TEST_F(LargeTextTest, ATextThatChangesWhileItIsReadIsRefused) {
  Write("a.txt", 1, 17'000'000);
  options_.text.file = "";
  options_.text.train = folder_ + "/a.txt";
  options_.text.test = "/proc/self/stat";  // counts the time that encoding a.txt takes
  const absl::Status status = LoadTextFile(options_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), "/proc/self/stat changed while it was read");
}

TEST_F(LargeTextTest, WhatDoesNotFitIsRefused) {
  Write("a.txt", 1, 17'000'000);
  options_.text.size = {options_.text.size.vocabulary + 1, 3, 3, 0, 0};
  EXPECT_THAT(std::string(LoadTextFile(options_).status().message()),
              HasSubstr("with which the experiment was resolved (data.corpus)"));
}

}  // namespace
}  // namespace thinwire
