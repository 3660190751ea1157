#include "data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LoadDataTest, FindsDataByItsName) {
  DataOptions options;
  options.name = "digits";
  const absl::StatusOr<DataSplits> splits = LoadData(options);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train->size(), 3823);
  EXPECT_EQ(splits->test->size(), 1797);
}

TEST(AllDatasetsTest, NamesThemInTheOrderOfTheAlphabet) {
  std::vector<std::string> names;
  for (const KnownDataset& known : AllDatasets()) names.push_back(known.name);
  EXPECT_THAT(names, ElementsAre("cifar10", "cifar100", "digits", "fashion_mnist", "glue", "images",
                                 "jsonl", "mnist", "shakespeare", "text", "tokens", "wikitext2"));
}

TEST(DescribeDataTest, SaysOfDigitsWhatTheLoaderSays) {
  DataOptions options;
  options.name = "digits";
  const DatasetInfo digits = *DescribeData(options);
  const absl::StatusOr<DataSplits> splits = LoadData(options);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(digits.sample, splits->train->sample_shape());
  EXPECT_EQ(digits.classes, splits->train->classes());
  EXPECT_EQ(digits.train_samples, splits->train->size());
  EXPECT_EQ(digits.test_samples, splits->test->size());
  EXPECT_FALSE(digits.is_text);
  EXPECT_FALSE(AllDatasets()[2].has_folder);
}

TEST(DescribeDataTest, SaysOfShakespeareWhatTheLoaderSays) {
  DataOptions options;
  options.name = "shakespeare";
  options.text.tokens = TokenKind::kCharacters;
  options.text.context = 64;
  for (const int64_t windows : {0, 100}) {
    options.text.windows = windows;
    options.held_out = windows / 4;
    const absl::StatusOr<DatasetInfo> shakespeare = DescribeData(options);
    const absl::StatusOr<DataSplits> splits = LoadData(options);
    ASSERT_TRUE(shakespeare.ok() && splits.ok()) << shakespeare.status() << splits.status();
    EXPECT_EQ(shakespeare->sample, splits->train->sample_shape());
    EXPECT_EQ(shakespeare->classes, splits->train->classes());
    EXPECT_EQ(shakespeare->train_samples, splits->train->size());
    EXPECT_EQ(shakespeare->test_samples, splits->test->size());
    EXPECT_TRUE(shakespeare->is_text);
  }
}

TEST(DescribeDataTest, SaysOfHiddenTokensWhatTheLoaderSays) {
  DataOptions options;
  options.name = "shakespeare";
  options.text.tokens = TokenKind::kWordPiece;
  options.text.vocabulary = "data/word_piece_testdata";
  options.text.objective = Objective::kMasked;
  options.text.context = 64;
  EXPECT_EQ(DescribeData(options).status().code(), absl::StatusCode::kFailedPrecondition);
  options.text.size = *MeasureCorpus(options);
  for (const int64_t windows : {0, 100}) {
    options.text.windows = windows;
    options.held_out = windows / 4;
    const absl::StatusOr<DatasetInfo> info = DescribeData(options);
    const absl::StatusOr<DataSplits> splits = LoadData(options);
    ASSERT_TRUE(info.ok() && splits.ok()) << info.status() << splits.status();
    EXPECT_EQ(info->sample, splits->train->sample_shape());
    EXPECT_EQ(info->classes, splits->train->classes());
    EXPECT_EQ(info->vocabulary, info->classes);
    EXPECT_EQ(info->train_samples, splits->train->size());
    EXPECT_EQ(info->test_samples, splits->test->size());
    EXPECT_EQ(info->labels, splits->train->labels_per_sample());
    EXPECT_TRUE(splits->train->hides_tokens());
  }
}

