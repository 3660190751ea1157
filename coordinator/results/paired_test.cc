#include "coordinator/results/paired.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace thinwire {
namespace {

// From tables of Student's t, two-sided 95 %.
TEST(PairedTest, QuantilesAreThoseOfTheTables) {
  const std::pair<size_t, double> known[] = {
      {1, 12.7062}, {2, 4.30265},  {3, 3.18245},  {4, 2.77645},  {5, 2.57058},  {6, 2.44691},
      {9, 2.26216}, {10, 2.22814}, {30, 2.04227}, {99, 1.98422}, {100, 1.98397}};
  for (const auto& [degrees, t] : known) {
    EXPECT_NEAR(StudentT95(degrees), t, 6e-6 * t) << degrees;
  }
}

// Worked by hand: mean 2, sd 1, t(2) = 4.30265, half = 4.30265 / sqrt(3) = 2.48414.
TEST(PairedTest, TheIntervalOfThreeDifferences) {
  const auto estimate = PairedEstimate({1, 2, 3});
  ASSERT_TRUE(estimate.ok());
  EXPECT_EQ(estimate->n, 3u);
  EXPECT_EQ(estimate->mean, 2);
  EXPECT_NEAR(estimate->low, 2 - 2.48414, 1e-5);
  EXPECT_NEAR(estimate->high, 2 + 2.48414, 1e-5);
  EXPECT_EQ(DeviationOf({1, 2, 3}), 1);
}

TEST(PairedTest, OneDifferenceHasNoIntervalAndNoneIsRefused) {
  const auto one = PairedEstimate({0.5});
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->mean, 0.5);
  EXPECT_TRUE(std::isnan(one->low) && std::isnan(one->high));
  EXPECT_FALSE(PairedEstimate({}).ok());
}

}  // namespace
}  // namespace thinwire
