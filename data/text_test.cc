#include "data/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <utility>

#include "data/sampler.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int32_t> Counting(int32_t count) {
  std::vector<int32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

std::vector<int32_t> Tokens(const Dataset& data, int64_t sample, int64_t place = -1) {
  std::vector<int32_t> ids(data.sample_shape()[1]);
  Dataset::Augmentation augmentation;
  augmentation.place = place;
  data.LoadTokens(sample, augmentation, absl::MakeSpan(ids));
  return ids;
}

std::vector<int32_t> Labels(const Dataset& data, int64_t sample, int64_t place = -1) {
  std::vector<int32_t> ids(data.labels_per_sample());
  Dataset::Augmentation augmentation;
  augmentation.place = place;
  data.Labels(sample, augmentation, absl::MakeSpan(ids));
  return ids;
}

TEST(TextDatasetTest, IsTheTextInBlocksWithTheNextTokensForLabels) {
  const TextDataset data(Counting(11), /*vocabulary=*/20, /*context=*/4, /*windows=*/0,
                         /*limit=*/0);
  ASSERT_EQ(data.size(), 2);  // a third block would lack a label
  EXPECT_THAT(Tokens(data, 0), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Labels(data, 0), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Tokens(data, 1), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(Labels(data, 1), ElementsAre(5, 6, 7, 8));
  EXPECT_EQ(data.classes(), 20);
  EXPECT_EQ(data.labels_per_sample(), 4);
  EXPECT_EQ(data.sample_shape(), (Shape{1, 4}));
  EXPECT_TRUE(data.is_text());
  EXPECT_EQ(data.places(), 0);
}

TEST(TextDatasetTest, TheLastBlockMayEndWithTheText) {
  EXPECT_EQ(TextDataset(Counting(9), 20, 4, 0, 0).size(), 2);
  EXPECT_EQ(TextDataset(Counting(8), 20, 4, 0, 0).size(), 1);
}

TEST(TextDatasetTest, AWindowMayBeginWhereverItsLabelsAreThere) {
  const TextDataset data(Counting(11), 20, 4, /*windows=*/100, 0);
  EXPECT_EQ(data.size(), 100);
  ASSERT_EQ(data.places(), 7);
  EXPECT_THAT(Tokens(data, 99, /*place=*/0), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Tokens(data, 3, /*place=*/6), ElementsAre(6, 7, 8, 9));
  EXPECT_THAT(Labels(data, 3, /*place=*/6), ElementsAre(7, 8, 9, 10));
  EXPECT_THAT(Tokens(data, 3), ElementsAre(4, 5, 6, 7)) << "block 3 mod 2";
}

TEST(TextDatasetTest, WindowsReachEveryPlaceAndAreAFunctionOfSeedEpochAndSample) {
  const TextDataset data(Counting(11), 20, 4, /*windows=*/1000, 0);
  const auto places = [&data](AugmentKind kind, uint64_t seed, int64_t epoch) {
    std::vector<int64_t> all;
    for (int64_t i = 0; i < data.size(); ++i) {
      all.push_back(AugmentationOf(data, kind, seed, epoch, i).place);
    }
    return all;
  };
  const std::vector<int64_t> first = places(AugmentKind::kPerEpoch, 1, 1);
  const std::set<int64_t> seen(first.begin(), first.end());
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_EQ(places(AugmentKind::kPerEpoch, 1, 1), first);
  EXPECT_NE(places(AugmentKind::kPerEpoch, 1, 2), first);
  EXPECT_NE(places(AugmentKind::kPerEpoch, 2, 1), first);
  EXPECT_EQ(places(AugmentKind::kFixed, 1, 1), places(AugmentKind::kFixed, 1, 2));
  EXPECT_EQ(
      AugmentationOf(TextDataset(Counting(11), 20, 4, 0, 0), AugmentKind::kPerEpoch, 1, 1, 0).place,
      -1);
}

TEST(TextDatasetTest, DigestNamesTokensContextWindowsAndLimit) {
  std::set<uint64_t> digests;
  const auto add = [&digests](const TextDataset& data) { digests.insert(data.digest()); };
  add(TextDataset(Counting(11), 20, 4, 0, 0));
  add(TextDataset(Counting(12), 20, 4, 0, 0));
  add(TextDataset(Counting(11), 21, 4, 0, 0));
  add(TextDataset(Counting(11), 20, 5, 0, 0));
  add(TextDataset(Counting(11), 20, 4, 2, 0));
  add(TextDataset(Counting(11), 20, 4, 0, 1));
  EXPECT_EQ(digests.size(), 6u);
  add(TextDataset(Counting(11), 20, 4, 0, 0));
  EXPECT_EQ(digests.size(), 6u);
}

class TextFileTest : public testing::Test {
 protected:
  TextFileTest() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = testing::TempDir() + "/text_" + test->name();
    std::filesystem::create_directories(folder_);
    options_.name = "text";
    options_.verify = false;
    options_.text.tokens = TokenKind::kCharacters;
    options_.text.file = folder_ + "/corpus.txt";
    options_.text.vocabulary = "data/bpe_testdata";
    options_.text.context = 4;
  }
  ~TextFileTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& text) {
    std::ofstream(options_.text.file, std::ios::binary) << text;
  }
  std::string Refusal(absl::StatusCode code) {
    const absl::Status status = LoadData(options_).status();
    EXPECT_EQ(status.code(), code) << status;
    return std::string(status.message());
  }
  int64_t Files() const {
    return std::distance(std::filesystem::directory_iterator(folder_),
                         std::filesystem::directory_iterator());
  }

  std::string folder_;
  DataOptions options_;
};

