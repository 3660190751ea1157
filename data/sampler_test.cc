#include "data/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int64_t> SamplesOf(const EpochOrder& order) {
  std::vector<int64_t> samples;
  for (int64_t place = 0; place < order.size(); ++place) samples.push_back(order[place]);
  return samples;
}

std::vector<int64_t> BatchesOf(const EpochOrder& order, int64_t batches) {
  std::vector<int64_t> numbers;
  for (int64_t place = 0; place < batches; ++place) numbers.push_back(order.Batch(place));
  return numbers;
}

TEST(EpochOrderTest, IsAPermutation) {
  const std::vector<int64_t> order = SamplesOf(EpochOrder(/*seed=*/1, /*epoch=*/1, /*size=*/1000));
  const std::set<int64_t> seen(order.begin(), order.end());
  ASSERT_EQ(order.size(), 1000u);
  EXPECT_EQ(seen.size(), 1000u);
  EXPECT_EQ(*seen.begin(), 0);
  EXPECT_EQ(*seen.rbegin(), 999);
}

TEST(EpochOrderTest, IsAFunctionOfSeedAndEpoch) {
  EXPECT_EQ(SamplesOf(EpochOrder(1, 2, 100)), SamplesOf(EpochOrder(1, 2, 100)));
  EXPECT_NE(SamplesOf(EpochOrder(1, 2, 100)), SamplesOf(EpochOrder(1, 3, 100)));
  EXPECT_NE(SamplesOf(EpochOrder(1, 2, 100)), SamplesOf(EpochOrder(2, 2, 100)));
}

// Results of recorded runs depend on this order.
TEST(EpochOrderTest, StaysWhatItWas) {
  EXPECT_THAT(SamplesOf(EpochOrder(/*seed=*/1, /*epoch=*/1, /*size=*/8)),
              ElementsAre(6, 4, 2, 1, 0, 5, 7, 3));
}

TEST(EpochOrderTest, PutsEverySampleAtEveryPlaceAboutEquallyOften) {
  int counts[4][4] = {};
  for (int epoch = 1; epoch <= 4000; ++epoch) {
    const std::vector<int64_t> order = SamplesOf(EpochOrder(7, epoch, 4));
    for (int i = 0; i < 4; ++i) ++counts[i][order[i]];
  }
  for (const auto& at_position : counts) {
    for (int count : at_position) EXPECT_NEAR(count, 1000, 140);  // five standard deviations
  }
}

TEST(EpochOrderTest, EmptyDataHaveAnEmptyOrder) {
  EXPECT_THAT(SamplesOf(EpochOrder(1, 1, 0)), IsEmpty());
}

TEST(ShuffleTest, OfSamplesIsTheOrderOfOld) {
  const Shuffle shuffle{ShuffleKind::kSamples, /*seed=*/3, /*batch_size=*/10};
  EXPECT_EQ(SamplesOf(EpochOrder(shuffle, 2, 25)), SamplesOf(EpochOrder(3, 2, 25)));
  EXPECT_THAT(BatchesOf(EpochOrder(shuffle, 2, 25), 3), ElementsAre(0, 1, 2));
}

TEST(ShuffleTest, OfBatchesKeepsTheSamplesOfEachTogetherAndTheSmallerOneLast) {
  const Shuffle shuffle{ShuffleKind::kBatches, /*seed=*/3, /*batch_size=*/4};
  std::map<int64_t, std::vector<int64_t>> batches;
  std::set<std::vector<int64_t>> orders;
  for (int epoch = 1; epoch <= 20; ++epoch) {
    const std::vector<int64_t> order = SamplesOf(EpochOrder(shuffle, epoch, 22));
    const std::vector<int64_t> names = BatchesOf(EpochOrder(shuffle, epoch, 22), 6);
    ASSERT_EQ(std::set<int64_t>(order.begin(), order.end()).size(), 22u);
    ASSERT_EQ(names.size(), 6u);
    EXPECT_EQ(names.back(), 5);
    orders.insert(names);
    for (size_t i = 0; i < names.size(); ++i) {
      const std::vector<int64_t> batch(order.begin() + 4 * i,
                                       order.begin() + std::min<size_t>(4 * i + 4, 22));
      const auto [known, is_new] = batches.emplace(names[i], batch);
      EXPECT_EQ(known->second, batch) << "batch " << names[i] << " in epoch " << epoch;
    }
  }
  EXPECT_GT(orders.size(), 15u);
  EXPECT_NE(SamplesOf(EpochOrder(shuffle, 1, 22)),
            SamplesOf(EpochOrder(Shuffle{ShuffleKind::kBatches, /*seed=*/4, 4}, 1, 22)));
}

TEST(NumBatchesTest, KeepsThePartialLastBatch) {
  EXPECT_EQ(NumBatches(100, 50), 2);
  EXPECT_EQ(NumBatches(101, 50), 3);
  EXPECT_EQ(NumBatches(1, 50), 1);
  EXPECT_EQ(NumBatches(0, 50), 0);
}

TEST(MicrobatchRangeTest, LargerOnesComeFirst) {
  std::vector<int64_t> sizes;
  for (int m = 0; m < 4; ++m) {
    const SampleRange range = MicrobatchRange(/*n=*/10, /*count=*/4, m);
    sizes.push_back(range.last - range.first);
  }
  EXPECT_THAT(sizes, ElementsAre(3, 3, 2, 2));
}

