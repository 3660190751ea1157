#include "config/known_data.h"

#include <gtest/gtest.h>

#include "data/dataset.h"

namespace thinwire {
namespace {

TEST(KnownDataTest, SaysOfDigitsWhatTheLoaderSays) {
  const auto known = FindKnownData("digits");
  ASSERT_TRUE(known.ok());
  DataOptions options;
  options.name = "digits";
  const auto loaded = LoadData(options);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(known->sample, loaded->train->sample_shape());
  EXPECT_EQ(known->classes, loaded->train->classes());
  EXPECT_EQ(known->train_samples, loaded->train->size());
  EXPECT_EQ(known->test_samples, loaded->test->size());
}

TEST(KnownDataTest, Cifar10IsTenClassesOfColourImages) {
  const auto known = FindKnownData("cifar10");
  ASSERT_TRUE(known.ok());
  EXPECT_EQ(known->sample, (Shape{1, 32, 32, 3}));
  EXPECT_EQ(known->classes, 10);
}

TEST(KnownDataTest, AnUnknownNameGetsTheNearest) {
  EXPECT_EQ(FindKnownData("cifar").status().message(),
            "data.name: unknown data \"cifar\"; did you mean cifar10? Known: cifar10, digits");
}

}  // namespace
}  // namespace thinwire
