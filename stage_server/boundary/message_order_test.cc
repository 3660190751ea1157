#include <gtest/gtest.h>

#include <string>

#include "stage_server/boundary/epoch_rows.h"

namespace thinwire {
namespace {

// 11 samples in batches of 4, each in up to 3 microbatches but for the last of 2: three steps an
// epoch.
std::shared_ptr<const EpochRows> Rows(uint32_t epoch, uint64_t first_step = 0,
                                      uint64_t last_step = 0, bool goes_on = true) {
  const EpochSpec spec{{ShuffleKind::kSamples, 7, 4}, 3, epoch, 10, first_step, last_step, goes_on};
  return std::make_shared<const EpochRows>(spec, /*needs_ids=*/false);
}

MessageKey Key(uint32_t epoch, uint64_t step, uint32_t microbatch) {
  return {PHASE_TRAIN, DIRECTION_ACTIVATION, 0, epoch, step, microbatch};
}

// Takes every message of the epoch that was started.
void TakeAll(MessageOrder* order) {
  while (!order->is_complete()) order->Advance();
}

TEST(MessageOrderTest, MessagesComeStepAfterStepAndMicrobatchAfterMicrobatch) {
  MessageOrder order;
  order.Start(Rows(2));
  for (const auto& [step, microbatch] :
       {std::pair(4, 0), {4, 1}, {4, 2}, {5, 0}, {5, 1}, {5, 2}, {6, 0}, {6, 1}}) {
    EXPECT_FALSE(order.is_complete());
    EXPECT_TRUE(order.Check(Key(2, step, microbatch)).ok()) << step << " " << microbatch;
    order.Advance();
  }
  EXPECT_TRUE(order.is_complete());
}

TEST(MessageOrderTest, WhatComesTwiceOrTooEarlyIsToldWhatIsWanted) {
  MessageOrder order;
  order.Start(Rows(2));
  order.Advance();
  for (const MessageKey& key : {Key(2, 4, 0), Key(2, 4, 2), Key(2, 5, 0), Key(2, 5, 1),
                                Key(1, 4, 1), Key(3, 4, 1), Key(3, 7, 0)}) {
    EXPECT_EQ(order.Check(key), absl::InvalidArgumentError("want epoch 2, step 4, microbatch 1"))
        << key.ToString();
  }
}

TEST(MessageOrderTest, APeerMayBeginTheNextEpochAndNoOther) {
  MessageOrder order;
  order.Start(Rows(1));
  TakeAll(&order);
  EXPECT_TRUE(order.Check(Key(2, 4, 0)).ok());
  for (const MessageKey& key : {Key(1, 3, 1), Key(2, 4, 1), Key(2, 5, 0), Key(3, 7, 0)}) {
    EXPECT_EQ(order.Check(key), absl::InvalidArgumentError("want epoch 2, step 4, microbatch 0"))
        << key.ToString();
  }
}

TEST(MessageOrderTest, BehindSomeStepsOfAnEpochTheNextOneComes) {
  MessageOrder order;
  order.Start(Rows(2, 4, 5));
  EXPECT_TRUE(order.Check(Key(2, 4, 0)).ok());
  TakeAll(&order);
  EXPECT_TRUE(order.Check(Key(2, 6, 0)).ok());
  EXPECT_EQ(order.Check(Key(3, 7, 0)),
            absl::InvalidArgumentError("want epoch 2, step 6, microbatch 0"));
  order.Start(Rows(2, 6, 6));
  EXPECT_TRUE(order.Check(Key(2, 6, 0)).ok());
  TakeAll(&order);
  EXPECT_TRUE(order.Check(Key(3, 7, 0)).ok());
  EXPECT_FALSE(order.Check(Key(2, 7, 0)).ok());
}

// Steps of which this pipeline carries no microbatch have no message here, nor may the last one.
TEST(MessageOrderTest, OfACarrierOnlyItsOwnMicrobatchesCome) {
  EpochSpec spec{{ShuffleKind::kSamples, 7, 4}, 4, 1, 10};  // the last batch has 2 microbatches
  spec.first_carried = 2;
  spec.end_carried = 4;
  MessageOrder order;
  order.Start(std::make_shared<const EpochRows>(spec, /*needs_ids=*/false));
  for (const auto& [step, microbatch] : {std::pair(1, 2), {1, 3}, {2, 2}, {2, 3}}) {
    EXPECT_FALSE(order.is_complete());
    EXPECT_TRUE(order.Check(Key(1, step, microbatch)).ok()) << step << " " << microbatch;
    order.Advance();
  }
  EXPECT_TRUE(order.is_complete());
  EXPECT_TRUE(order.Check(Key(2, 4, 2)).ok());
  EXPECT_FALSE(order.Check(Key(1, 3, 2)).ok());
  spec.first_step = spec.last_step = 3;
  order.Start(std::make_shared<const EpochRows>(spec, /*needs_ids=*/false));
  EXPECT_TRUE(order.is_complete());
  EXPECT_TRUE(order.Check(Key(2, 4, 2)).ok());
}

TEST(MessageOrderTest, BeforeTheFirstStartAndBehindASingleStepAnythingMayCome) {
  MessageOrder order;
  EXPECT_TRUE(order.is_complete());
  EXPECT_TRUE(order.Check(Key(9, 25, 0)).ok());
  order.Start(Rows(2, 5, 5, /*goes_on=*/false));
  EXPECT_FALSE(order.Check(Key(2, 4, 0)).ok());
  EXPECT_TRUE(order.Check(Key(2, 5, 0)).ok());
  TakeAll(&order);
  EXPECT_TRUE(order.Check(Key(2, 4, 0)).ok());
  order.Start(Rows(2, 6, 6, /*goes_on=*/false));
  EXPECT_TRUE(order.Check(Key(2, 6, 0)).ok());
  EXPECT_FALSE(order.Check(Key(2, 4, 0)).ok());
}

}  // namespace
}  // namespace thinwire
