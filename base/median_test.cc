#include "base/median.h"

#include "gtest/gtest.h"

namespace thinwire {
namespace {

TEST(UpperMedianTest, IsTheValueInTheMiddle) {
  EXPECT_EQ(UpperMedian<double>({3, 1, 2}), 2);
  EXPECT_EQ(UpperMedian<double>({7}), 7);
}

TEST(UpperMedianTest, OfAnEvenNumberIsTheUpperOne) { EXPECT_EQ(UpperMedian<int>({4, 1, 3, 2}), 3); }

}  // namespace
}  // namespace thinwire
