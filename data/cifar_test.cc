#include "data/cifar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kRecordBytes = 3073;

// Returns a record in which red, green and blue of every pixel are 10 label + 0, 1, 2; the first
// pixel's red is 255.
std::string Record(int label) {
  std::string record(kRecordBytes, '\0');
  record[0] = static_cast<char>(label);
  for (int c = 0; c < 3; ++c) {
    std::fill_n(record.begin() + 1 + 1024 * c, 1024, static_cast<char>(10 * label + c));
  }
  record[1] = static_cast<char>(255);
  return record;
}

int32_t LabelOf(const Dataset& data, int64_t sample) {
  int32_t label = -1;
  data.Labels(sample, {}, absl::MakeSpan(&label, 1));
  return label;
}

// Five training files of two records each, labels 0 to 9 in order, and a test file with labels 9,
// 8.
class Cifar10Test : public testing::Test {
 protected:
  Cifar10Test() {
    options_.name = "cifar10";
    options_.verify = false;
    options_.limit = 10;
    options_.test_limit = 2;
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    options_.dir = testing::TempDir() + "/" + test->name();
    std::filesystem::create_directories(options_.dir);
    for (int i = 0; i < 5; ++i) WriteBatch(i + 1, Record(2 * i) + Record(2 * i + 1));
    Write("test_batch.bin", Record(9) + Record(8));
  }
  ~Cifar10Test() override { std::filesystem::remove_all(options_.dir); }

  void Write(const std::string& name, const std::string& bytes) {
    std::ofstream(options_.dir + "/" + name, std::ios::binary) << bytes;
  }
  void WriteBatch(int i, const std::string& bytes) {
    Write("data_batch_" + std::to_string(i) + ".bin", bytes);
  }
  DataSplits Load() {
    absl::StatusOr<DataSplits> splits = LoadCifar(options_);
    EXPECT_TRUE(splits.ok()) << splits.status();
    return splits.ok() ? *std::move(splits) : DataSplits();
  }
  std::string Refusal(absl::StatusCode code) {
    const absl::Status status = LoadCifar(options_).status();
    EXPECT_EQ(status.code(), code) << status;
    return std::string(status.message());
  }

  DataOptions options_;
};

TEST_F(Cifar10Test, ReadsTheBatchesInOrder) {
  const DataSplits splits = Load();
  ASSERT_EQ(splits.train->size(), 10);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(LabelOf(*splits.train, i), i);
  ASSERT_EQ(splits.test->size(), 2);
  EXPECT_EQ(LabelOf(*splits.test, 0), 9);
  EXPECT_EQ(splits.train->classes(), 10);
  EXPECT_EQ(splits.train->sample_shape(), (Shape{1, 32, 32, 3}));
  EXPECT_EQ(splits.train->crop_padding(), 4);
  EXPECT_TRUE(splits.train->may_flip());
}

TEST_F(Cifar10Test, PlanesBecomeChannelsLastAndAreNormalised) {
  std::vector<float> image(32 * 32 * 3);
  Load().train->Load(4, {}, absl::MakeSpan(image));
  EXPECT_FLOAT_EQ(image[0], (1.0f - 0.4914f) / 0.2023f);
  EXPECT_FLOAT_EQ(image[1], (41 / 255.0f - 0.4822f) / 0.1994f);
  EXPECT_FLOAT_EQ(image[2], (42 / 255.0f - 0.4465f) / 0.2010f);
  EXPECT_FLOAT_EQ(image[3], (40 / 255.0f - 0.4914f) / 0.2023f);
}

TEST_F(Cifar10Test, FindsTheFolderOfTheArchive) {
  const std::string inner = options_.dir + "/cifar-10-batches-bin";
  std::filesystem::create_directories(inner);
  for (const auto& file : std::filesystem::directory_iterator(options_.dir)) {
    if (file.is_regular_file()) {
      std::filesystem::rename(file.path(), inner / file.path().filename());
    }
  }
  EXPECT_EQ(Load().train->size(), 10);
}

TEST_F(Cifar10Test, LimitsKeepTheFirstSamplesAndNeedNoFurtherFiles) {
  std::filesystem::remove(options_.dir + "/data_batch_3.bin");
  options_.limit = 3;
  options_.test_limit = 1;
  const DataSplits splits = Load();
  ASSERT_EQ(splits.train->size(), 3);
  EXPECT_EQ(LabelOf(*splits.train, 2), 2);
  EXPECT_EQ(splits.test->size(), 1);
}

