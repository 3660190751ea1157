#include "config/origins.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

Origins Given() {
  Origins origins;
  origins.Add("compression", "f:1: ", /*is_section=*/true);
  origins.Add("compression.activations", "f:2: ", /*is_section=*/true);
  origins.Add("compression.activations.ratio", "f:3: ", /*is_section=*/false);
  origins.Add("compression.boundaries.layer1.0.gradients", "f:4: ", /*is_section=*/true);
  origins.Add("compression.boundaries.layer1.0.gradients.bits", "f:5: ", /*is_section=*/false);
  origins.Add("model.blocks[1]", "f:6: ", /*is_section=*/false);
  return origins;
}

TEST(OriginsTest, ARefusalBeginsWithItsField) {
  EXPECT_EQ(Given().Of("compression.activations.ratio: 2, want less"), "f:3: ");
  EXPECT_EQ(Given().Of("compression.boundaries.layer1.0.gradients.bits: 9"), "f:5: ");
}

TEST(OriginsTest, OrNamesItInASentenceAboutItsSection) {
  EXPECT_EQ(Given().Of("compression.activations: topk: ratio is 1.5, want 1"), "f:3: ");
  EXPECT_EQ(Given().Of("compression.activations: topk: k is 0, want 1"), "f:2: ");
}

TEST(OriginsTest, AFieldThatIsMissingIsSoughtInItsSection) {
  EXPECT_EQ(Given().Of("compression.activations.k: is required"), "f:2: ");
  EXPECT_EQ(Given().Of("compression.gradients.k: is required"), "f:1: ");
  EXPECT_EQ(Given().Of("model.blocks[1].name: is required"), "f:6: ");
  EXPECT_EQ(Given().Of("model.blocks[0].name: is required"), "");
  EXPECT_EQ(Given().Of("epochs: is required"), "");
  EXPECT_EQ(Given().Of(""), "");
}

TEST(OriginsTest, TheLastPlaceOfAFieldCountsAndTheFirstOfASection) {
  Origins origins = Given();
  origins.Add("compression.activations", "--set a: ", /*is_section=*/true);
  origins.Add("compression.activations.ratio", "--set a: ", /*is_section=*/false);
  EXPECT_EQ(origins.Of("compression.activations.k: is required"), "f:2: ");
  EXPECT_EQ(origins.Of("compression.activations.ratio: 2"), "--set a: ");
}

TEST(OriginsTest, AListThatIsReplacedHasNoOldElements) {
  Origins origins = Given();
  origins.Add("model.blocks[1].layers[0].kind", "f:7: ", /*is_section=*/false);
  origins.Add("model.blocks", "--set model.blocks: ", /*is_section=*/false);
  origins.ForgetElements("model.blocks");
  EXPECT_EQ(origins.Of("model.blocks[1].layers[0].kind: x"), "--set model.blocks: ");
}

}  // namespace
}  // namespace thinwire
