#include "coordinator/probe/gradient_comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace thinwire {
namespace {

Closeness Compare(const std::vector<float>& g, const std::vector<float>& g0) {
  GradientComparison comparison;
  comparison.Add(g, g0);
  return comparison.Result();
}

TEST(GradientComparisonTest, EqualVectorsAreEqualToTheLastBit) {
  std::vector<float> g;
  for (int i = 0; i < 1000; ++i) g.push_back(std::sin(0.37f * static_cast<float>(i)) * 1e-4f);
  const Closeness same = Compare(g, g);
  EXPECT_EQ(same.cosine, 1);
  EXPECT_EQ(same.relative_error, 0);
  EXPECT_EQ(same.norm_ratio, 1);
}

TEST(GradientComparisonTest, IsWhatTheDefinitionsSay) {
  const Closeness closeness = Compare({3, 0}, {3, 4});
  EXPECT_DOUBLE_EQ(closeness.cosine, 0.6);
  EXPECT_DOUBLE_EQ(closeness.relative_error, 0.8);
  EXPECT_DOUBLE_EQ(closeness.norm_ratio, 0.6);
  EXPECT_DOUBLE_EQ(Compare({-6, -8}, {3, 4}).cosine, -1);
  EXPECT_DOUBLE_EQ(Compare({-6, -8}, {3, 4}).relative_error, 3);
}

TEST(GradientComparisonTest, PiecesAddUpToTheWhole) {
  GradientComparison first, second;
  first.Add(std::vector<float>{3}, std::vector<float>{3});
  second.Add(std::vector<float>{0}, std::vector<float>{4});
  first.Add(second);
  EXPECT_DOUBLE_EQ(first.Result().cosine, 0.6);
}

TEST(GradientComparisonTest, ZeroVectorsHaveNoDirection) {
  EXPECT_EQ(Compare({0}, {0}).cosine, 1);
  EXPECT_EQ(Compare({0}, {0}).relative_error, 0);
  EXPECT_EQ(Compare({0}, {2}).cosine, 0);
  EXPECT_EQ(Compare({0}, {2}).relative_error, 1);
  EXPECT_TRUE(std::isinf(Compare({2}, {0}).relative_error));
}

}  // namespace
}  // namespace thinwire
