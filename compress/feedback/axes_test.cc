// Tests of rotation principal between two ends: whose axes a message uses, and which of them are
// kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

std::vector<uint8_t> AxesBytes(const KeptAxes& kept) {
  if (kept.axes == nullptr) return {};
  return {kept.axes->bytes().begin(), kept.axes->bytes().end()};
}

void ExpectEqualAxes(const FeedbackPair& pair) {
  EXPECT_EQ(AxesBytes(pair.sender->axes()), AxesBytes(pair.receiver->axes()));
}

TEST(AxesOfADirectionTest, AreTakenFromEveryNthMessage) {
  FeedbackPair pair = PairOf();
  const auto codec = CodecOf(Principal());
  std::vector<int> forms;
  for (uint64_t i = 0; i < 2 * kEvery + 1; ++i) {
    ASSERT_TRUE(pair.Send(*codec, RandomMessage(4, i), {}).ok());
    forms.push_back(pair.payload[0]);
    ExpectEqualAxes(pair);
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
  EXPECT_EQ(pair.sender->axes().axes, nullptr);
  ASSERT_TRUE(pair.Send(*codec, RandomMessage(4, 2), {}).ok());
  const std::vector<uint8_t> axes = AxesBytes(pair.sender->axes());
  for (uint64_t i = 0; i < 2 * kEvery; ++i) {
    ASSERT_TRUE(pair.Send(*codec, RandomMessage(4, i), {}, frozen).ok());
    EXPECT_EQ(pair.payload[0], 1);
    EXPECT_EQ(AxesBytes(pair.sender->axes()), axes);
    EXPECT_EQ(pair.sender->axes().messages, 1u);
    ExpectEqualAxes(pair);
  }
}

TEST(AxesOfADirectionTest, ExactMessagesLeaveThemAlone) {
  FeedbackPair pair = PairOf();
  const auto codec = CodecOf(Principal());
  FeedbackSender::Outgoing exact;
  exact.compress = false;
  ASSERT_TRUE(pair.Send(*codec, RandomMessage(4, 1), {}, exact).ok());
  EXPECT_EQ(pair.sender->axes().axes, nullptr);
  EXPECT_EQ(pair.receiver->axes().axes, nullptr);
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
      const KeptAxes& axes = pair.sender->axes();
      ASSERT_TRUE(copy.sender->SetAxes(axes.axes->bytes(), axes.messages).ok());
      ASSERT_TRUE(copy.receiver->SetAxes(axes.axes->bytes(), 0).ok());
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