TEST_F(TextFileTest, IsDividedByCharacters) {
  Write("äbcdäbcdäbcdäbcdäbcd");
  options_.text.split = 0.75;
  const CorpusText text = *ReadTextFile(options_);
  EXPECT_EQ(text.train, "äbcdäbcdäbcdäbc");
  EXPECT_EQ(text.test, "däbcd");
  const auto splits = LoadData(options_);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train->size(), 3);
  EXPECT_THAT(Tokens(*splits->train, 0), ElementsAre(3, 0, 1, 2));
  EXPECT_THAT(Labels(*splits->test, 0), ElementsAre(3, 0, 1, 2));
  EXPECT_EQ(splits->train->classes(), 4);
  EXPECT_EQ(Files(), 1) << "characters are not worth a file";
}

TEST_F(TextFileTest, TheTestTextIsInBlocksWhateverWindowsSay) {
  Write(std::string(200, 'a'));
  options_.text.windows = 1000;
  const auto splits = LoadData(options_);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train->size(), 1000);
  EXPECT_EQ(splits->test->size(), 4);
  EXPECT_EQ(splits->test->places(), 0);
}

TEST_F(TextFileTest, BytePairsAreKeptBesideTheFileAndTheNextTimeAreTheSame) {
  std::string bytes = "the theatre \xFF";
  for (int i = 0; i < 6; ++i) bytes += bytes;
  Write(bytes);
  options_.text.tokens = TokenKind::kBpe;
  const auto first = LoadData(options_), second = LoadData(options_);
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  EXPECT_EQ(Files(), 3);
  EXPECT_EQ(first->train->digest(), second->train->digest());
  EXPECT_EQ(first->train->classes(), 957);
  const auto tokenizer = LoadTokenizer(options_);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->vocabulary(), 957);
  EXPECT_EQ(*(*tokenizer)->Decode(Tokens(*first->train, 0)),
            bytes.substr(0, (*tokenizer)->Decode(Tokens(*first->train, 0))->size()));
}

TEST_F(TextFileTest, ItsSizeIsMeasuredAndHeldAgainstWhatWasPlanned) {
  Write("abcdabcdabcdabcdabcd");
  options_.text.split = 0.75;
  EXPECT_EQ(DescribeData(options_).status().code(), absl::StatusCode::kFailedPrecondition);
  options_.text.size = *MeasureCorpus(options_);
  EXPECT_EQ(options_.text.size, (CorpusSize{4, 15, 5}));
  const DatasetInfo info = *DescribeData(options_);
  const DataSplits splits = *LoadData(options_);
  EXPECT_EQ(info.sample, splits.train->sample_shape());
  EXPECT_EQ(info.classes, splits.train->classes());
  EXPECT_EQ(info.train_samples, splits.train->size());
  EXPECT_EQ(info.test_samples, splits.test->size());
  EXPECT_TRUE(info.is_text);
  Write("abcdabcdabcdabcdabcdabcd");
  EXPECT_THAT(Refusal(absl::StatusCode::kInvalidArgument),
              AllOf(HasSubstr("corpus.txt has 18 and 6 tokens of a vocabulary of 4"),
                    HasSubstr("want 15 and 5 tokens of a vocabulary of 4")));
}

TEST_F(TextFileTest, OneThatIsMissingIsNamed) {
  EXPECT_THAT(Refusal(absl::StatusCode::kNotFound),
              HasSubstr("cannot read data.file " + options_.text.file));
}

