#include "compress/checks/outliers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "compress/codecs/round_trip_testing.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const Shape kTexts = {3, 20, 32};

// Returns a tensor of normal values, but for channel 7 and first positions.
Tensor TextsWith(float channel, float first_position) {
  std::vector<float> values = RandomValues(kTexts.elements(), 1);
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % 32 == 7) values[i] *= channel;
    if (i / 32 % 20 == 0) values[i] *= first_position;
  }
  return TensorOf(kTexts, values);
}

TEST(FindOutliersTest, NormalValuesHaveNone) {
  const FoundOutliers found = *FindOutliers(TextsWith(1, 1));
  EXPECT_FALSE(found.any());
  EXPECT_EQ(found.ToString(), "");
  EXPECT_FALSE(FindOutliers(TextsWith(0, 0))->any());
  EXPECT_FALSE(FindOutliers(TensorOf({0, 4}, {}))->any());
  EXPECT_FALSE(FindOutliers(TensorOf({1, 2, 2}, {5, 5, 0, 0}))->any());
}

TEST(FindOutliersTest, CountsChannelsAndProposesThem) {
  const FoundOutliers found = *FindOutliers(TextsWith(20, 1));
  EXPECT_EQ(found.channels, 1);
  EXPECT_FALSE(found.has_first_position());
  EXPECT_THAT(found.ToString(), HasSubstr("1 of 32 channels"));
  EXPECT_THAT(found.ToString(), HasSubstr("outliers: 1"));
  EXPECT_THAT(found.ToString(), Not(HasSubstr("first_position")));
}

TEST(FindOutliersTest, ProposesFewOfMany) {
  FoundOutliers found;
  found.channels = 40;
  found.of_channels = 576;
  EXPECT_EQ(found.proposed(), 11);
  EXPECT_THAT(found.ToString(), HasSubstr("outliers: 11 sends the largest as bf16"));
  found.of_channels = 4096;
  EXPECT_EQ(found.proposed(), 16);
  found.of_channels = 8;
  EXPECT_EQ(found.proposed(), 1);
  found.channels = 0;
  EXPECT_EQ(found.proposed(), 0);
}

TEST(FindOutliersTest, ComparesThePositionsOfSequences) {
  const FoundOutliers found = *FindOutliers(TextsWith(1, 100));
  EXPECT_NEAR(found.first_position_ratio, 1e4, 2e3);
  EXPECT_EQ(found.channels, 0) << "of other positions";
  EXPECT_THAT(found.ToString(), HasSubstr("first_position: exact"));
}

}  // namespace
}  // namespace thinwire
