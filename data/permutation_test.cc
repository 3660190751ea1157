#include "data/permutation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace thinwire {
namespace {

using ::testing::ElementsAre;

std::vector<int64_t> ItemsOf(const Permutation& permutation) {
  std::vector<int64_t> items(static_cast<size_t>(permutation.size()));
  for (size_t i = 0; i < items.size(); ++i) items[i] = permutation[static_cast<int64_t>(i)];
  return items;
}

TEST(PermutationTest, HasEachItemOnceInAListOrWithoutOne) {
  for (const int64_t size : {int64_t{0}, int64_t{1}, int64_t{1000}, Permutation::kMostListed,
                             Permutation::kMostListed + 1, Permutation::kMostListed + 77'777}) {
    std::vector<bool> has(static_cast<size_t>(size));
    const Permutation permutation(7, size);
    for (int64_t place = 0; place < size; ++place) {
      const int64_t item = permutation[place];
      ASSERT_TRUE(0 <= item && item < size) << item;
      has[static_cast<size_t>(item)] = true;
    }
    EXPECT_EQ(std::count(has.begin(), has.end(), true), size);
  }
}

TEST(PermutationTest, IsAFunctionOfItsKey) {
  EXPECT_EQ(ItemsOf(Permutation(1, 100)), ItemsOf(Permutation(1, 100)));
  EXPECT_NE(ItemsOf(Permutation(1, 100)), ItemsOf(Permutation(2, 100)));
  constexpr int64_t kMany = int64_t{1} << 40;
  int equal = 0;
  for (int64_t place = 0; place < 100; ++place) {
    EXPECT_EQ(Permutation(1, kMany)[place], Permutation(1, kMany)[place]);
    if (Permutation(1, kMany)[place] == Permutation(2, kMany)[place]) ++equal;
  }
  EXPECT_EQ(equal, 0);
}

// Results of runs depend on these.
TEST(PermutationTest, StaysWhatItWas) {
  const Permutation many(1, int64_t{10'000'000'000});
  const std::vector<int64_t> first = {many[0], many[1], many[2], many[9'999'999'999]};
  EXPECT_THAT(first, ElementsAre(7'607'895'573, 8'205'047'821, 3'855'460'103, 5'281'267'934));
}

TEST(PermutationTest, SpreadsNeighboursOverAllItems) {
  constexpr int64_t kSize = 100'000'000, kPlaces = 100'000, kParts = 10;
  const Permutation permutation(3, kSize);
  std::vector<int> counts(kParts);
  double distance = 0;
  for (int64_t place = 0; place < kPlaces; ++place) {
    ++counts[static_cast<size_t>(permutation[place] * kParts / kSize)];
    distance += static_cast<double>(std::abs(permutation[place + 1] - permutation[place]));
  }
  for (const int count : counts) EXPECT_NEAR(count, kPlaces / kParts, 500);  // five deviations
  EXPECT_NEAR(distance / kPlaces / kSize, 1. / 3, 0.005);
}

}  // namespace
}  // namespace thinwire