TEST(MicrobatchRangeTest, CoversTheBatchWithoutGapsAndSizesDifferByAtMostOne) {
  for (int64_t n = 1; n <= 40; ++n) {
    for (int count = 1; count <= n; ++count) {
      int64_t next = 0;
      for (int m = 0; m < count; ++m) {
        const SampleRange range = MicrobatchRange(n, count, m);
        ASSERT_EQ(range.first, next);
        ASSERT_GE(range.last - range.first, n / count);
        ASSERT_LE(range.last - range.first, (n + count - 1) / count);
        next = range.last;
      }
      ASSERT_EQ(next, n);
    }
  }
}

TEST(SampleDigestTest, NamesSamplesTheirOrderAndTheirNumber) {
  const uint64_t digest = SampleDigest({1, 2, 3});
  EXPECT_EQ(SampleDigest({1, 2, 3}), digest);
  EXPECT_NE(SampleDigest({2, 1, 3}), digest);
  EXPECT_NE(SampleDigest({1, 2}), digest);
  EXPECT_NE(SampleDigest({0}), SampleDigest({}));
}

class FakeImages final : public Dataset {
 public:
  FakeImages(int padding, bool flips) : padding_(padding), flips_(flips) {}
  int64_t size() const override { return 1000; }
  int64_t classes() const override { return 2; }
  Shape sample_shape() const override { return {1, 1, 1, 1}; }
  void Labels(int64_t, const Augmentation&, absl::Span<int32_t> out) const override { out[0] = 0; }
  void Load(int64_t, const Augmentation&, absl::Span<float>) const override {}
  uint64_t digest() const override { return 0; }
  int crop_padding() const override { return padding_; }
  bool may_flip() const override { return flips_; }

 private:
  const int padding_;
  const bool flips_;
};

using Fields = std::tuple<int, int, bool>;
Fields Augmented(const Dataset& data, AugmentKind kind, uint64_t seed, int64_t epoch,
                 int64_t sample) {
  const Dataset::Augmentation a = AugmentationOf(data, kind, seed, epoch, sample);
  return {a.dy, a.dx, a.flip};
}

std::vector<Fields> AllAugmented(const Dataset& data, AugmentKind kind, uint64_t seed,
                                 int64_t epoch) {
  std::vector<Fields> all;
  for (int64_t i = 0; i < data.size(); ++i) all.push_back(Augmented(data, kind, seed, epoch, i));
  return all;
}

TEST(AugmentationOfTest, NoneLeavesTheImageAsItIs) {
  const FakeImages data(4, true);
  EXPECT_EQ(Augmented(data, AugmentKind::kNone, 1, 1, 17), Fields(0, 0, false));
}

TEST(AugmentationOfTest, FixedIsTheSameInEveryEpochAndPerEpochIsNot) {
  const FakeImages data(4, true);
  EXPECT_EQ(AllAugmented(data, AugmentKind::kFixed, 1, 1),
            AllAugmented(data, AugmentKind::kFixed, 1, 2));
  EXPECT_NE(AllAugmented(data, AugmentKind::kPerEpoch, 1, 1),
            AllAugmented(data, AugmentKind::kPerEpoch, 1, 2));
  EXPECT_EQ(AllAugmented(data, AugmentKind::kPerEpoch, 1, 2),
            AllAugmented(data, AugmentKind::kPerEpoch, 1, 2));
  EXPECT_NE(AllAugmented(data, AugmentKind::kPerEpoch, 1, 2),
            AllAugmented(data, AugmentKind::kPerEpoch, 2, 2));
}

TEST(AugmentationOfTest, ReachesEveryCropAndBothFlipsAndNothingElse) {
  const FakeImages data(1, true);
  const std::vector<Fields> all = AllAugmented(data, AugmentKind::kPerEpoch, 1, 1);
  const std::set<Fields> seen(all.begin(), all.end());
  EXPECT_EQ(seen.size(), 3u * 3u * 2u);
  for (const auto& [dy, dx, flip] : seen) {
    EXPECT_LE(std::abs(dy), 1);
    EXPECT_LE(std::abs(dx), 1);
  }
}

TEST(AugmentationOfTest, DataThatMayNotMoveOrFlipStay) {
  const FakeImages data(0, false);
  for (const Fields& fields : AllAugmented(data, AugmentKind::kPerEpoch, 1, 1)) {
    EXPECT_EQ(fields, Fields(0, 0, false));
  }
}

// A text of more places than a word of 32 bits counts.
class FakeText final : public Dataset {
 public:
  static constexpr int64_t kPlaces = (int64_t{5} << 32) + 3;
  int64_t size() const override { return 3000; }
  int64_t classes() const override { return 2; }
  Shape sample_shape() const override { return {1, 1}; }
  bool is_text() const override { return true; }
  void Labels(int64_t, const Augmentation&, absl::Span<int32_t>) const override {}
  uint64_t digest() const override { return 0; }
  int64_t places() const override { return kPlaces; }
};

TEST(AugmentationOfTest, WindowsReachEveryPartOfATextThatAWordCannotCount) {
  const FakeText data;
  std::vector<int> of_tenth(10);
  for (int64_t i = 0; i < data.size(); ++i) {
    const int64_t place = AugmentationOf(data, AugmentKind::kPerEpoch, 1, 1, i).place;
    ASSERT_TRUE(0 <= place && place < FakeText::kPlaces) << place;
    ++of_tenth[static_cast<size_t>(10 * (place / 1000) / (FakeText::kPlaces / 1000 + 1))];
  }
  for (const int count : of_tenth) EXPECT_NEAR(count, 300, 80);
}

}  // namespace
}  // namespace thinwire
