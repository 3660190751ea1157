#include "data/sentences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

using ::testing::ElementsAre;

constexpr SpecialTokens kSpecial = {/*pad=*/0, /*unknown=*/1, /*start=*/2, /*separator=*/3,
                                    /*mask=*/4};

TEST(FramedTest, PutsSpecialTokensAroundAndFillsUp) {
  EXPECT_THAT(Framed({{7, 8}, {}, 0}, /*is_pair=*/false, 6, kSpecial),
              ElementsAre(2, 7, 8, 3, 0, 0));
  EXPECT_THAT(Framed({{7, 8}, {9}, 0}, /*is_pair=*/true, 7, kSpecial),
              ElementsAre(2, 7, 8, 3, 9, 3, 0));
  EXPECT_THAT(Framed({{7, 8, 9}, {}, 0}, /*is_pair=*/false, 4, kSpecial), ElementsAre(2, 7, 8, 3));
}

TEST(FramedTest, KeepsOfPairsWhatTheReferenceKeeps) {
  std::ifstream file("data/word_piece_testdata/truncations.json");
  const auto rows = nlohmann::json::parse(file);
  ASSERT_GT(rows.size(), 500u);
  for (const auto& row : rows) {
    const Sentences sentences{std::vector<int32_t>(row[0].get<size_t>(), 7),
                              std::vector<int32_t>(row[1].get<size_t>(), 8), 0};
    const std::vector<int32_t> ids =
        Framed(sentences, /*is_pair=*/true, row[2].get<int64_t>(), kSpecial);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), 7), row[3].get<int64_t>()) << row;
    EXPECT_EQ(std::count(ids.begin(), ids.end(), 8), row[4].get<int64_t>()) << row;
  }
}

TEST(SentenceDatasetTest, HasALabelForEachSample) {
  const SentenceDataset data({2, 7, 3, 2, 8, 3}, {1, 0}, /*context=*/3, /*classes=*/2);
  EXPECT_EQ(data.size(), 2);
  EXPECT_EQ(data.labels_per_sample(), 1);
  EXPECT_EQ(data.sample_shape(), (Shape{1, 3}));
  std::vector<int32_t> ids(3), label(1);
  data.LoadTokens(1, {}, absl::MakeSpan(ids));
  data.Labels(1, {}, absl::MakeSpan(label));
  EXPECT_THAT(ids, ElementsAre(2, 8, 3));
  EXPECT_THAT(label, ElementsAre(0));
  EXPECT_NE(SentenceDataset({2, 7, 3, 2, 8, 3}, {1, 1}, 3, 2).digest(), data.digest());
}

}  // namespace
}  // namespace thinwire
