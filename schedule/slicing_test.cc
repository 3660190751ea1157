#include "schedule/slicing.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST(SliceShareTest, PartsOfASequenceMakeTheWhole) {
  EXPECT_EQ(SliceShare(0, 1, 0.25), 1);
  EXPECT_EQ(SliceShare(0.25, 0.5, 0), 0.25);
  // A quarter of the pairs; later positions have the other three.
  EXPECT_EQ(SliceShare(0, 0.5, 1), 0.25);
  EXPECT_EQ(SliceShare(0.5, 1, 1), 0.75);
  EXPECT_EQ(SliceShare(0.5, 1, 0.5), 0.5 * 0.5 + 0.5 * 0.75);
}

TEST(BestSlicesTest, OneStageNeedsNone) {
  EXPECT_THAT(BestSlices(256, /*stages=*/1, /*microbatches=*/2, {1, 0.5, 0.01}), ElementsAre(256));
}

TEST(BestSlicesTest, SlicesThatCostNothingAreAsShortAsTheyMayBe) {
  EXPECT_THAT(BestSlices(64, 4, 1, {1, 0, 0}), ElementsAre(8, 8, 8, 8, 8, 8, 8, 8));
  EXPECT_THAT(BestSlices(20, 4, 1, {1, 0, 0}), ElementsAre(8, 8, 4));
  EXPECT_THAT(BestSlices(5, 4, 1, {1, 0, 0}), ElementsAre(5));
}

// n equal slices take n (1 / n + c) + 3 (1 / n + c): least at n = sqrt(3 / c).
TEST(BestSlicesTest, SlicesThatCostSomethingAreFewer) {
  EXPECT_THAT(BestSlices(128, 4, 1, {1, 0, 3. / 16}), ElementsAre(32, 32, 32, 32));
  EXPECT_THAT(BestSlices(128, 4, 1, {1, 0, 3. / 4}), ElementsAre(64, 64));
  EXPECT_THAT(BestSlices(128, 4, 1, {1, 0, 3}), ElementsAre(128));
  // With four microbatches c counts four times.
  EXPECT_THAT(BestSlices(128, 4, 4, {1, 0, 3. / 16}), ElementsAre(64, 64));
}

TEST(BestSlicesTest, LaterSlicesAreShorterWhereAttentionCounts) {
  const std::vector<int64_t> lengths = BestSlices(512, 4, 1, {1, 1, 3. / 16});
  ASSERT_THAT(lengths, SizeIs(::testing::Gt(2)));
  EXPECT_TRUE(std::is_sorted(lengths.rbegin(), lengths.rend()));
  EXPECT_LT(lengths.back(), lengths.front());
}

TEST(BestSlicesTest, LongSequencesHaveNoMoreThan128) {
  const std::vector<int64_t> lengths = BestSlices(2000, 8, 1, {1, 0, 0});
  EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), int64_t{0}), 2000);
  EXPECT_THAT(lengths, Each(16));
}

double SecondsOf(const std::vector<int64_t>& lengths, int64_t positions, int stages,
                 int microbatches, const SequenceCost& cost) {
  double sum = 0, most = 0;
  int64_t first = 0;
  for (const int64_t length : lengths) {
    const auto share = [&](int64_t end) {
      return static_cast<double>(end) / static_cast<double>(positions);
    };
    const double seconds =
        cost.seconds * SliceShare(share(first), share(first + length), cost.attention_share) +
        cost.slice_seconds;
    sum += seconds;
    most = std::max(most, seconds);
    first += length;
  }
  return microbatches * sum + (stages - 1) * most;
}

// Bit i of `cuts` says whether a slice ends after 8 (i + 1) positions.
std::vector<int64_t> LengthsOf(int cuts, int parts) {
  std::vector<int64_t> lengths = {8};
  for (int i = 0; i + 1 < parts; ++i) {
    if ((cuts >> i) & 1) lengths.push_back(0);
    lengths.back() += 8;
  }
  return lengths;
}

TEST(BestSlicesTest, NoOtherSlicesEndSooner) {
  constexpr int kParts = 9;
  for (const int stages : {2, 5}) {
    for (const int microbatches : {1, 3}) {
      for (const SequenceCost& cost :
           {SequenceCost{1, 0.3, 0.05}, SequenceCost{1, 0.9, 0.02}, SequenceCost{1, 0, 0.2}}) {
        double least = std::numeric_limits<double>::infinity();
        for (int cuts = 0; cuts < 1 << (kParts - 1); ++cuts) {
          least = std::min(
              least, SecondsOf(LengthsOf(cuts, kParts), 8 * kParts, stages, microbatches, cost));
        }
        EXPECT_DOUBLE_EQ(SecondsOf(BestSlices(8 * kParts, stages, microbatches, cost), 8 * kParts,
                                   stages, microbatches, cost),
                         least);
      }
    }
  }
}

}  // namespace
}  // namespace thinwire
