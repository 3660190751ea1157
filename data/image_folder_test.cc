#include "data/image_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/str_cat.h"
#include "data/picture.h"
#include "data/sampler.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ImageFolderTest : public testing::Test {
 protected:
  ImageFolderTest() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    options_.name = "images";
    options_.dir = testing::TempDir() + "/image_folder_" + test->name();
    options_.images.size = 16;
    options_.images.resize = 20;
  }
  ~ImageFolderTest() override { fs::remove_all(options_.dir); }

  void Add(const std::string& to, const std::string& name = "rgb.png") const {
    const fs::path path = fs::path(options_.dir) / to;
    fs::create_directories(path.parent_path());
    fs::copy_file("data/picture_testdata/" + name, path);
  }
  // Adds two classes, of three pictures for training and two for test.
  void AddTwoClasses() const {
    for (const char* to : {"train/dog/b.png", "train/cat/sub/a.PNG", "train/dog/a.png",
                           "val/cat/a.png", "val/dog/a.png"}) {
      Add(to);
    }
  }
  DataSplits Load() const {
    auto splits = LoadData(options_);
    EXPECT_TRUE(splits.ok()) << splits.status();
    return *std::move(splits);
  }
  std::string Refusal() const { return std::string(LoadData(options_).status().message()); }

  DataOptions options_;
};

std::vector<float> PixelsOf(const Dataset& data, int64_t sample,
                            const Dataset::Augmentation& augmentation = {}) {
  std::vector<float> pixels(static_cast<size_t>(data.sample_shape().elements()));
  data.Load(sample, augmentation, absl::MakeSpan(pixels));
  return pixels;
}

int32_t LabelOf(const Dataset& data, int64_t sample) {
  int32_t label = -1;
  data.Labels(sample, {}, absl::MakeSpan(&label, 1));
  return label;
}

void WriteWhitePng(const std::string& path, uint32_t width, uint32_t height) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = PNG_FORMAT_GRAY;
  const std::vector<uint8_t> pixels(size_t{width} * height, 255);
  ASSERT_NE(png_image_write_to_file(&image, path.c_str(), 0, pixels.data(), 0, nullptr), 0);
}

TEST_F(ImageFolderTest, FoldersAreClassesInTheOrderOfTheirNames) {
  AddTwoClasses();
  std::ofstream(options_.dir + "/train/dog/notes.txt") << "no picture";
  options_.text.size = *MeasureCorpus(options_);
  EXPECT_EQ(options_.text.size, (CorpusSize{0, 0, 0, 3, 2, 2}));
  const DataSplits splits = Load();
  const DatasetInfo info = *DescribeData(options_);
  EXPECT_EQ(info.train_samples, splits.train->size());
  EXPECT_EQ(info.test_samples, splits.test->size());
  EXPECT_EQ(info.classes, splits.train->classes());
  EXPECT_EQ(info.sample, splits.train->sample_shape());
  EXPECT_FALSE(info.is_text);
  std::multiset<int32_t> labels;
  for (int64_t i = 0; i < 3; ++i) labels.insert(LabelOf(*splits.train, i));
  EXPECT_EQ(labels, (std::multiset<int32_t>{0, 1, 1}));
}

TEST_F(ImageFolderTest, TheFirstAndTheLastPicturesAreOfAllClasses) {
  for (int i = 0; i < 20; ++i) {
    for (const char* of_class : {"a", "b"}) {
      const std::string name = absl::StrCat(of_class, "/", i, ".png");
      for (const char* part : {"train/", "test/"}) {
        fs::create_directories(options_.dir + "/" + part + of_class);
        std::ofstream(options_.dir + "/" + part + name) << "not decoded";
      }
    }
  }
  options_.held_out = 10;
  options_.limit = 10;
  const DataSplits splits = Load();
  for (const auto* data : {splits.train.get(), splits.test.get()}) {
    std::set<int32_t> labels;
    for (int64_t i = 0; i < 10; ++i) labels.insert(LabelOf(*data, i));
    EXPECT_EQ(labels.size(), 2u);
  }
}

