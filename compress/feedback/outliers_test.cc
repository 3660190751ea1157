// Tests of outliers between two ends: which message chooses the channels, and who keeps them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "compress/feedback/pair_testing.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CodecSpec WithTwoOutliers() {
  CodecSpec spec = UniformOf(4);
  spec.outliers = 2;
  return spec;
}

FeedbackPair NewPair(FeedbackKind kind = FeedbackKind::kNone) {
  return FeedbackPair(FeedbackOptionsOf(SpecOf(kind), kSampleShape));
}

std::string KeptChannels(const std::shared_ptr<const Carry>& carry) {
  return DataOfPart(carry, "outliers");
}

TEST(OutliersOfADirectionTest, AreThoseOfTheFirstTrainingMessage) {
  FeedbackPair pair = NewPair();
  const auto codec = CodecOf(WithTwoOutliers());
  FeedbackSender::Outgoing frozen, exact;
  frozen.frozen = true;
  exact.compress = false;
  std::vector<int> forms;
  const auto send = [&](uint64_t seed, const FeedbackSender::Outgoing& outgoing = {}) {
    ASSERT_TRUE(pair.Send(*codec, RandomMessage(4, seed), {}, outgoing).ok());
    forms.push_back(pair.payload[0]);
    EXPECT_EQ(KeptChannels(pair.sender->carry()), KeptChannels(pair.receiver->carry()));
  };
  send(1, frozen);
  EXPECT_EQ(pair.sender->carry(), nullptr) << "evaluation keeps nothing";
  ASSERT_TRUE(pair.Send(*codec, RandomMessage(4, 2), {}, exact).ok());
  EXPECT_EQ(pair.sender->carry(), nullptr) << "an exact message has no channels";
  send(3);
  const std::string channels = KeptChannels(pair.sender->carry());
  EXPECT_EQ(channels.size(), 8u);
  send(4);
  send(5, frozen);
  EXPECT_EQ(KeptChannels(pair.sender->carry()), channels);
  EXPECT_THAT(forms, ElementsAre(2, 2, 1, 1));
}

TEST(OutliersOfADirectionTest, ACalibratingMessageLeavesThemAndNoState) {
  FeedbackPair pair = NewPair(FeedbackKind::kEf21);
  FeedbackSender::Outgoing calibrating, frozen;
  calibrating.frozen = calibrating.calibrates = frozen.frozen = true;
  const auto codec = CodecOf(WithTwoOutliers());
  ASSERT_TRUE(pair.Send(*codec, RandomMessage(4, 1), {}, calibrating).ok());
  EXPECT_EQ(KeptChannels(pair.sender->carry()).size(), 8u);
  EXPECT_EQ(KeptChannels(pair.sender->carry()), KeptChannels(pair.receiver->carry()));
  EXPECT_TRUE(pair.sender->state()->keys().empty());
  ASSERT_TRUE(pair.Send(*codec, RandomMessage(4, 2), {}, frozen).ok());
  EXPECT_EQ(pair.payload[0], 1);
}

TEST(OutliersOfADirectionTest, AReceiverWithoutThemSaysSo) {
  FeedbackPair pair = NewPair(), other = NewPair();
  const auto codec = CodecOf(WithTwoOutliers());
  ASSERT_TRUE(pair.Send(*codec, RandomMessage(4, 1), {}).ok());
  pair.receiver = std::move(other.receiver);
  EXPECT_THAT(std::string(pair.Send(*codec, RandomMessage(4, 2), {}).status().message()),
              HasSubstr("which this end does not have"));
}

TEST(OutliersOfADirectionTest, WhatTheSenderTakesForReceivedIsReceived) {
  for (const FeedbackKind kind : {FeedbackKind::kNone, FeedbackKind::kEf, FeedbackKind::kEf21}) {
    for (const DType compute : {DType::kF32, DType::kBF16}) {
      FeedbackPair pair(FeedbackOptionsOf(SpecOf(kind), kSampleShape, compute));
      CodecSpec spec = WithTwoOutliers();
      spec.first_position = FirstPosition::kExact;
      FeedbackSender::Outgoing outgoing;
      outgoing.want_received = true;
      for (uint64_t i = 0; i < 3; ++i) {
        const Tensor x = RandomMessage(4, i, compute);
        const auto used = pair.Send(*CodecOf(spec), x, {0, 1, 2, 3}, outgoing);
        ASSERT_TRUE(used.ok()) << used.status();
        EXPECT_EQ(FloatsOf(*used), FloatsOf(pair.encoded.received));
      }
    }
  }
}

}  // namespace
}  // namespace thinwire
