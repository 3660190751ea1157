// Tests of rotation principal between two ends: whose axes a message uses, and which of them are
// kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "compress/feedback/pair_testing.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kEvery = 3;

CodecSpec Principal() {
  CodecSpec spec = DefaultSpec(CodecKind::kEcsq);
  spec.rotation = Rotation::kPrincipal;
  spec.rotation_every = kEvery;
  return spec;
}

FeedbackPair PairOf(FeedbackKind kind = FeedbackKind::kNone) {
  return FeedbackPair(FeedbackOptionsOf(SpecOf(kind), kSampleShape));
}

std::string AxesBytes(const std::shared_ptr<const Carry>& carry) {
  return DataOfPart(carry, "axes");
}

uint64_t MessagesOf(const std::shared_ptr<const Carry>& carry) {
  uint64_t messages = 0;
  std::memcpy(&messages, DataOfPart(carry, "axes_messages").data(), sizeof(messages));
  return messages;
}

void ExpectEqualAxes(const FeedbackPair& pair) {
  EXPECT_EQ(AxesBytes(pair.sender->carry()), AxesBytes(pair.receiver->carry()));
}

TEST(AxesOfADirectionTest, AreTakenFromEveryNthMessage) {
  FeedbackPair pair = PairOf();
  const auto codec = CodecOf(Principal());
  std::vector<int> forms;
  for (uint64_t i = 0; i < 2 * kEvery + 1; ++i) {
    ASSERT_TRUE(pair.Send(*codec, RandomMessage(4, i), {}).ok());
    forms.push_back(pair.payload[0]);
    ExpectEqualAxes(pair);
    EXPECT_EQ(MessagesOf(pair.sender->carry()), i % kEvery + 1);
    EXPECT_EQ(MessagesOf(pair.receiver->carry()), 0u);
  }
  EXPECT_THAT(forms, ElementsAre(2, 1, 1, 2, 1, 1, 2));
}

TEST(AxesOfADirectionTest, StayAsTheyAreInEvaluation) {
  FeedbackPair pair = PairOf();
  const auto codec = CodecOf(Principal());
  FeedbackSender::Outgoing frozen;
  frozen.frozen = true;
  ASSERT_TRUE(pair.Send(*codec, RandomMessage(4, 1), {}, frozen).ok());
  EXPECT_EQ(pair.payload[0], 0) << "before the first axes";
  EXPECT_EQ(pair.sender->carry(), nullptr);
  ASSERT_TRUE(pair.Send(*codec, RandomMessage(4, 2), {}).ok());
  const std::string axes = AxesBytes(pair.sender->carry());
  for (uint64_t i = 0; i < 2 * kEvery; ++i) {
    ASSERT_TRUE(pair.Send(*codec, RandomMessage(4, i), {}, frozen).ok());
    EXPECT_EQ(pair.payload[0], 1);
    EXPECT_EQ(AxesBytes(pair.sender->carry()), axes);
    EXPECT_EQ(MessagesOf(pair.sender->carry()), 1u);
    ExpectEqualAxes(pair);
  }
}

TEST(AxesOfADirectionTest, ExactMessagesLeaveThemAlone) {
  FeedbackPair pair = PairOf();
  const auto codec = CodecOf(Principal());
  FeedbackSender::Outgoing exact;
  exact.compress = false;
  ASSERT_TRUE(pair.Send(*codec, RandomMessage(4, 1), {}, exact).ok());
  EXPECT_EQ(pair.sender->carry(), nullptr);
  EXPECT_EQ(pair.receiver->carry(), nullptr);
}

TEST(AxesOfADirectionTest, AReceiverWithoutThemSaysSo) {
  FeedbackPair pair = PairOf(), other = PairOf();
  const auto codec = CodecOf(Principal());
  ASSERT_TRUE(pair.Send(*codec, RandomMessage(4, 1), {}).ok());
  pair.receiver = std::move(other.receiver);
  EXPECT_THAT(std::string(pair.Send(*codec, RandomMessage(4, 2), {}).status().message()),
              HasSubstr("which this end does not have"));
}

TEST(AxesOfADirectionTest, WhatIsRestoredGoesOnBitForBit) {
  for (const FeedbackKind kind : {FeedbackKind::kNone, FeedbackKind::kEf, FeedbackKind::kEf21}) {
    FeedbackPair pair = PairOf(kind), copy = PairOf(kind);
    const auto codec = CodecOf(Principal());
    const Rows rows = {0, 1, 2, 3};
    // With feedback it starts from the beginning, which leaves no rows.
    const uint64_t before = kind == FeedbackKind::kNone ? kEvery + 2 : 0;
    for (uint64_t i = 0; i < before; ++i) {
      ASSERT_TRUE(pair.Send(*codec, RandomMessage(4, i), rows).ok());
    }
    if (before > 0) {
      const Shape& sample = kSampleShape;
      copy.sender->set_carry(*codec->ReadCarry(pair.sender->carry()->Parts(), sample, CpuDevice()));
      copy.receiver->set_carry(
          *codec->ReadCarry(pair.receiver->carry()->Parts(), sample, CpuDevice()));
    }
    for (uint64_t i = before; i < before + 2 * kEvery; ++i) {
      const std::vector<float> used = FloatsOf(*pair.Send(*codec, RandomMessage(4, i), rows));
      EXPECT_EQ(FloatsOf(*copy.Send(*codec, RandomMessage(4, i), rows)), used);
      EXPECT_EQ(copy.payload, pair.payload);
      ExpectEqualAxes(copy);
    }
  }
}

TEST(AxesOfADirectionTest, WhatTheSenderTakesForReceivedIsReceived) {
  for (const FeedbackKind kind : {FeedbackKind::kNone, FeedbackKind::kEf, FeedbackKind::kEf21}) {
    FeedbackPair pair = PairOf(kind);
    const auto codec = CodecOf(Principal());
    FeedbackSender::Outgoing outgoing;
    outgoing.want_received = true;
    for (uint64_t i = 0; i < 2 * kEvery; ++i) {
      const auto used = pair.Send(*codec, RandomMessage(4, i), {0, 1, 2, 3}, outgoing);
      ASSERT_TRUE(used.ok()) << used.status();
      EXPECT_EQ(FloatsOf(*used), FloatsOf(pair.encoded.received));
    }
  }
}

}  // namespace
}  // namespace thinwire