TEST(DescribeDataTest, AnObjectiveThatDoesNotFitIsRefused) {
  DataOptions options;
  options.name = "shakespeare";
  options.text.tokens = TokenKind::kBytes;
  options.text.objective = Objective::kMasked;
  EXPECT_THAT(std::string(DescribeData(options).status().message()),
              HasSubstr("objective is masked with tokens bytes, want word_piece"));
  EXPECT_THAT(std::string(LoadData(options).status().message()), HasSubstr("want word_piece"));
  options.text.tokens = TokenKind::kWordPiece;
  options.text.size = {200, 1000, 1000};
  options.text.context = 2;
  EXPECT_THAT(std::string(DescribeData(options).status().message()),
              HasSubstr("context is 2, want at least 3 with objective masked"));
  options.text.context = 1002;
  EXPECT_THAT(std::string(DescribeData(options).status().message()),
              HasSubstr("has 1000 tokens, want at least 1001, one more than data.context without "
                        "its special tokens"));
  options.text.mask_rate = 1;
  EXPECT_THAT(std::string(DescribeData(options).status().message()),
              HasSubstr("mask_rate is 1, want more than 0 and less than 1"));
}

TEST(DescribeDataTest, KnowsOfficialTextsWithoutLoadingThem) {
  DataOptions options;
  options.name = "wikitext2";
  options.dir = "no/such";
  options.text.context = 1024;
  const DatasetInfo wikitext2 = *DescribeData(options);
  EXPECT_EQ(wikitext2.classes, 50257);
  EXPECT_EQ(wikitext2.sample, (Shape{1, 1024}));
  EXPECT_EQ(wikitext2.train_samples, 2448382 / 1024);
  EXPECT_EQ(wikitext2.test_samples, 258659 / 1024);
  options.verify = false;
  EXPECT_EQ(DescribeData(options).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(DescribeDataTest, AContextThatLeavesNoSampleIsRefused) {
  DataOptions options;
  options.name = "shakespeare";
  options.text.tokens = TokenKind::kCharacters;
  options.text.context = 111540;
  EXPECT_THAT(std::string(DescribeData(options).status().message()),
              HasSubstr("the test text of shakespeare has 111540 tokens, want at least 111541"));
}

TEST(DescribeDataTest, Cifar10IsTenClassesOfColourImages) {
  DataOptions options;
  options.name = "cifar10";
  const DatasetInfo cifar10 = *DescribeData(options);
  EXPECT_EQ(cifar10.name, "cifar10");
  EXPECT_EQ(cifar10.sample, (Shape{1, 32, 32, 3}));
  EXPECT_EQ(cifar10.classes, 10);
  EXPECT_EQ(cifar10.train_samples, 50000);
  EXPECT_EQ(cifar10.test_samples, 10000);
  EXPECT_TRUE(AllDatasets()[0].has_folder);
}

TEST(LoadDataTest, UnknownNameIsRefusedWithTheNamesThereAre) {
  DataOptions options;
  options.name = "digit";
  const absl::Status status = LoadData(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      status.message(),
      "data: unknown \"digit\", nearest is \"digits\" (want one of cifar10, cifar100, digits, "
      "fashion_mnist, glue, images, jsonl, mnist, shakespeare, text, tokens, wikitext2)");
}

TEST(LoadTokenizerTest, ImagesHaveNone) {
  DataOptions options;
  options.name = "digits";
  options.text.tokens = TokenKind::kCharacters;
  EXPECT_EQ(LoadTokenizer(options).status().message(), "data digits is no text");
}

TEST(LoadTokenizerTest, ThatOfShakespeareIsItsCharacters) {
  DataOptions options;
  options.name = "shakespeare";
  options.text.tokens = TokenKind::kCharacters;
  const auto tokenizer = LoadTokenizer(options);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->vocabulary(), 65);
  EXPECT_EQ(*(*tokenizer)->Decode(*(*tokenizer)->Encode("To be")), "To be");
}

TEST(LoadDataTest, NegativeLimitIsRefused) {
  DataOptions options;
  options.name = "digits";
  options.limit = -1;
  const absl::Status status = LoadData(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("limit is -1"));
}

}  // namespace
}  // namespace thinwire
