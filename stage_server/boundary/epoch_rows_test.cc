#include "stage_server/boundary/epoch_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// 11 samples in batches of 4, each in up to 3 microbatches: three steps an epoch, the last of 3.
EpochSpec Spec(ShuffleKind kind, uint32_t epoch) { return {{kind, 7, 4}, 3, epoch, 11}; }

TEST(EpochRowsTest, StreamCountsWithinTheMicrobatchAndSlotWithinTheBatch) {
  const EpochRows rows(Spec(ShuffleKind::kSamples, 2), /*needs_ids=*/false);
  EXPECT_THAT(*rows.Of(StateKey::kStream, 4, 0), ElementsAre(0, 1));
  EXPECT_THAT(*rows.Of(StateKey::kStream, 4, 1), ElementsAre(0));
  EXPECT_THAT(*rows.Of(StateKey::kSlot, 4, 0), ElementsAre(0, 1));
  EXPECT_THAT(*rows.Of(StateKey::kSlot, 4, 1), ElementsAre(2));
  EXPECT_THAT(*rows.Of(StateKey::kSlot, 6, 2), ElementsAre(2));
}

TEST(EpochRowsTest, SampleIsTheIdThatTheSamplerDeals) {
  const EpochRows rows(Spec(ShuffleKind::kSamples, 2), /*needs_ids=*/true);
  const EpochOrder order(7, 2, 11);
  EXPECT_THAT(*rows.Of(StateKey::kSample, 4, 0), ElementsAre(order[0], order[1]));
  EXPECT_THAT(*rows.Of(StateKey::kSample, 4, 2), ElementsAre(order[3]));
  EXPECT_THAT(*rows.Of(StateKey::kSample, 6, 2), ElementsAre(order[10]));
}

TEST(EpochRowsTest, BatchFollowsTheBatchWhereverItStands) {
  for (uint32_t epoch = 1; epoch <= 8; ++epoch) {
    const EpochSpec spec = Spec(ShuffleKind::kBatches, epoch);
    const EpochRows rows(spec, /*needs_ids=*/true);
    const EpochOrder order(spec.shuffle, epoch, 11);
    for (int64_t i = 0; i < 3; ++i) {
      const uint64_t step = 3 * (epoch - 1) + static_cast<uint64_t>(i) + 1;
      EXPECT_THAT(*rows.Of(StateKey::kBatch, step, 1),
                  ElementsAre(order.Batch(i) * 4 + (i == 2 ? 1 : 2)));
    }
  }
}

TEST(EpochRowsTest, ASmallBatchHasFewerMicrobatches) {
  EXPECT_EQ(EpochRows({{ShuffleKind::kSamples, 7, 4}, 3, 1, 10}, false).Carried(3),
            (SampleRange{0, 2}));
  EXPECT_EQ(EpochRows(Spec(ShuffleKind::kSamples, 1), false).Carried(1), (SampleRange{0, 3}));
}

TEST(EpochRowsTest, ACarrierHasItsPartOfTheMicrobatches) {
  EpochSpec spec = Spec(ShuffleKind::kSamples, 1);
  spec.first_carried = 1;
  spec.end_carried = 2;
  EXPECT_EQ(EpochRows(spec, false).Carried(1), (SampleRange{1, 2}));
  spec.samples = 9;  // the last batch has one sample
  EXPECT_EQ(EpochRows(spec, false).Carried(3), (SampleRange{1, 1}));
  EXPECT_EQ(EpochRows(spec, false).Carried(4), (SampleRange{1, 2}));
}

TEST(EpochRowsTest, RefusesWhatTheEpochDoesNotHave) {
  const EpochRows rows(Spec(ShuffleKind::kSamples, 2), /*needs_ids=*/false);
  const auto refusal = [&](uint64_t step, uint32_t microbatch) {
    return std::string(rows.Of(StateKey::kSlot, step, microbatch).status().message());
  };
  EXPECT_THAT(refusal(3, 0), AllOf(HasSubstr("step 3"), HasSubstr("steps 4 to 6")));
  EXPECT_THAT(refusal(7, 0), HasSubstr("step 7"));
  EXPECT_THAT(refusal(0, 0), HasSubstr("step 0"));
  for (const uint64_t step : {uint64_t{1} << 63, UINT64_MAX}) {
    EXPECT_THAT(refusal(step, 0), HasSubstr("steps 4 to 6"));
  }
  EXPECT_THAT(refusal(6, 3), HasSubstr("microbatch 3, the batch has 3"));
}

}  // namespace
}  // namespace thinwire