TEST_F(Cifar10Test, TheLastTrainingSamplesMayBeHeldOutAcrossFilesWithoutATestFile) {
  std::filesystem::remove(options_.dir + "/test_batch.bin");
  options_.held_out = 3;
  options_.limit = 7;
  DataSplits splits = Load();
  ASSERT_EQ(splits.train->size(), 7);
  EXPECT_EQ(LabelOf(*splits.train, 6), 6);
  ASSERT_EQ(splits.test->size(), 2) << "the first test_limit of them";
  EXPECT_EQ(LabelOf(*splits.test, 0), 7);
  EXPECT_EQ(LabelOf(*splits.test, 1), 8);
  options_.limit = 2;
  EXPECT_EQ(LabelOf(*Load().test, 0), 7) << "the same, whatever the limit";
}

TEST_F(Cifar10Test, HoldingOutMoreThanTheLimitLeavesIsRefused) {
  options_.held_out = 3;
  options_.limit = 8;
  EXPECT_THAT(Refusal(absl::StatusCode::kInvalidArgument),
              AllOf(HasSubstr("limit of 8"), HasSubstr("that are not held out hold 7")));
  options_.held_out = 10;
  EXPECT_THAT(Refusal(absl::StatusCode::kInvalidArgument),
              AllOf(HasSubstr("held_out is 10"), HasSubstr("hold 10")));
}

TEST_F(Cifar10Test, LimitBeyondTheDataIsRefused) {
  options_.limit = 11;
  EXPECT_THAT(Refusal(absl::StatusCode::kInvalidArgument),
              AllOf(HasSubstr("limit of 11"), HasSubstr("hold 10")));
}

TEST_F(Cifar10Test, DigestNamesBytesOrderAndLimit) {
  const uint64_t whole = Load().train->digest();
  EXPECT_EQ(Load().train->digest(), whole);
  options_.limit = 9;
  EXPECT_NE(Load().train->digest(), whole);
  options_.limit = 10;
  WriteBatch(1, Record(1) + Record(0));
  EXPECT_NE(Load().train->digest(), whole);
}

TEST_F(Cifar10Test, MissingFileIsNamedWithHowToGetIt) {
  std::filesystem::remove(options_.dir + "/data_batch_4.bin");
  EXPECT_THAT(Refusal(absl::StatusCode::kNotFound),
              AllOf(HasSubstr(options_.dir + "/data_batch_4.bin"),
                    HasSubstr("cifar-10-binary.tar.gz"), HasSubstr("data.dir")));
}

TEST_F(Cifar10Test, WrongSizeIsRefused) {
  WriteBatch(2, Record(0) + "x");
  EXPECT_THAT(Refusal(absl::StatusCode::kDataLoss),
              AllOf(HasSubstr("data_batch_2.bin has 3074 bytes"), HasSubstr("3073")));
  WriteBatch(2, "");
  EXPECT_THAT(Refusal(absl::StatusCode::kDataLoss), HasSubstr("data_batch_2.bin has 0 bytes"));
  WriteBatch(2, "version https://git-lfs.github.com/spec/v1\nsize 30730000\n");
  EXPECT_THAT(Refusal(absl::StatusCode::kDataLoss),
              HasSubstr("data_batch_2.bin: is a pointer of Git LFS to 30730000 bytes"));
}

TEST_F(Cifar10Test, AFileCutAtARecordsBorderIsRefusedWhereNoLimitSaysHowMuchIsWanted) {
  options_.limit = 0;
  EXPECT_THAT(Refusal(absl::StatusCode::kDataLoss),
              HasSubstr(options_.dir + "/data_batch_1.bin has 6146 bytes, 2 records of 3073, want "
                                       "30730000, or a data.limit"));
}

TEST_F(Cifar10Test, AFifoIsRefusedAndNotWaitedFor) {
  const std::string path = options_.dir + "/data_batch_2.bin";
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(Refusal(absl::StatusCode::kInvalidArgument),
              HasSubstr(path + ": is a FIFO, want a regular file"));
}

TEST_F(Cifar10Test, AFileLargerThanAnyOfTheFormatIsRefused) {
  const std::string path = options_.dir + "/data_batch_5.bin";
  std::filesystem::resize_file(path, 30'730'000u + kRecordBytes);
  EXPECT_THAT(Refusal(absl::StatusCode::kDataLoss),
              HasSubstr(path + " has 30733073 bytes, want a multiple of 3073 up to 30730000"));
}

TEST_F(Cifar10Test, AFolderWhoseNameIsTooLongIsNamed) {
  const std::string dir = options_.dir;
  options_.dir = std::string(300, 'x');
  EXPECT_THAT(Refusal(absl::StatusCode::kNotFound), HasSubstr(options_.dir + "/data_batch_1.bin"));
  options_.dir = dir;
}

