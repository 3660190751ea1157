#include "stage_server/boundary/message_order.h"

#include <gtest/gtest.h>

#include <string>

namespace thinwire {
namespace {

// 11 samples in batches of 4, each in up to 3 microbatches but for the last of 2: three steps an
// epoch.
std::shared_ptr<const EpochRows> Rows(uint32_t epoch, uint64_t only_step = 0) {
  const EpochSpec spec{{ShuffleKind::kSamples, 7, 4}, 3, epoch, 10, only_step};
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

TEST(MessageOrderTest, BeforeTheFirstStartAndBehindASingleStepAnythingMayCome) {
  MessageOrder order;
  EXPECT_TRUE(order.is_complete());
  EXPECT_TRUE(order.Check(Key(9, 25, 0)).ok());
  order.Start(Rows(2, /*only_step=*/5));
  EXPECT_FALSE(order.Check(Key(2, 4, 0)).ok());
  EXPECT_TRUE(order.Check(Key(2, 5, 0)).ok());
  TakeAll(&order);
  EXPECT_TRUE(order.Check(Key(2, 4, 0)).ok());
  order.Start(Rows(2, /*only_step=*/6));
  EXPECT_TRUE(order.Check(Key(2, 6, 0)).ok());
  EXPECT_FALSE(order.Check(Key(2, 4, 0)).ok());
}

}  // namespace
}  // namespace thinwire
