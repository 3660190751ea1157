#include "data/images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

std::vector<float> Loaded(const Dataset& data, int64_t sample,
                          const Dataset::Augmentation& augmentation = {}) {
  std::vector<float> out(data.sample_shape().elements());
  data.Load(sample, augmentation, absl::MakeSpan(out));
  return out;
}

// One 2x3 grey image; a raw pixel p loads as p - 1, so black is -1.
ImageDataset Grey() {
  ImageFormat format;
  format.height = 2;
  format.width = 3;
  format.channels = 1;
  format.classes = 10;
  format.white = 1;
  format.mean = {1};
  format.deviation = {1};
  return ImageDataset(format, {1, 2, 3, 4, 5, 6}, {7}, /*digest=*/42);
}

TEST(ImageDatasetTest, SaysWhatItIs) {
  const ImageDataset data = Grey();
  EXPECT_EQ(data.size(), 1);
  EXPECT_EQ(data.classes(), 10);
  EXPECT_EQ(data.sample_shape(), (Shape{1, 2, 3, 1}));
  EXPECT_EQ(data.labels_per_sample(), 1);
  int32_t label = -1;
  data.Labels(0, {}, absl::MakeSpan(&label, 1));
  EXPECT_EQ(label, 7);
  EXPECT_EQ(data.digest(), 42u);
}

TEST(ImageDatasetTest, LoadsTheImageAsItIsWithoutAugmentation) {
  EXPECT_THAT(Loaded(Grey(), 0), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(ImageDatasetTest, CropMovesTheWindowAndPadsWithBlack) {
  EXPECT_THAT(Loaded(Grey(), 0, {/*dy=*/0, /*dx=*/1}), ElementsAre(1, 2, -1, 4, 5, -1));
  EXPECT_THAT(Loaded(Grey(), 0, {/*dy=*/-1, /*dx=*/0}), ElementsAre(-1, -1, -1, 0, 1, 2));
  EXPECT_THAT(Loaded(Grey(), 0, {/*dy=*/2, /*dx=*/0}), ElementsAre(-1, -1, -1, -1, -1, -1));
}

TEST(ImageDatasetTest, FlipsAfterTheCrop) {
  EXPECT_THAT(Loaded(Grey(), 0, {0, 0, /*flip=*/true}), ElementsAre(2, 1, 0, 5, 4, 3));
  EXPECT_THAT(Loaded(Grey(), 0, {0, 1, /*flip=*/true}), ElementsAre(-1, 2, 1, -1, 5, 4));
}

TEST(ImageDatasetTest, NormalisesEachChannelByItsOwnMeanAndDeviation) {
  ImageFormat format;
  format.height = format.width = 1;
  format.channels = 3;
  format.classes = 2;
  format.white = 255;
  format.mean = {0.5f, 0.25f, 0.0f};
  format.deviation = {0.5f, 0.25f, 2.0f};
  const ImageDataset data(format, {255, 0, 51, 0, 255, 0}, {0, 1}, 0);
  EXPECT_THAT(Loaded(data, 0), ElementsAre(1.0f, -1.0f, 51.0f / 255 / 2));
  EXPECT_THAT(Loaded(data, 1), ElementsAre(-1.0f, 3.0f, 0.0f));
}

}  // namespace
}  // namespace thinwire