TEST_F(TextFileTest, AnEmptyOneIsRefused) {
  Write("");
  EXPECT_THAT(Refusal(absl::StatusCode::kInvalidArgument), HasSubstr("corpus.txt has 0 bytes"));
}

TEST_F(TextFileTest, OneShorterThanASampleAndItsLastLabelIsRefused) {
  Write("abcd");
  options_.text.split = 0.999;
  EXPECT_THAT(Refusal(absl::StatusCode::kInvalidArgument),
              HasSubstr("corpus.txt has 3 tokens, want at least 5, one more than data.context"));
  Write("abcdefghij");
  options_.text.split = 0.5;
  EXPECT_EQ((*LoadData(options_)).train->size(), 1);
  options_.text.split = 0.6;
  EXPECT_THAT(Refusal(absl::StatusCode::kInvalidArgument),
              AllOf(HasSubstr("the test text of "), HasSubstr("has 4 tokens")));
}

TEST_F(TextFileTest, CharactersWantUtf8) {
  Write("abc\xFF");
  EXPECT_THAT(Refusal(absl::StatusCode::kInvalidArgument),
              AllOf(HasSubstr("corpus.txt: byte 3"), HasSubstr("bpe takes any bytes")));
}

TEST_F(TextFileTest, ItsLastTrainingTokensMayBeHeldOut) {
  Write("abcdefghijklmnopqrstuvwxyz0123456789");
  options_.text.split = 0.75;  // 27 characters: up to '0'
  options_.held_out = 2;
  const DataSplits splits = *LoadData(options_);
  ASSERT_EQ(splits.test->size(), 2);
  const auto tokenizer = *LoadTokenizer(options_);
  EXPECT_EQ(*tokenizer->Decode(Tokens(*splits.test, 0)), "stuv");
  EXPECT_EQ(*tokenizer->Decode(Labels(*splits.test, 1)), "xyz0");
  EXPECT_EQ(splits.train->size(), 4) << "a to r, the last of which has no label";
  options_.text.windows = 50;
  EXPECT_EQ((*LoadData(options_)).train->places(), 14) << "no window reaches what is held out";
  options_.text.windows = 0;
  options_.held_out = 6;
  EXPECT_THAT(Refusal(absl::StatusCode::kInvalidArgument),
              AllOf(HasSubstr("without the 6 samples held out, has 2 tokens, want at least 5")));
}

TEST_F(TextFileTest, WhatStandsBetweenDocumentsIsOneTokenUnlessItIsToBeCharacters) {
  std::string documents;
  for (int i = 0; i < 40; ++i) documents += "the theatre<|endoftext|>";
  Write(documents);
  options_.text.tokens = TokenKind::kBpe;
  options_.text.context = 16;
  const auto tokenizer = *LoadTokenizer(options_);
  const CorpusSize tokens = *MeasureCorpus(options_);
  EXPECT_THAT(Tokens(*LoadData(options_)->train, 0), Contains(*tokenizer->end_of_text()));
  options_.text.end_of_text = EndOfText::kCharacters;
  const CorpusSize characters = *MeasureCorpus(options_);
  EXPECT_GT(characters.train_tokens, 2 * tokens.train_tokens);
  EXPECT_EQ((*LoadTokenizer(options_))->end_of_text(), std::nullopt);
  EXPECT_EQ(Files(), 5) << "either kind of ids has its files";
}

TEST_F(TextFileTest, AByteOrderMarkIsNoCharacter) {
  Write(
      "\xEF\xBB\xBF"
      "abcdabcdabcdabcdabcd");
  options_.text.split = 0.75;
  EXPECT_EQ(*MeasureCorpus(options_), (CorpusSize{4, 15, 5}));
  EXPECT_THAT(Tokens(*LoadData(options_)->train, 0), ElementsAre(0, 1, 2, 3));
  Write(
      "abcd\xEF\xBB\xBF"
      "abcdabcdabcdabcdabcd");
  EXPECT_EQ(MeasureCorpus(options_)->vocabulary, 5) << "it is one elsewhere";
}

TEST_F(TextFileTest, ATextThatWasCountedWithItsMarkKeepsIt) {
  Write(
      "\xEF\xBB\xBF"
      "abcdabcdabcdabcdabcd");
  options_.text.split = 0.75;
  options_.text.size = {5, 15, 6};
  const auto splits = LoadData(options_);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_THAT(Tokens(*splits->train, 0), ElementsAre(4, 0, 1, 2));
  EXPECT_EQ(*(*LoadTokenizer(options_))->Decode({4}), "\xEF\xBB\xBF");
  options_.text.size = {5, 15, 7};
  EXPECT_THAT(Refusal(absl::StatusCode::kInvalidArgument),
              HasSubstr("has 15 and 5 tokens of a vocabulary of 4"));
}

