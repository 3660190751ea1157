#include "data/mnist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string BigEndian(uint32_t word) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(word >> shift);
  return bytes;
}

std::string IdxImages(uint32_t count, uint32_t rows, uint32_t columns, const std::string& pixels) {
  return BigEndian(0x803) + BigEndian(count) + BigEndian(rows) + BigEndian(columns) + pixels;
}

std::string IdxLabels(const std::string& labels) {
  return BigEndian(0x801) + BigEndian(static_cast<uint32_t>(labels.size())) + labels;
}

// Four images for training, labels 3, 1, 9, 0, and two for test, labels 2, 4. All pixels of an
// image are its label, but the last one is 255.
class MnistTest : public testing::Test {
 protected:
  MnistTest() {
    options_.name = "mnist";
    options_.verify = false;
    options_.limit = 4;
    options_.test_limit = 2;
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    options_.dir = testing::TempDir() + "/mnist_" + test->name();
    std::filesystem::create_directories(options_.dir);
    WritePart("train", {3, 1, 9, 0});
    WritePart("t10k", {2, 4});
  }
  ~MnistTest() override { std::filesystem::remove_all(options_.dir); }

  void Write(const std::string& name, const std::string& bytes) {
    std::ofstream(options_.dir + "/" + name, std::ios::binary) << bytes;
  }
  void Pack(const std::string& name, const std::string& bytes) {
    const gzFile file = gzopen((options_.dir + "/" + name + ".gz").c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
  }
  void WritePart(const std::string& part, const std::vector<char>& labels) {
    std::string pixels;
    for (const char label : labels) pixels += std::string(783, label) + '\xFF';
    Write(part + "-images-idx3-ubyte",
          IdxImages(static_cast<uint32_t>(labels.size()), 28, 28, pixels));
    Write(part + "-labels-idx1-ubyte", IdxLabels({labels.begin(), labels.end()}));
  }
  DataSplits Load() {
    absl::StatusOr<DataSplits> splits = LoadData(options_);
    EXPECT_TRUE(splits.ok()) << splits.status();
    return splits.ok() ? *std::move(splits) : DataSplits();
  }
  std::string Refusal(absl::StatusCode code) {
    const absl::Status status = LoadData(options_).status();
    EXPECT_EQ(status.code(), code) << status;
    return std::string(status.message());
  }

  DataOptions options_;
};

int32_t DigitOf(const Dataset& data, int64_t sample) {
  int32_t label = -1;
  data.Labels(sample, {}, absl::MakeSpan(&label, 1));
  return label;
}

TEST_F(MnistTest, ImagesAndLabelsAreReadInOrder) {
  const DataSplits splits = Load();
  ASSERT_EQ(splits.train->size(), 4);
  EXPECT_EQ(DigitOf(*splits.train, 0), 3);
  EXPECT_EQ(DigitOf(*splits.train, 2), 9);
  EXPECT_EQ(DigitOf(*splits.test, 1), 4);
  EXPECT_EQ(splits.train->sample_shape(), (Shape{1, 28, 28, 1}));
  EXPECT_EQ(splits.train->crop_padding(), 2);
  EXPECT_FALSE(splits.train->may_flip());
  std::vector<float> image(784);
  splits.train->Load(2, {}, absl::MakeSpan(image));
  EXPECT_FLOAT_EQ(image[0], (9 / 255.0f - 0.1307f) / 0.3081f);
  EXPECT_FLOAT_EQ(image[783], (1 - 0.1307f) / 0.3081f);
  options_.name = "fashion_mnist";
  Load().train->Load(2, {}, absl::MakeSpan(image));
  EXPECT_FLOAT_EQ(image[783], (1 - 0.2860f) / 0.3530f);
  EXPECT_TRUE(Load().train->may_flip());
}

TEST_F(MnistTest, APackedFileIsPreferredAndHasTheSameImages) {
  const uint64_t plain = Load().train->digest();
  Pack("train-labels-idx1-ubyte", IdxLabels({3, 1, 9, 0}));
  EXPECT_EQ(Load().train->digest(), plain);
  Pack("train-labels-idx1-ubyte", IdxLabels({3, 1, 9, 1}));
  EXPECT_EQ(DigitOf(*Load().train, 3), 1);
  EXPECT_NE(Load().train->digest(), plain);
}

TEST_F(MnistTest, TheLastImagesMayBeHeldOutWithoutAFileForTest) {
  std::filesystem::remove(options_.dir + "/t10k-images-idx3-ubyte");
  options_.held_out = 1;
  options_.limit = 2;
  options_.test_limit = 0;
  const DataSplits splits = Load();
  EXPECT_EQ(splits.train->size(), 2);
  ASSERT_EQ(splits.test->size(), 1);
  EXPECT_EQ(DigitOf(*splits.test, 0), 0);
}

TEST_F(MnistTest, FewerImagesThanTheOfficialOnesWantALimit) {
  options_.limit = 0;
  EXPECT_EQ(Refusal(absl::StatusCode::kDataLoss),
            options_.dir +
                "/train-images-idx3-ubyte has 4 images, want 60000, or a data.limit and "
                "data.test_limit");
  options_.limit = 5;
  EXPECT_THAT(Refusal(absl::StatusCode::kInvalidArgument), HasSubstr("limit of 5"));
}

TEST_F(MnistTest, WhatIsNoFileOfTheFormatIsNamed) {
  const std::string images = options_.dir + "/train-images-idx3-ubyte";
  const std::vector<std::pair<std::string, std::string>> refusals = {
      {"abc", " has 3 bytes, want a header of 16"},
      {BigEndian(0x801) + std::string(12, '\0'),
       ": begins with 0x00000801, want 0x00000803, images of a byte each"},
      {IdxImages(1, 28, 27, ""), ": images have 28 x 27 pixels, want 28 x 28"},
      {IdxImages(2, 28, 28, std::string(784, 'a')),
       " has 800 bytes, want 1584 for the 2 images that its header says, at least one"},
      {IdxImages(0, 28, 28, ""), " has 16 bytes, want 16 for the 0 images that its header says"},
      {IdxImages(0xFFFFFFFF, 28, 28, ""), " has 16 bytes, want 3367254359296 for the 4294967295"},
  };
  for (const auto& [content, message] : refusals) {
    Write("train-images-idx3-ubyte", content);
    EXPECT_THAT(Refusal(absl::StatusCode::kDataLoss), HasSubstr(images + message));
  }
  std::filesystem::resize_file(images, 16 + 784 * 60'000 + 1);
  EXPECT_THAT(Refusal(absl::StatusCode::kDataLoss),
              HasSubstr(images + " has more than 47040016 bytes, want no more than 60000 images"));
  Write("train-images-idx3-ubyte", "<!DOCTYPE html><html></html>");
  EXPECT_THAT(Refusal(absl::StatusCode::kDataLoss), HasSubstr(images + ": is an HTML page"));
}

TEST_F(MnistTest, LabelsThatDoNotFitAreNamed) {
  const std::string labels = options_.dir + "/train-labels-idx1-ubyte";
  Write("train-labels-idx1-ubyte", IdxLabels({3, 1, 10, 0}));
  EXPECT_EQ(Refusal(absl::StatusCode::kDataLoss), labels + ": label 2 is 10, want 0 to 9");
  Write("train-labels-idx1-ubyte", IdxLabels({3, 1, 9}));
  EXPECT_EQ(Refusal(absl::StatusCode::kDataLoss), labels + " has 3 labels, want 4, as many as " +
                                                      options_.dir +
                                                      "/train-images-idx3-ubyte has images");
}

TEST_F(MnistTest, OnlyPackedFilesAreVerified) {
  options_.verify = true;
  EXPECT_EQ(Refusal(absl::StatusCode::kInvalidArgument),
            options_.dir +
                "/train-images-idx3-ubyte is not packed, and cannot be compared with the official "
                "train-images-idx3-ubyte.gz: want data.verify: false with it");
  Pack("train-images-idx3-ubyte", "abc");
  EXPECT_THAT(
      Refusal(absl::StatusCode::kDataLoss),
      AllOf(HasSubstr("train-images-idx3-ubyte.gz has SHA-256 "),
            HasSubstr("want 440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f2035236")));
}

TEST_F(MnistTest, AMissingFileIsNamedWithHowToGetIt) {
  options_.name = "fashion_mnist";
  std::filesystem::remove(options_.dir + "/t10k-labels-idx1-ubyte");
  EXPECT_EQ(Refusal(absl::StatusCode::kNotFound),
            "cannot read " + options_.dir +
                "/t10k-labels-idx1-ubyte.gz: `thinwire data fetch fashion_mnist` gets the files "
                "into data/fashion_mnist; data.dir may name any folder that has them");
}

}  // namespace
}  // namespace thinwire
