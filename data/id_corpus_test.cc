#include "data/id_corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>

#include "data/text.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class IdCorpusTest : public testing::Test {
 protected:
  IdCorpusTest() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = testing::TempDir() + "/id_corpus_" + test->name();
    std::filesystem::create_directories(folder_);
    options_.name = "tokens";
    options_.text.tokens = TokenKind::kIds;
    options_.text.type = IdType::kUint16;
    options_.text.loss_on = LossOn::kMasks;
    options_.text.context = 4;
    options_.text.file = folder_ + "/ids.bin";
  }
  ~IdCorpusTest() override { std::filesystem::remove_all(folder_); }

  // Writes the ids first, first + 1, ... and returns the path.
  std::string Write(const std::string& name, uint16_t first, size_t count) const {
    std::vector<uint16_t> ids(count);
    std::iota(ids.begin(), ids.end(), first);
    std::ofstream file(folder_ + "/" + name, std::ios::binary);
    file.write(reinterpret_cast<const char*>(ids.data()), static_cast<std::streamsize>(2 * count));
    return folder_ + "/" + name;
  }

  std::string folder_;
  DataOptions options_;
};

std::vector<int32_t> IdsOf(const Dataset& data, int64_t sample) {
  std::vector<int32_t> ids(static_cast<size_t>(data.labels_per_sample()));
  data.LoadTokens(sample, {}, absl::MakeSpan(ids));
  return ids;
}

std::vector<int32_t> LabelsOf(const Dataset& data, int64_t sample) {
  std::vector<int32_t> labels(static_cast<size_t>(data.labels_per_sample()));
  data.Labels(sample, {}, absl::MakeSpan(labels));
  return labels;
}