TEST_F(ImageFolderTest, EvaluationTakesTheMiddleOfTheResizedPicture) {
  AddTwoClasses();
  options_.images.normalize = PictureNormalize::kNone;
  const DataSplits splits = Load();
  const std::vector<float> pixels = PixelsOf(*splits.test, 0);
  std::ifstream file("data/picture_testdata/rgb.png", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  const Picture picture = *DecodePicture(bytes);
  const Picture resized = Resized(picture, {0, 0, 61, 43}, 28, 20);  // 20 * 61 / 43
  for (int y = 0; y < 16; ++y) {
    for (int i = 0; i < 16 * 3; ++i) {
      EXPECT_EQ(pixels[y * 48 + i], resized.row(y + 2)[i + 3 * 6] / 255.0f);
    }
  }
}

TEST_F(ImageFolderTest, TheMiddleOfALongPictureTakesNoMoreThanItself) {
  AddTwoClasses();
  options_.images.normalize = PictureNormalize::kNone;
  options_.images.resize = 4096;
  const std::string path = options_.dir + "/val/cat/a.png";
  for (const bool is_wide : {true, false}) {
    WriteWhitePng(path, is_wide ? 1'000'000 : 1, is_wide ? 1 : 1'000'000);
    const DataSplits splits = Load();
    for (int64_t i = 0; i < 2; ++i) {
      const std::vector<float> pixels = PixelsOf(*splits.test, i);
      if (LabelOf(*splits.test, i) != 0) continue;
      EXPECT_EQ(pixels, std::vector<float>(16 * 16 * 3, 1.0f));
    }
    EXPECT_TRUE(splits.test->status().ok()) << splits.test->status();
  }
}

TEST_F(ImageFolderTest, ColoursAreNormalisedAsImagenets) {
  AddTwoClasses();
  const DataSplits normal = Load();
  options_.images.normalize = PictureNormalize::kNone;
  const DataSplits plain = Load();
  const std::vector<float> pixels = PixelsOf(*normal.test, 0), raw = PixelsOf(*plain.test, 0);
  for (size_t i = 0; i < pixels.size(); i += 3) {
    EXPECT_FLOAT_EQ(pixels[i], (raw[i] - 0.485f) / 0.229f);
    EXPECT_FLOAT_EQ(pixels[i + 2], (raw[i + 2] - 0.406f) / 0.225f);
  }
  EXPECT_NE(normal.test->digest(), plain.test->digest());
}

TEST_F(ImageFolderTest, TrainingTakesAnyPartAsAFunctionOfSeedEpochAndSample) {
  AddTwoClasses();
  const DataSplits splits = Load();
  std::set<std::vector<float>> seen;
  for (int64_t epoch = 1; epoch <= 20; ++epoch) {
    const auto how = AugmentationOf(*splits.train, AugmentKind::kPerEpoch, 1, epoch, 0);
    const std::vector<float> pixels = PixelsOf(*splits.train, 0, how);
    EXPECT_EQ(pixels, PixelsOf(*splits.train, 0, how));
    seen.insert(pixels);
  }
  EXPECT_EQ(seen.size(), 20u);
  EXPECT_EQ(AugmentationOf(*splits.train, AugmentKind::kNone, 1, 1, 0).crop, 0u);
  options_.images.crop = PictureCrop::kMiddle;
  EXPECT_EQ(AugmentationOf(*Load().train, AugmentKind::kPerEpoch, 1, 1, 0).crop, 0u);
  EXPECT_TRUE(splits.train->status().ok());
}

TEST_F(ImageFolderTest, AFlippedPictureIsTheSameFromTheRight) {
  AddTwoClasses();
  const DataSplits splits = Load();
  Dataset::Augmentation flip;
  flip.flip = true;
  const std::vector<float> pixels = PixelsOf(*splits.test, 0);
  const std::vector<float> flipped = PixelsOf(*splits.test, 0, flip);
  for (int x = 0; x < 16; ++x) EXPECT_EQ(flipped[3 * x], pixels[3 * (15 - x)]);
}

TEST_F(ImageFolderTest, LimitsAndHeldOutPicturesAreKept) {
  AddTwoClasses();
  options_.held_out = 1;
  const DataSplits splits = Load();
  EXPECT_EQ(splits.train->size(), 2);
  EXPECT_EQ(splits.test->size(), 1);
  options_.held_out = 0;
  options_.limit = 4;
  EXPECT_THAT(Refusal(), HasSubstr("a limit of 4 samples, but the training pictures of"));
}

TEST_F(ImageFolderTest, WhatIsMissingIsNamed) {
  EXPECT_THAT(Refusal(), HasSubstr("/train: cannot read"));
  AddTwoClasses();
  Add("train/eel/a.png");
  EXPECT_EQ(Refusal(),
            options_.dir + "/val has no class eel, which " + options_.dir + "/train has");
  fs::remove(options_.dir + "/train/eel/a.png");
  std::ofstream(options_.dir + "/train/eel/a.gif") << "GIF89a";
  EXPECT_THAT(Refusal(), HasSubstr("/train/eel has no pictures, want .jpg, .jpeg or .png"));
  fs::remove_all(options_.dir + "/train/eel");
  options_.images.resize = 15;
  EXPECT_THAT(Refusal(), HasSubstr("size is 16, resize is 15: want 1 <= size <= resize"));
  options_.images.resize = 16;
  options_.text.size = {0, 0, 0, 3, 2, 5};
  EXPECT_THAT(Refusal(), HasSubstr("has 3 and 2 samples of 2 classes for training and test, want "
                                   "3 and 2 samples of 5 classes"));
}

TEST_F(ImageFolderTest, ABrokenPictureIsNamedInTheStatus) {
  AddTwoClasses();
  std::ofstream(options_.dir + "/train/dog/b.png") << "\x89PNG\r\n\x1A\n";
  const DataSplits splits = Load();
  for (int64_t i = 0; i < 3; ++i) PixelsOf(*splits.train, i);
  EXPECT_THAT(std::string(splits.train->status().message()), HasSubstr("dog/b.png: PNG: "));
}

}  // namespace
}  // namespace thinwire
