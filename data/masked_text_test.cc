#include "data/masked_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "data/sampler.h"

namespace thinwire {
namespace {

constexpr SpecialTokens kSpecial = {/*pad=*/0, /*unknown=*/1, /*start=*/2, /*separator=*/3,
                                    /*mask=*/4};
constexpr int64_t kVocabulary = 105, kContext = 42, kHiddenOfSample = 6;  // 15 % of 40

// Returns ordinary ids in turn.
std::vector<int32_t> Text(size_t tokens) {
  std::vector<int32_t> ids(tokens);
  for (size_t i = 0; i < tokens; ++i) ids[i] = static_cast<int32_t>(5 + i * 7 % 100);
  return ids;
}

MaskedText Masked(std::vector<int32_t> tokens, int64_t windows = 0) {
  return MaskedText(std::move(tokens), {kVocabulary, kContext, windows, 0, 0.15, kSpecial});
}

struct Sample {
  std::vector<int32_t> ids = std::vector<int32_t>(kContext);
  std::vector<int32_t> labels = std::vector<int32_t>(kContext);
};

Sample SampleOf(const Dataset& data, int64_t sample, const Dataset::Augmentation& augmentation) {
  Sample loaded;
  data.LoadTokens(sample, augmentation, absl::MakeSpan(loaded.ids));
  data.Labels(sample, augmentation, absl::MakeSpan(loaded.labels));
  return loaded;
}

TEST(MaskedTextTest, HiddenTokensAreLabelsAndTheOthersAreTheText) {
  const std::vector<int32_t> text = Text(401);
  const MaskedText data = Masked(text);
  ASSERT_EQ(data.size(), 10);
  for (int64_t sample = 0; sample < data.size(); ++sample) {
    const Sample loaded = SampleOf(data, sample, {});
    EXPECT_EQ(loaded.ids.front(), kSpecial.start);
    EXPECT_EQ(loaded.ids.back(), kSpecial.separator);
    EXPECT_EQ(kContext - std::count(loaded.labels.begin(), loaded.labels.end(), kNoLabel),
              kHiddenOfSample);
    for (size_t i = 1; i + 1 < kContext; ++i) {
      const int32_t own = text[static_cast<size_t>(sample) * (kContext - 2) + i - 1];
      EXPECT_EQ(loaded.labels[i] == kNoLabel ? loaded.ids[i] : loaded.labels[i], own);
    }
  }
}

TEST(MaskedTextTest, OfHiddenTokensEightyInAHundredAreMasksTenOthersAndTenStay) {
  const MaskedText data = Masked(Text(400'001));  // 60,000 hidden
  double masks = 0, others = 0, hidden = 0;
  std::vector<int> places(kContext);
  for (int64_t sample = 0; sample < data.size(); ++sample) {
    const Sample loaded = SampleOf(data, sample, {});
    for (size_t i = 0; i < kContext; ++i) {
      if (loaded.labels[i] == kNoLabel) continue;
      ++places[i];
      ++hidden;
      masks += loaded.ids[i] == kSpecial.mask;
      const bool is_other = loaded.ids[i] != kSpecial.mask && loaded.ids[i] != loaded.labels[i];
      others += is_other;
      EXPECT_FALSE(is_other && kSpecial.has(loaded.ids[i]));
    }
  }
  EXPECT_NEAR(masks / hidden, 0.8, 0.005);          // three standard deviations
  EXPECT_NEAR(others / hidden, 0.1 * 0.99, 0.004);  // one in a hundred others is the same
  const auto [least, most] = std::minmax_element(places.begin() + 1, places.end() - 1);
  EXPECT_GT(*least, 1500 - 200);
  EXPECT_LT(*most, 1500 + 200);
}

TEST(MaskedTextTest, SpecialTokensOfTheTextAreHiddenOnlyIfThereAreTooFewOthers) {
  std::vector<int32_t> text(81, kSpecial.unknown);
  for (const size_t ordinary : {3, 8, 13, 21, 30, 33}) text[ordinary] = 9;  // of the first sample
  const MaskedText data = Masked(text);
  const Sample enough = SampleOf(data, 0, {}), too_few = SampleOf(data, 1, {});
  EXPECT_EQ(std::count(enough.labels.begin(), enough.labels.end(), 9), kHiddenOfSample);
  EXPECT_EQ(std::count(too_few.labels.begin(), too_few.labels.end(), kSpecial.unknown),
            kHiddenOfSample);
}

TEST(MaskedTextTest, IsAPureFunctionOfSeedEpochAndSample) {
  const MaskedText data = Masked(Text(401)), twin = Masked(Text(401));
  const auto labels = [](const Dataset& of, AugmentKind kind, uint64_t seed, int64_t epoch) {
    std::vector<int32_t> all;
    for (int64_t sample = 0; sample < of.size(); ++sample) {
      const Sample loaded = SampleOf(of, sample, AugmentationOf(of, kind, seed, epoch, sample));
      all.insert(all.end(), loaded.labels.begin(), loaded.labels.end());
    }
    return all;
  };
  const auto first = labels(data, AugmentKind::kPerEpoch, 1, 1);
  EXPECT_EQ(labels(twin, AugmentKind::kPerEpoch, 1, 1), first);
  EXPECT_NE(labels(data, AugmentKind::kPerEpoch, 1, 2), first);
  EXPECT_NE(labels(data, AugmentKind::kPerEpoch, 2, 1), first);
  EXPECT_EQ(labels(data, AugmentKind::kFixed, 1, 1), labels(data, AugmentKind::kFixed, 1, 2));
  EXPECT_EQ(labels(data, AugmentKind::kNone, 1, 1), labels(data, AugmentKind::kNone, 2, 5));
}

TEST(MaskedTextTest, WindowsBeginAtRandomPlaces) {
  const MaskedText data = Masked(Text(401), /*windows=*/3);
  EXPECT_EQ(data.size(), 3);
  EXPECT_EQ(data.places(), 401 - 40);
  Dataset::Augmentation augmentation;
  augmentation.place = 17;
  const Sample loaded = SampleOf(data, 0, augmentation);
  EXPECT_EQ(loaded.labels[1] == kNoLabel ? loaded.ids[1] : loaded.labels[1], Text(401)[17]);
}

TEST(MaskedTextTest, DigestTellsRatesApart) {
  const MaskedText other(Text(401), {kVocabulary, kContext, 0, 0, 0.3, kSpecial});
  EXPECT_NE(other.digest(), Masked(Text(401)).digest());
  EXPECT_EQ(Masked(Text(401)).digest(), Masked(Text(401)).digest());
}

TEST(HiddenTokensTest, AreRoundedAndAtLeastOne) {
  EXPECT_EQ(HiddenTokens(42, 0.15), 6);
  EXPECT_EQ(HiddenTokens(128, 0.15), 19);
  EXPECT_EQ(HiddenTokens(3, 0.15), 1);
}

}  // namespace
}  // namespace thinwire
