#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "data/known_sets.h"

namespace thinwire {
namespace {

int32_t LabelOf(const Dataset& data, int64_t sample) {
  int32_t label = -1;
  data.Labels(sample, {}, absl::MakeSpan(&label, 1));
  return label;
}

using ::testing::ElementsAre;
using ::testing::HasSubstr;

DataSplits Digits(int64_t limit = 0, int64_t test_limit = 0) {
  DataOptions options;
  options.limit = limit;
  options.test_limit = test_limit;
  return *LoadDigits(options);
}

std::vector<int> SamplesPerClass(const Dataset& data) {
  std::vector<int> counts(10);
  for (int64_t i = 0; i < data.size(); ++i) ++counts[LabelOf(data, i)];
  return counts;
}

TEST(DigitsTest, HoldsTheSamplesThatItsDescriptionCounts) {
  const DataSplits digits = Digits();
  EXPECT_THAT(SamplesPerClass(*digits.train),
              ElementsAre(376, 389, 380, 389, 387, 376, 377, 387, 380, 382));
  EXPECT_THAT(SamplesPerClass(*digits.test),
              ElementsAre(178, 182, 177, 183, 181, 182, 181, 179, 174, 180));
}

TEST(DigitsTest, ImagesAreGreyMayMoveByOnePixelAndAreNeverFlipped) {
  const DataSplits digits = Digits();
  EXPECT_EQ(digits.train->sample_shape(), (Shape{1, 8, 8, 1}));
  EXPECT_EQ(digits.train->classes(), 10);
  EXPECT_EQ(digits.train->crop_padding(), 1);
  EXPECT_FALSE(digits.train->may_flip());
}

TEST(DigitsTest, FirstTestImageIsThatOfTheFile) {
  std::vector<float> image(64);
  Digits().test->Load(0, {}, absl::MakeSpan(image));
  const int row[] = {0, 0, 13, 15, 10, 15, 5, 0};  // its second row
  for (int x = 0; x < 8; ++x) {
    EXPECT_FLOAT_EQ(image[8 + x], (row[x] / 16.0f - 0.30774823f) / 0.37728035f) << x;
  }
}

TEST(DigitsTest, TrainingSetHasMeanZeroAndDeviationOne) {
  const DataSplits digits = Digits();
  double sum = 0, squares = 0;
  std::vector<float> image(64);
  for (int64_t i = 0; i < digits.train->size(); ++i) {
    digits.train->Load(i, {}, absl::MakeSpan(image));
    for (float value : image) {
      sum += value;
      squares += double{value} * value;
    }
  }
  const double n = 64.0 * digits.train->size();
  EXPECT_NEAR(sum / n, 0, 1e-6);
  EXPECT_NEAR(std::sqrt(squares / n), 1, 1e-6);
}

TEST(DigitsTest, LimitsKeepTheFirstSamples) {
  const DataSplits all = Digits(), some = Digits(/*limit=*/5, /*test_limit=*/2);
  ASSERT_EQ(some.train->size(), 5);
  EXPECT_EQ(some.test->size(), 2);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(LabelOf(*some.train, i), LabelOf(*all.train, i));
  EXPECT_NE(some.train->digest(), all.train->digest());
}

TEST(DigitsTest, TheLastTrainingSamplesMayBeHeldOutAndStandForTheTestSet) {
  DataOptions options;
  options.held_out = 823;
  const DataSplits all = Digits(), rest = Digits(/*limit=*/3000), split = *LoadDigits(options);
  ASSERT_EQ(split.test->size(), 823);
  for (int i = 0; i < 823; ++i) EXPECT_EQ(LabelOf(*split.test, i), LabelOf(*all.train, 3000 + i));
  EXPECT_EQ(split.train->digest(), rest.train->digest()) << "the 3000 others";
  EXPECT_NE(split.test->digest(), all.test->digest());
  options.limit = 5;
  options.test_limit = 7;
  const DataSplits some = *LoadDigits(options);
  EXPECT_EQ(some.train->digest(), Digits(/*limit=*/5).train->digest());
  ASSERT_EQ(some.test->size(), 7);
  EXPECT_EQ(LabelOf(*some.test, 6), LabelOf(*all.train, 3006)) << "the same, whatever the limit";
}

TEST(DigitsTest, HoldingOutTooManyIsRefused) {
  DataOptions options;
  options.held_out = 3823;
  EXPECT_EQ(LoadDigits(options).status().message(),
            "held_out is 3823, but the training digits hold 3823 samples: want fewer");
  options.held_out = 3822;
  EXPECT_EQ((*LoadDigits(options)).train->size(), 1);
  options.limit = 2;
  EXPECT_EQ(LoadDigits(options).status().message(),
            "a limit of 2 samples, but the training digits that are not held out hold 1");
  options.limit = 0;
  options.test_limit = 3823;
  EXPECT_EQ(LoadDigits(options).status().message(),
            "a limit of 3823 samples, but those held out hold 3822");
}

TEST(DigitsTest, LimitBeyondTheDataIsRefused) {
  DataOptions options;
  options.test_limit = 1798;
  const absl::Status status = LoadDigits(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("limit of 1798"));
}

}  // namespace
}  // namespace thinwire
