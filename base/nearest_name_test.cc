#include <gtest/gtest.h>

#include "base/text.h"

namespace thinwire {
namespace {

TEST(NearestNameTest, FindsTheNameOfOneWrongLetter) {
  EXPECT_EQ(NearestName("resnet1", {"resnet34", "resnet18"}), "resnet18");
  EXPECT_EQ(NearestName("topkk", {"uniform", "topk"}), "topk");
}

TEST(NearestNameTest, TiesGoToTheEarlierName) {
  EXPECT_EQ(NearestName("layer9", {"layer2", "layer1"}), "layer2");
}

TEST(NearestNameTest, IsEmptyWithoutNames) { EXPECT_EQ(NearestName("x", {}), ""); }

}  // namespace
}  // namespace thinwire
