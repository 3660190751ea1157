#include "coordinator/plan/table_text.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

TEST(WrappedTest, BreaksAtSpacesAndIndents) {
  EXPECT_EQ(Wrapped("head  ", "short"), "head  short\n");
  const std::string word(30, 'x');
  EXPECT_EQ(Wrapped("head  ", word + " " + word + " " + word),
            "head  " + word + " " + word + "\n      " + word + "\n");
  const std::string longer(100, 'x');
  EXPECT_EQ(Wrapped("head  ", longer), "head  " + longer + "\n") << "a word is never broken";
}

TEST(DescriptionLinesTest, NamesCutsOnlyWhereTheyDiffer) {
  EXPECT_EQ(DescriptionLines({{"layer1", "activation", "fp16"},
                              {"layer1", "gradient", "fp8"},
                              {"layer2", "activation", "fp16"},
                              {"layer2", "gradient", "none"}}),
            "activation  fp16\n"
            "layer1     gradient    fp8\n"
            "layer2     gradient    none\n");
  EXPECT_EQ(DescriptionLines({}), "");
}

}  // namespace
}  // namespace thinwire