TEST_F(Cifar10Test, LabelOutOfRangeIsRefused) {
  Write("test_batch.bin", Record(3) + Record(10));
  EXPECT_THAT(Refusal(absl::StatusCode::kDataLoss),
              HasSubstr("test_batch.bin: record 1 has label 10, want 0 to 9"));
}

TEST_F(Cifar10Test, OtherBytesThanTheOfficialOnesAreRefusedWhenVerified) {
  options_.verify = true;
  EXPECT_THAT(Refusal(absl::StatusCode::kDataLoss),
              AllOf(HasSubstr("data_batch_1.bin has SHA-256 "),
                    HasSubstr("want cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b26")));
}

// A training file of three records, fine labels 99, 0, 7 and coarse ones 19, 0, 3, and a test file
// with the first of them. Red, green and blue of an image are its fine label + 0, 1, 2.
class Cifar100Test : public testing::Test {
 protected:
  Cifar100Test() {
    options_.name = "cifar100";
    options_.verify = false;
    options_.limit = 3;
    options_.test_limit = 1;
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    options_.dir = testing::TempDir() + "/cifar100_" + test->name();
    std::filesystem::create_directories(options_.dir);
    Write("train.bin", Fine(19, 99) + Fine(0, 0) + Fine(3, 7));
    Write("test.bin", Fine(19, 99));
  }
  ~Cifar100Test() override { std::filesystem::remove_all(options_.dir); }

  static std::string Fine(char coarse, char fine) {
    std::string record = {coarse, fine};
    for (char c = 0; c < 3; ++c) record.append(1024, static_cast<char>(fine + c));
    return record;
  }
  void Write(const std::string& name, const std::string& bytes) {
    std::ofstream(options_.dir + "/" + name, std::ios::binary) << bytes;
  }
  std::string Refusal() { return std::string(LoadData(options_).status().message()); }

  DataOptions options_;
};

TEST_F(Cifar100Test, EitherLabelOfARecordIsRead) {
  const auto fine = LoadData(options_);
  ASSERT_TRUE(fine.ok()) << fine.status();
  EXPECT_EQ(fine->train->classes(), 100);
  EXPECT_EQ(LabelOf(*fine->train, 0), 99);
  EXPECT_EQ(LabelOf(*fine->train, 2), 7);
  EXPECT_EQ(LabelOf(*fine->test, 0), 99);
  options_.labels = CifarLabels::kCoarse;
  const auto coarse = LoadData(options_);
  ASSERT_TRUE(coarse.ok()) << coarse.status();
  EXPECT_EQ(coarse->train->classes(), 20);
  EXPECT_EQ(LabelOf(*coarse->train, 0), 19);
  EXPECT_EQ(LabelOf(*coarse->train, 2), 3);
}

TEST_F(Cifar100Test, PixelsBeginBehindBothLabels) {
  std::vector<float> image(32 * 32 * 3);
  const auto splits = LoadData(options_);
  ASSERT_TRUE(splits.ok()) << splits.status();
  splits->train->Load(2, {}, absl::MakeSpan(image));
  EXPECT_FLOAT_EQ(image[0], (7 / 255.0f - 0.5071f) / 0.2673f);
  EXPECT_FLOAT_EQ(image[1], (8 / 255.0f - 0.4865f) / 0.2564f);
  EXPECT_FLOAT_EQ(image.back(), (9 / 255.0f - 0.4409f) / 0.2762f);
}

TEST_F(Cifar100Test, IsDescribedByItsLabels) {
  EXPECT_EQ(DescribeData(options_)->classes, 100);
  EXPECT_EQ(DescribeData(options_)->train_samples, 50'000);
  EXPECT_EQ(DescribeData(options_)->test_samples, 10'000);
  options_.labels = CifarLabels::kCoarse;
  EXPECT_EQ(DescribeData(options_)->classes, 20);
}

TEST_F(Cifar100Test, WhatIsNoRecordIsRefused) {
  Write("train.bin", Fine(20, 3));
  EXPECT_EQ(LoadData(options_).status().code(), absl::StatusCode::kInvalidArgument)
      << "one record, and a limit of three; its coarse label is not used";
  options_.labels = CifarLabels::kCoarse;
  EXPECT_EQ(Refusal(), options_.dir + "/train.bin: record 0 has label 20, want 0 to 19");
  Write("train.bin", Fine(0, 0).substr(1));
  EXPECT_EQ(Refusal(),
            options_.dir + "/train.bin has 3073 bytes, want a multiple of 3074 up to 153700000");
  std::filesystem::remove(options_.dir + "/train.bin");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("`thinwire data fetch cifar100` downloads "),
                               HasSubstr("cifar-100-binary.tar.gz")));
}

}  // namespace
}  // namespace thinwire
