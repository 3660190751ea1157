#include "data/glue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A folder with the files of one task.
class GlueTest : public ::testing::Test {
 protected:
  GlueTest() : dir_(::testing::TempDir() + "/glue") {
    std::filesystem::remove_all(dir_);
    options_.name = "glue";
    options_.dir = dir_;
    options_.verify = false;
    options_.text.vocabulary = "data/word_piece_testdata";
    options_.text.context = 8;
  }

  void Write(GlueTask task, const std::string& folder, const std::string& train,
             const std::string& dev) {
    options_.text.task = task;
    std::filesystem::create_directories(dir_ + "/" + folder);
    std::ofstream(dir_ + "/" + folder + "/train.tsv", std::ios::binary) << train;
    std::ofstream(dir_ + "/" + folder + "/dev.tsv", std::ios::binary) << dev;
  }

  // Returns ids and labels of all samples of a part.
  std::vector<std::vector<int32_t>> Samples(const Dataset& data) {
    std::vector<std::vector<int32_t>> all;
    for (int64_t i = 0; i < data.size(); ++i) {
      std::vector<int32_t> ids(static_cast<size_t>(options_.text.context) + 1);
      data.LoadTokens(i, {}, absl::MakeSpan(ids).first(ids.size() - 1));
      data.Labels(i, {}, absl::MakeSpan(ids).last(1));
      all.push_back(ids);
    }
    return all;
  }

  std::string Refused(absl::StatusCode code) {
    const absl::Status status = LoadGlue(options_).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_EQ(MeasureGlue(options_).status(), status);
    return std::string(status.message());
  }

  int32_t Id(const std::string& token) const {
    std::ifstream file("data/word_piece_testdata/vocab.txt");
    std::string line;
    for (int32_t id = 0; std::getline(file, line); ++id) {
      if (line == token) return id;
    }
    ADD_FAILURE() << token;
    return -1;
  }

  const std::string dir_;
  DataOptions options_;
};

constexpr char kMrpcHeader[] = "\xEF\xBB\xBFQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n";

TEST_F(GlueTest, PairsHaveBothSentencesAndQuotesAreCharacters) {
  Write(GlueTask::kMrpc, "MRPC",
        std::string(kMrpcHeader) + "1\t7\t8\tthe \"\tme\n0\t7\t8\thear the me the\tthe me hear\n",
        std::string(kMrpcHeader) + "0\t1\t2\tthe\tme\n");
  const absl::StatusOr<DataSplits> splits = LoadGlue(options_);
  ASSERT_TRUE(splits.ok()) << splits.status();
  const int32_t the = Id("the"), me = Id("me"), hear = Id("hear");
  EXPECT_THAT(Samples(*splits->train),
              ElementsAre(ElementsAre(2, the, Id("\""), 3, me, 3, 0, 0, 1),
                          ElementsAre(2, hear, the, me, 3, the, me, 3, 0)));
  EXPECT_THAT(Samples(*splits->test), ElementsAre(ElementsAre(2, the, 3, me, 3, 0, 0, 0, 0)));
  EXPECT_EQ(splits->train->classes(), 2);
}

TEST_F(GlueTest, ColaHasNoHeaderAndMayEndWithoutALineFeed) {
  Write(GlueTask::kCola, "CoLA", "gj04\t1\t\tthe\ngj04\t0\t*\tme\n", "x\t0\t*\tme the");
  const absl::StatusOr<DataSplits> splits = LoadGlue(options_);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train->size(), 2);
  EXPECT_THAT(Samples(*splits->test),
              ElementsAre(ElementsAre(2, Id("me"), Id("the"), 3, 0, 0, 0, 0, 0)));
}

TEST_F(GlueTest, EntailmentIsClassZeroAndTheFilesMayLieInTheFolderItself) {
  const std::string header = "index\tsentence1\tsentence2\tlabel\n";
  Write(GlueTask::kRte, "", header + "0\tme\tthe\tnot_entailment\n1\tme\tme\tentailment\n",
        header + "0\tme\tme\tentailment\n");
  const absl::StatusOr<DataSplits> splits = LoadGlue(options_);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(Samples(*splits->train)[0].back(), 1);
  EXPECT_EQ(Samples(*splits->train)[1].back(), 0);
}

constexpr char kStsbHeader[] =
    "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n";

std::string StsbRow(const std::string& score) {
  return "0\tmain\tf\t2012\t1\tnone\tnone\tme\tthe\t" + score + "\n";
}

TEST_F(GlueTest, ScoresAreLabelsInUnitsThatAreFinerThanFp32) {
  Write(GlueTask::kStsb, "STS-B",
        kStsbHeader + StsbRow("5.000") + StsbRow("0") + StsbRow("2.11111111111111"),
        kStsbHeader + StsbRow("3.8"));
  options_.text.size = *MeasureGlue(options_);
  const absl::StatusOr<DataSplits> splits = LoadGlue(options_);
  ASSERT_TRUE(splits.ok()) << splits.status();
  const DatasetInfo info = *DescribeData(options_);
  EXPECT_EQ(info.score_unit, 0x1p-28);
  EXPECT_EQ(info.classes, 1);
  EXPECT_EQ(splits->train->classes(), 1);
  const std::vector<std::vector<int32_t>> samples = Samples(*splits->train);
  EXPECT_THAT(samples[0], ElementsAre(2, Id("me"), 3, Id("the"), 3, 0, 0, 0, 5 << 28));
  EXPECT_EQ(samples[1].back(), 0);
  EXPECT_EQ(static_cast<float>(samples[2].back() * info.score_unit), 2.11111111111111f);
  EXPECT_EQ(static_cast<float>(Samples(*splits->test)[0].back() * info.score_unit), 3.8f);
  options_.text.task = GlueTask::kSst2;
  EXPECT_EQ(DescribeData(options_)->score_unit, 0);
}

