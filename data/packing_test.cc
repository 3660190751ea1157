#include "data/packing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/random.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<Stretch> Divided(const std::vector<int64_t>& lengths, int64_t first,
                             const DocumentDivision& division) {
  std::vector<Stretch> pieces;
  Divider divider(division, first, [&pieces](const Stretch& piece) {
    pieces.push_back(piece);
    return absl::OkStatus();
  });
  absl::Status status;
  for (const int64_t length : lengths) status.Update(divider.Add(length));
  status.Update(divider.End());
  EXPECT_TRUE(status.ok()) << status;
  return pieces;
}

TEST(DividerTest, DocumentsThatFitStayWholeAndLongerOnesAreSplit) {
  EXPECT_THAT(Divided({3, 4, 9}, 100, {4, Packing::kNone, TooLong::kSplit}),
              ElementsAre(Stretch{100, 3, false}, Stretch{103, 4, false}, Stretch{107, 4, true},
                          Stretch{111, 4, true}))
      << "the last token of nine is a label, and has none itself";
  EXPECT_THAT(Divided({6}, 0, {4, Packing::kBestFit, TooLong::kSplit}),
              ElementsAre(Stretch{0, 4, true}, Stretch{4, 2, false}));
}

TEST(DividerTest, TooLongDocumentsMayBeCutOrLeftOut) {
  EXPECT_THAT(Divided({9, 2}, 0, {4, Packing::kNone, TooLong::kTruncate}),
              ElementsAre(Stretch{0, 4, false}, Stretch{9, 2, false}));
  EXPECT_THAT(Divided({9, 2}, 0, {4, Packing::kNone, TooLong::kDrop}),
              ElementsAre(Stretch{9, 2, false}));
}

TEST(DividerTest, AStreamKnowsNoDocuments) {
  EXPECT_THAT(Divided({3, 1, 6}, 5, {4, Packing::kStream, TooLong::kDrop}),
              ElementsAre(Stretch{5, 4, true}, Stretch{9, 4, true}, Stretch{13, 2, false}));
}

TEST(DividerTest, ATokenWithoutALabelIsNoPiece) {
  EXPECT_THAT(Divided({1, 0, 1}, 0, {4, Packing::kNone, TooLong::kSplit}), IsEmpty());
  EXPECT_THAT(Divided({5}, 0, {1, Packing::kNone, TooLong::kTruncate}), IsEmpty());
  EXPECT_THAT(Divided({}, 0, {4, Packing::kStream, TooLong::kSplit}), IsEmpty());
}

TEST(WordOfTest, KeepsAStretchAndTheOrderOfTheirFirstTokens) {
  const Stretch last = {(int64_t{1} << 42) - 1, int64_t{1} << 20, true}, one = {5, 1, false};
  EXPECT_EQ(StretchOf(WordOf(last)), last);
  EXPECT_EQ(StretchOf(WordOf(one)), one);
  EXPECT_LT(WordOf({5, 1 << 20, true}), WordOf({6, 1, false}));
}

// Returns the samples of pieces with so many tokens, in their order.
std::vector<int64_t> SamplesOf(std::vector<int64_t> tokens, int64_t context) {
  BestFit fit(context);
  std::vector<int64_t> samples;
  for (const int64_t count : tokens) samples.push_back(fit.Place(count));
  return samples;
}

TEST(BestFitTest, EachGoesWhereItLeavesTheLeastRoom) {
  // 9 and 6 begin samples of ten; 4 fits best behind 6, 1 behind 9; nothing has room for 2.
  EXPECT_THAT(SamplesOf({9, 6, 4, 2, 1}, 10), ElementsAre(0, 1, 1, 2, 0));
}

TEST(BestFitTest, OfEqualRoomsTheLastOneMadeIsTaken) {
  EXPECT_THAT(SamplesOf({8, 8, 8, 6, 2, 2, 2, 2}, 10), ElementsAre(0, 1, 2, 3, 2, 1, 0, 3));
}

// What BestFit does, with every sample by itself.
std::vector<int64_t> PlainlyFitted(const std::vector<int64_t>& tokens, int64_t context) {
  std::map<int64_t, std::vector<int64_t>> by_room;
  std::vector<int64_t> samples;
  int64_t made = 0;
  for (const int64_t count : tokens) {
    auto found = by_room.lower_bound(count);
    int64_t room = context, sample = 0;
    if (found == by_room.end()) {
      sample = made++;
    } else {
      room = found->first;
      sample = found->second.back();
      found->second.pop_back();
      if (found->second.empty()) by_room.erase(found);
    }
    by_room[room - count].push_back(sample);
    samples.push_back(sample);
  }
  return samples;
}

TEST(BestFitTest, RowsOfSamplesAreTheSamples) {
  RandomStream random(RandomKey(1, "rows"));
  for (int round = 0; round < 300; ++round) {
    const int64_t context = 4 + random.Below(60);
    const uint32_t most = 1 + random.Below(static_cast<uint32_t>(context));
    std::vector<int64_t> tokens(500);
    for (int64_t& count : tokens) count = 1 + random.Below(most);
    std::sort(tokens.rbegin(), tokens.rend());
    ASSERT_EQ(SamplesOf(tokens, context), PlainlyFitted(tokens, context)) << context;
  }
}

TEST(BestFitTest, NoSampleOverflowsAndFewAreHalfEmpty) {
  constexpr int64_t kContext = 128;
  RandomStream random(RandomKey(1, "packing"));
  std::vector<int64_t> tokens(3000);
  for (int64_t& count : tokens) count = 2 + random.Below(kContext - 1);
  std::sort(tokens.rbegin(), tokens.rend());
  const std::vector<int64_t> samples = SamplesOf(tokens, kContext);
  std::map<int64_t, int64_t> filled;
  for (size_t i = 0; i < tokens.size(); ++i) filled[samples[i]] += tokens[i];
  for (const auto& [sample, count] : filled) EXPECT_LE(count, kContext) << sample;
  const int64_t all = std::accumulate(tokens.begin(), tokens.end(), int64_t{0});
  EXPECT_LT(static_cast<double>(filled.size()), 1.03 * static_cast<double>(all) / kContext);
}

}  // namespace
}  // namespace thinwire