TEST_F(IdCorpusTest, OneFileIsDividedAndTheVocabularyIsTheGreatestIdAndOne) {
  Write("ids.bin", 0, 20);
  options_.text.split = 0.5;
  EXPECT_EQ(*MeasureCorpus(options_), (CorpusSize{20, 10, 10, 0, 0}));
  options_.text.size = *MeasureCorpus(options_);
  const absl::StatusOr<DataSplits> splits = LoadData(options_);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train->size(), DescribeData(options_)->train_samples);
  EXPECT_THAT(IdsOf(*splits->train, 1), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(LabelsOf(*splits->train, 1), ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(IdsOf(*splits->test, 0), ElementsAre(10, 11, 12, 13));
  EXPECT_EQ(splits->train->classes(), 20);
}

TEST_F(IdCorpusTest, FilesOfTheirOwnForTrainingAndTestFollowEachOther) {
  Write("a_train.bin", 0, 3);
  Write("b_train.bin", 3, 7);
  Write("val.bin", 30, 6);
  options_.text.file = "";
  options_.text.train = folder_ + "/*_train.bin";
  options_.text.test = folder_ + "/val.bin";
  EXPECT_EQ(*MeasureCorpus(options_), (CorpusSize{36, 10, 6, 0, 0}));
  const absl::StatusOr<DataSplits> splits = LoadData(options_);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_THAT(IdsOf(*splits->train, 0), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(IdsOf(*splits->test, 0), ElementsAre(30, 31, 32, 33));
}

TEST_F(IdCorpusTest, TheSamplesAreThoseOfTheSameIdsInMemory) {
  Write("ids.bin", 0, 200);
  options_.text.split = 0.9;
  options_.held_out = 3;
  options_.text.windows = 50;
  const absl::StatusOr<DataSplits> splits = LoadData(options_);
  ASSERT_TRUE(splits.ok()) << splits.status();
  std::vector<int32_t> ids(180 - (3 * 4 + 1));
  std::iota(ids.begin(), ids.end(), 0);
  const TextDataset kept(std::move(ids), 200, 4, 50, 0);
  EXPECT_EQ(splits->train->digest(), kept.digest());
  EXPECT_EQ(splits->train->places(), kept.places());
  EXPECT_EQ(splits->test->size(), 3);
  EXPECT_THAT(IdsOf(*splits->test, 0), ElementsAre(167, 168, 169, 170));
}

TEST_F(IdCorpusTest, AMaskSaysWhatIsLearned) {
  Write("ids.bin", 0, 20);
  std::ofstream(folder_ + "/ids.mask", std::ios::binary) << "\xF4\xFF\x0F";  // not 0, 1 and 3
  options_.text.split = 0.5;
  const absl::StatusOr<DataSplits> splits = LoadData(options_);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_TRUE(splits->train->may_lack_labels());
  EXPECT_THAT(IdsOf(*splits->train, 0), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(LabelsOf(*splits->train, 0), ElementsAre(-1, 2, -1, 4));
  EXPECT_THAT(LabelsOf(*splits->test, 0), ElementsAre(11, 12, 13, 14));
  options_.text.loss_on = LossOn::kAnswers;
  EXPECT_EQ(LoadData(options_)->train->digest(), splits->train->digest());
  options_.text.loss_on = LossOn::kAll;
  const absl::StatusOr<DataSplits> all = LoadData(options_);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(LabelsOf(*all->train, 0), ElementsAre(1, 2, 3, 4));
  EXPECT_FALSE(all->train->may_lack_labels());
  EXPECT_NE(all->train->digest(), splits->train->digest());
}

TEST_F(IdCorpusTest, AnswersThatAreAskedForWantAMask) {
  Write("ids.bin", 0, 20);
  options_.text.split = 0.5;
  EXPECT_FALSE(LoadData(options_)->train->may_lack_labels());
  options_.text.loss_on = LossOn::kAnswers;
  const std::string wanted = options_.text.file + " has no " + folder_ +
                             "/ids.mask beside it: want one with data.loss_on: answers, or "
                             "data.loss_on: all";
  EXPECT_EQ(LoadData(options_).status().message(), wanted);
  EXPECT_EQ(MeasureCorpus(options_).status().message(), wanted);
  options_.text.loss_on = LossOn::kAll;
  EXPECT_TRUE(LoadData(options_).ok());
}

TEST_F(IdCorpusTest, AMaskOfAFolderIsNoFileOfIds) {
  Write("a.bin", 0, 10);
  Write("b.bin", 10, 10);
  std::ofstream(folder_ + "/a.mask", std::ios::binary) << "\xFF\x03";
  std::ofstream(folder_ + "/b.mask", std::ios::binary) << std::string("\0\0", 2);
  options_.text.file = folder_;
  EXPECT_EQ(*MeasureCorpus(options_), (CorpusSize{20, 18, 2, 0, 0}));
  options_.text.split = 0.5;
  EXPECT_EQ(LoadData(options_).status().message(),
            "the test text of " + folder_ +
                " has no token to learn, by its mask: want one, or data.loss_on: all");
}

TEST_F(IdCorpusTest, AnIdThatTheTokenizerLacksIsRefusedBeforeTraining) {
  const std::string path = Write("ids.bin", 200, 100);
  options_.text.tokens = TokenKind::kBytes;
  EXPECT_EQ(MeasureCorpus(options_)->vocabulary, 256);
  EXPECT_EQ(LoadData(options_).status().message(),
            path + ": number 56 is 256, want 0 to 255, a token id");
}

TEST_F(IdCorpusTest, IdsThatAreOthersThanThosePlannedAreRefused) {
  Write("ids.bin", 0, 20);
  options_.text.size = {20, 18, 3, 0, 0};
  EXPECT_THAT(std::string(LoadData(options_).status().message()),
              HasSubstr("ids.bin has 18 and 2 tokens of a vocabulary of 20 for training and test, "
                        "want 18 and 3 tokens"));
  options_.text.size = {19, 18, 2, 0, 0};
  options_.text.context = 1;
  EXPECT_THAT(std::string(LoadData(options_).status().message()),
              HasSubstr("number 19 is 19, want 0 to 18"));
}

TEST_F(IdCorpusTest, AFileThatChangesUnderARunIsSeenInTheStatus) {
  Write("ids.bin", 0, 100);
  const absl::StatusOr<DataSplits> splits = LoadData(options_);
  ASSERT_TRUE(splits.ok()) << splits.status();
  Write("ids.bin", 0, 99);
  EXPECT_TRUE(splits->train->status().ok());
  IdsOf(*splits->train, 0);
  EXPECT_EQ(splits->train->status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(IdCorpusTest, IdsAloneHaveNoTokenizer) {
  EXPECT_THAT(std::string(LoadTokenizer(options_).status().message()),
              HasSubstr("data tokens is ids of a tokenizer that is not known"));
}

}  // namespace
}  // namespace thinwire
