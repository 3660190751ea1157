#include "monitoring/buckets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace thinwire {
namespace {

TEST(DecimalBoundsTest, AreTwelveDecimalsPerDecade) {
  EXPECT_THAT(
      (DecimalBounds<-1, 2>()),
      ::testing::ElementsAre(0.1, 0.12, 0.15, 0.18, 0.22, 0.27, 0.33, 0.39, 0.47, 0.57, 0.68, 0.825,
                             1, 1.2, 1.5, 1.8, 2.2, 2.7, 3.3, 3.9, 4.7, 5.7, 6.8, 8.25, 10));
  EXPECT_EQ((DecimalBounds<-5, 1>()[1]), 1.2e-5);
  EXPECT_EQ((DecimalBounds<1, 2>()[23]), 825);
}

TEST(DecimalBoundsTest, NeighboursAreAtMostAQuarterApartAndTextSpellsThemShort) {
  constexpr auto kBounds = DecimalBounds<-5, 7>();
  for (size_t i = 1; i < kBounds.size(); ++i) {
    EXPECT_GT(kBounds[i], 1.1 * kBounds[i - 1]);
    EXPECT_LT(kBounds[i], 1.26 * kBounds[i - 1]);
    std::ostringstream text;
    text.precision(16);
    text << kBounds[i];
    EXPECT_LE(text.str().size(), 8u) << text.str();
  }
}

}  // namespace
}  // namespace thinwire