TEST_F(TextFileTest, WhatOnlyStandsInItsPlaceIsNamed) {
  Write("version https://git-lfs.github.com/spec/v1\noid sha256:24\nsize 1115394\n");
  EXPECT_THAT(Refusal(absl::StatusCode::kDataLoss),
              HasSubstr("corpus.txt: is a pointer of Git LFS to 1115394 bytes"));
  Write("<!DOCTYPE html><html><body>Sign in</body></html>");
  EXPECT_THAT(Refusal(absl::StatusCode::kDataLoss), HasSubstr("corpus.txt: is an HTML page"));
  Write("\x1F\x8B\x08 packed");
  EXPECT_THAT(Refusal(absl::StatusCode::kDataLoss), HasSubstr("corpus.txt: gzip: "));
  Write("BZh91AY&SY");
  EXPECT_THAT(Refusal(absl::StatusCode::kDataLoss), HasSubstr("corpus.txt: is packed (bzip2)"));
  Write("<html>a page</html><html>another page</html>");
  EXPECT_TRUE(LoadData(options_).ok()) << "a corpus of pages";
}

TEST_F(TextFileTest, TheFilesOfAFolderAreDocuments) {
  std::filesystem::create_directories(folder_ + "/texts/below");
  const auto write = [this](const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/texts/" + name, std::ios::binary) << text;
  };
  write("b.txt", "the theatre");
  write("a.txt", "\xEF\xBB\xBFthe art");
  write("empty.txt", "");
  write("below/c.txt", "the king");
  options_.text.file = folder_ + "/texts";
  options_.text.split = 0.7;
  const CorpusText text = *ReadTextFile(options_);
  EXPECT_EQ(text.train + "|" + text.test, "the artthe theatre|the king");
  EXPECT_THAT(text.train_begins, ElementsAre(7));
  EXPECT_TRUE(text.test_begins.empty());
  options_.text.tokens = TokenKind::kBpe;
  options_.text.context = 2;
  const auto tokenizer = *LoadTokenizer(options_);
  std::vector<int32_t> wanted = *tokenizer->Encode("the art");
  wanted.push_back(*tokenizer->end_of_text());
  const std::vector<int32_t> second = *tokenizer->Encode("the theatre");
  wanted.insert(wanted.end(), second.begin(), second.end());
  for (int run = 0; run < 2; ++run) {  // the second reads what the first has kept
    const auto splits = LoadData(options_);
    ASSERT_TRUE(splits.ok()) << splits.status();
    EXPECT_EQ(MeasureCorpus(options_)->train_tokens, static_cast<int64_t>(wanted.size()));
    EXPECT_THAT(Tokens(*splits->train, 1), ElementsAre(wanted[2], wanted[3]));
  }
  options_.text.file = folder_ + "/texts/[ab].txt";
  EXPECT_EQ(ReadTextFile(options_)->train + ReadTextFile(options_)->test, "the artthe theatre");
}

TEST_F(TextFileTest, APackedFileIsItsText) {
  Write(std::string("\x28\xB5\x2F\xFD\x20\x14\xA1\0\0", 9) + "abcdabcdabcdabcdabcd");
  EXPECT_EQ(ReadTextFile(options_)->train, "abcdabcdabcdabcdab");
}

TEST_F(TextFileTest, TrainingAndTestMayHaveFilesOfTheirOwn) {
  Write("abcdabcd");
  options_.text.train = std::exchange(options_.text.file, "");
  options_.text.test = folder_ + "/test.txt";
  std::ofstream(options_.text.test) << "dcbadcba";
  const auto splits = LoadData(options_);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_THAT(Tokens(*splits->train, 0), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Tokens(*splits->test, 0), ElementsAre(3, 2, 1, 0));
}

TEST_F(TextFileTest, ALimitBeyondTheTextIsRefused) {
  Write(std::string(200, 'a'));
  options_.limit = 45;
  EXPECT_THAT(Refusal(absl::StatusCode::kInvalidArgument),
              AllOf(HasSubstr("a limit of 45 samples"), HasSubstr("holds 44")));
  options_.limit = 44;
  EXPECT_EQ((*LoadData(options_)).train->size(), 44);
}

}  // namespace
}  // namespace thinwire
