#include "coordinator/run/class_measures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Values of Matthews are the covariance of one-hot labels and predictions over their deviations.
TEST(ClassMeasuresTest, F1IsThatOfClassOne) {
  EXPECT_DOUBLE_EQ(F1({90, 10, 20, 80}), 160.0 / 190);  // 0.842105...
  EXPECT_DOUBLE_EQ(F1({0, 0, 0, 5}), 1);
  EXPECT_DOUBLE_EQ(F1({5, 0, 0, 0}), 0);
  EXPECT_DOUBLE_EQ(F1({0, 5, 7, 0}), 0);
}

TEST(ClassMeasuresTest, MatthewsIsTheCorrelationOfLabelsAndPredictions) {
  EXPECT_NEAR(Matthews({90, 10, 20, 80}), 0.7035264706814485, 1e-12);
  EXPECT_NEAR(Matthews({3, 1, 2, 4}), 0.408248290463863, 1e-12);
  EXPECT_DOUBLE_EQ(Matthews({7, 0, 0, 5}), 1);
  EXPECT_DOUBLE_EQ(Matthews({0, 7, 5, 0}), -1);
  EXPECT_DOUBLE_EQ(Matthews({7, 0, 5, 0}), 0);  // all predictions are one class
  EXPECT_DOUBLE_EQ(Matthews({0, 0, 0, 0}), 0);
}

TEST(ClassMeasuresTest, MatthewsOfThreeClasses) {
  EXPECT_NEAR(Matthews({5, 1, 0, 2, 4, 1, 0, 1, 6}), 0.6278195488721804, 1e-12);
}

TEST(ClassMeasuresTest, OnlyWhatIsWantedIsSet) {
  const ClassMeasures of_mrpc = *MeasureClasses({90, 10, 20, 80}, 200, {true, false});
  EXPECT_THAT(of_mrpc.confusion(), ElementsAre(90, 10, 20, 80));
  EXPECT_TRUE(of_mrpc.has_f1());
  EXPECT_FALSE(of_mrpc.has_matthews());
  EXPECT_TRUE(MeasureClasses({90, 10, 20, 80}, 200, {false, true})->has_matthews());
}

TEST(ClassMeasuresTest, CountsOfOtherSamplesAreRefused) {
  EXPECT_THAT(std::string(MeasureClasses({1, 0, 0, 1}, 3, {}).status().message()),
              HasSubstr("4 counts of 2 predictions, want 4 of 3"));
  EXPECT_THAT(std::string(MeasureClasses({}, 3, {}).status().message()),
              HasSubstr("0 counts of 0 predictions"));
}

}  // namespace
}  // namespace thinwire