TEST_F(GlueTest, WhatIsNoScoreIsNamed) {
  for (const char* bad : {"5.001", "-0.1", "nan", "inf", "high", ""}) {
    Write(GlueTask::kStsb, "STS-B", kStsbHeader + StsbRow(bad), kStsbHeader + StsbRow("3.8"));
    EXPECT_THAT(Refused(absl::StatusCode::kInvalidArgument),
                HasSubstr(absl::StrCat("STS-B/train.tsv, line 2: score is \"", bad,
                                       "\", want a number from 0 to 5")));
  }
}

TEST_F(GlueTest, LimitsAndHeldOutSamplesAreKept) {
  const std::string header = "sentence\tlabel\n";
  Write(GlueTask::kSst2, "SST-2", header + "the\t0\nme\t1\nhear\t0\n", header + "the\t1\nme\t1\n");
  const CorpusSize size = *MeasureGlue(options_);
  EXPECT_EQ(size.train_samples, 3);
  EXPECT_EQ(size.test_samples, 2);
  options_.text.size = size;
  options_.test_limit = 1;
  options_.held_out = 2;
  const absl::StatusOr<DataSplits> splits = LoadGlue(options_);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train->size(), 1);
  EXPECT_EQ(Samples(*splits->test)[0][1], Id("me"));
  const DatasetInfo info = *DescribeData(options_);
  EXPECT_EQ(info.train_samples, 1);
  EXPECT_EQ(info.test_samples, 2);
  EXPECT_EQ(info.classes, 2);
  EXPECT_EQ(info.vocabulary, size.vocabulary);
  EXPECT_EQ(info.labels, 1);
  options_.text.size.train_samples = 9;
  EXPECT_THAT(std::string(LoadGlue(options_).status().message()),
              AllOf(HasSubstr("glue's SST-2 has 3 and 2 samples"), HasSubstr("want 9 and 2")));
}

TEST_F(GlueTest, ABadLineIsNamedWithWhatIsWanted) {
  const std::string header = "sentence\tlabel\n", good = header + "the\t1\n";
  Write(GlueTask::kSst2, "SST-2", good, header + "the\t1\nme\t2\n");
  EXPECT_THAT(Refused(absl::StatusCode::kInvalidArgument),
              HasSubstr("SST-2/dev.tsv, line 3: label is \"2\", want 0 or 1"));
  Write(GlueTask::kSst2, "SST-2", header + "the\tof\t1\n", good);
  EXPECT_THAT(Refused(absl::StatusCode::kInvalidArgument),
              HasSubstr("train.tsv, line 2: 3 columns, want 2: sentence, label"));
  Write(GlueTask::kSst2, "SST-2", "the\t1\n", good);
  EXPECT_THAT(Refused(absl::StatusCode::kInvalidArgument),
              HasSubstr("line 1: \"the, 1\", want the header sentence, label"));
  Write(GlueTask::kSst2, "SST-2", header, good);
  EXPECT_THAT(Refused(absl::StatusCode::kInvalidArgument),
              HasSubstr("train.tsv: no samples, want at least one"));
}

TEST_F(GlueTest, MissingAndOtherFilesAreNamed) {
  options_.text.task = GlueTask::kRte;
  EXPECT_THAT(Refused(absl::StatusCode::kNotFound),
              AllOf(HasSubstr("glue/train.tsv"), HasSubstr("GLUE's files of RTE")));
  Write(GlueTask::kSst2, "SST-2", "sentence\tlabel\nthe\t1\n", "sentence\tlabel\nthe\t1\n");
  options_.verify = true;
  EXPECT_THAT(Refused(absl::StatusCode::kDataLoss),
              AllOf(HasSubstr("SST-2/train.tsv has SHA-256"), HasSubstr("want 48eac26399f84569")));
}

TEST_F(GlueTest, AContextWithoutRoomIsRefused) {
  Write(GlueTask::kMrpc, "MRPC", std::string(kMrpcHeader) + "1\t7\t8\tthe\tme\n",
        std::string(kMrpcHeader) + "0\t1\t2\tthe\tme\n");
  options_.text.context = 4;
  EXPECT_THAT(std::string(LoadGlue(options_).status().message()),
              HasSubstr("context is 4, want at least 5 for MRPC"));
}

TEST(GlueMeasuresTest, EachTaskHasItsRule) {
  EXPECT_TRUE(MeasuresOf(GlueTask::kMrpc).f1);
  EXPECT_TRUE(MeasuresOf(GlueTask::kCola).matthews);
  EXPECT_TRUE(MeasuresOf(GlueTask::kStsb).correlations);
  EXPECT_FALSE(MeasuresOf(GlueTask::kSst2).f1 || MeasuresOf(GlueTask::kSst2).matthews);
  EXPECT_FALSE(MeasuresOf(GlueTask::kRte).f1 || MeasuresOf(GlueTask::kRte).matthews);
}

}  // namespace
}  // namespace thinwire
