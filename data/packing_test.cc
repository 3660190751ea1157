#include "data/packing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "base/random.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DividedTest, DocumentsThatFitStayWholeAndLongerOnesAreSplit) {
  EXPECT_THAT(Divided({3, 4, 9}, 100, 4, Packing::kNone, TooLong::kSplit),
              ElementsAre(Stretch(100, 3, false), Stretch(103, 4, false), Stretch(107, 4, true),
                          Stretch(111, 4, true)))
      << "the last token of nine is a label, and has none itself";
  EXPECT_THAT(Divided({6}, 0, 4, Packing::kBestFit, TooLong::kSplit),
              ElementsAre(Stretch(0, 4, true), Stretch(4, 2, false)));
}

TEST(DividedTest, TooLongDocumentsMayBeCutOrLeftOut) {
  EXPECT_THAT(Divided({9, 2}, 0, 4, Packing::kNone, TooLong::kTruncate),
              ElementsAre(Stretch(0, 4, false), Stretch(9, 2, false)));
  EXPECT_THAT(Divided({9, 2}, 0, 4, Packing::kNone, TooLong::kDrop),
              ElementsAre(Stretch(9, 2, false)));
}

TEST(DividedTest, AStreamKnowsNoDocuments) {
  EXPECT_THAT(Divided({3, 1, 6}, 5, 4, Packing::kStream, TooLong::kDrop),
              ElementsAre(Stretch(5, 4, true), Stretch(9, 4, true), Stretch(13, 2, false)));
}

TEST(DividedTest, ATokenWithoutALabelIsNoPiece) {
  EXPECT_THAT(Divided({1, 0, 1}, 0, 4, Packing::kNone, TooLong::kSplit), IsEmpty());
  EXPECT_THAT(Divided({5}, 0, 1, Packing::kNone, TooLong::kTruncate), IsEmpty());
  EXPECT_THAT(Divided({}, 0, 4, Packing::kStream, TooLong::kSplit), IsEmpty());
}

std::vector<Stretch> PiecesOf(const std::vector<int64_t>& tokens) {
  std::vector<Stretch> pieces;
  int64_t first = 0;
  for (const int64_t count : tokens) {
    pieces.emplace_back(first, count, false);
    first += count;
  }
  return pieces;
}

TEST(BestFitTest, EachGoesWhereItLeavesTheLeastRoom) {
  // 9 and 6 begin samples of ten; 4 fits best behind 6, 1 behind 9; nothing has room for 2.
  EXPECT_THAT(BestFit(PiecesOf({1, 2, 9, 4, 6}), 10), ElementsAre(0, 1, 0, 2, 2));
  EXPECT_THAT(BestFit({}, 10), IsEmpty());
}

TEST(BestFitTest, NoSampleOverflowsAndFewAreHalfEmpty) {
  constexpr int64_t kContext = 128;
  RandomStream random(RandomKey(1, "packing"));
  std::vector<int64_t> tokens(3000);
  for (int64_t& count : tokens) count = 2 + random.Below(kContext - 1);
  const std::vector<uint32_t> sample_of = BestFit(PiecesOf(tokens), kContext);
  std::map<uint32_t, int64_t> filled;
  for (size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_LE(sample_of[i], filled.size()) << "numbered in the order of the first pieces";
    filled[sample_of[i]] += tokens[i];
  }
  for (const auto& [sample, count] : filled) EXPECT_LE(count, kContext) << sample;
  const int64_t all = std::accumulate(tokens.begin(), tokens.end(), int64_t{0});
  EXPECT_LT(static_cast<double>(filled.size()), 1.03 * static_cast<double>(all) / kContext);
}

}  // namespace
}  // namespace thinwire
