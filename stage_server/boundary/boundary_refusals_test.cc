// Tests of what a boundary refuses, and in which words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/steady_time.h"
#include "stage_server/boundary/boundary_testing.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using BoundaryRefusalsTest = BoundaryTest;

TEST_P(BoundaryRefusalsTest, ASumOfSquaresOfAnotherStepOrInsteadOfATensorIsRefused) {
  MessageKey key = Key(3);
  key.phase = PHASE_GRADIENT_NORM;
  ASSERT_TRUE(sender_->SendSumOfSquares(key, 1).ok());
  key.step = 4;
  const absl::Status other = receiver_->ReceiveSumOfSquares(key, Soon()).status();
  EXPECT_EQ(other.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(other.message()),
              AllOf(HasSubstr("sum of squares of gradients before cut 0, epoch 1, step 4"),
                    HasSubstr("got the"), HasSubstr("step 3")));
  ASSERT_TRUE(sender_->SendSumOfSquares(key, 1).ok());
  const absl::Status tensor = receiver_->Receive(Expect(4), Soon()).status();
  EXPECT_EQ(tensor.code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(BoundaryRefusalsTest, ABasisWhereNoneIsLearnedIsRefused) {
  MessageKey key = Key(3);
  key.phase = PHASE_BASIS;
  ASSERT_TRUE(sender_->Send(key, 0, /*compress=*/false, Of({1, 2, 3, 4})).ok());
  BoundaryReceiver::Expected expected = Expect(3);
  expected.key = key;
  const absl::Status refused = receiver_->Receive(expected, Soon()).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("gradient of the basis before cut 0, epoch 1, step 3"),
                    HasSubstr("nothing is learned here")));
}

TEST_P(BoundaryRefusalsTest, AnotherStepIsRefusedNamingBoth) {
  ASSERT_TRUE(sender_->Send(Key(1), 5, true, Of({1, 2, 3, 4})).ok());
  const absl::Status status = receiver_->Receive(Expect(2), Soon()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("layer1"), HasSubstr("step 2"), HasSubstr("step 1")));
}

// A step early, a step late and an epoch ahead: a message that would change state is refused by its
// number, before any digest could show the damage.
TEST_P(BoundaryRefusalsTest, WhatDoesNotComeNextIsRefusedBeforeItTouchesState) {
  spec_.feedback.kind = FeedbackKind::kEf21;
  spec_.feedback.digest_every = 1;
  MessageKey ahead = Key(10);
  ahead.epoch = 2;
  for (const MessageKey& key : {Key(1), Key(3), ahead}) {
    Make(GetParam());
    StartEpoch();
    ASSERT_TRUE(SendTo(Key(1), Expect(1)).ok());
    sender_->StartEpoch(Rows(key.epoch, 9));
    const absl::Status status = SendTo(key, Expect(key.step));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("cut layer1, from stage 7 (somewhere)"),
                      HasSubstr(absl::StrCat("step ", key.step, ", microbatch 0: want epoch 1, ",
                                             "step 2, microbatch 0"))));
    EXPECT_EQ(receiver_->feedback().state()->keys().size(), 1u);
  }
}

TEST_P(BoundaryRefusalsTest, OtherSamplesAreRefused) {
  ASSERT_TRUE(sender_->Send(Key(1), 6, true, Of({1, 2, 3, 4})).ok());
  EXPECT_THAT(std::string(receiver_->Receive(Expect(1), Soon()).status().message()),
              HasSubstr("do not read the same samples"));
}

TEST_P(BoundaryRefusalsTest, AnotherBatchSizeIsRefused) {
  ASSERT_TRUE(sender_->Send(Key(1), 5, true, Of({1, 2, 3, 4, 5, 6, 7, 8}, 2)).ok());
  EXPECT_THAT(std::string(receiver_->Receive(Expect(1), Soon()).status().message()),
              HasSubstr("2 samples, want 1"));
}

TEST_P(BoundaryRefusalsTest, ACompressedMessageIsRefusedWhereAnExactOneIsExpected) {
  ASSERT_TRUE(sender_->Send(Key(1), 5, true, Of({1, 2, 3, 4})).ok());
  BoundaryReceiver::Expected expected = Expect(1);
  expected.compressed = false;
  EXPECT_THAT(std::string(receiver_->Receive(expected, Soon()).status().message()),
              HasSubstr("codec topk("));
}

TEST_P(BoundaryRefusalsTest, WithoutStateNothingIsAFirstVisit) {
  const Tensor x = Of({1, 2, 3, 4});
  Message message;
  message.key = Key(1);
  message.key.direction = spec_.direction;
  message.shape = x.shape();
  message.sample_digest = 5;
  message.first_visit = true;  // would excuse that it is exact
  message.payload = {x.buffer(), {static_cast<const uint8_t*>(x.data()), x.bytes()}};
  up_->Send(std::move(message));
  const absl::Status status = receiver_->Receive(Expect(1), Soon()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("layer1"), HasSubstr("first_visit")));
}

TEST_P(BoundaryRefusalsTest, DocumentsThatCannotBeginThereAreRefused) {
  const auto refusal = [&](std::vector<uint32_t> starts) {
    Make(GetParam());
    EXPECT_TRUE(sender_->Send(Key(1), 5, true, Of({1, 2, 3, 4}), {std::move(starts)}).ok());
    return std::string(receiver_->Receive(Expect(1), Soon()).status().message());
  };
  EXPECT_THAT(refusal({2}), HasSubstr("1 document_starts, want none: nothing is packed here"));
  spec_.packs_documents = true;
  EXPECT_THAT(refusal({2, 4}), HasSubstr("document_starts has 4 behind 2, want them ascending and "
                                         "below 4"));
  EXPECT_THAT(refusal({3, 3}), HasSubstr("document_starts has 3 behind 3"));
}

TEST_P(BoundaryRefusalsTest, AShapeThatIsNotTheCutsIsRefused) {
  ASSERT_TRUE(sender_->Send(Key(1), 5, true, Of({1, 2, 3})).ok());
  EXPECT_THAT(std::string(receiver_->Receive(Expect(1), Soon()).status().message()),
              AllOf(HasSubstr("shape [1, 3]"), HasSubstr("[2, 4]")));
}

TEST_P(BoundaryRefusalsTest, NanNamesCutDirectionAndStep) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  absl::Status status = sender_->Send(Key(17), 5, true, Of({1, nan, 3, 4}));
  // A worker closes the link with its reason, which ends the wait at its other direction.
  if (status.ok()) status = up_->Receive(Soon()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("layer1"), HasSubstr("activation"), HasSubstr("step 17")));
}

TEST_P(BoundaryRefusalsTest, AnExactMessageIsRefusedWhereACompressedOneIsExpected) {
  ASSERT_TRUE(sender_->Send(Key(1), 5, /*compress=*/false, Of({1, 2, 3, 4})).ok());
  EXPECT_THAT(std::string(receiver_->Receive(Expect(1), Soon()).status().message()),
              AllOf(HasSubstr("codec none"), HasSubstr("want topk(")));
}

TEST_P(BoundaryRefusalsTest, AGradientOnASupportThatNobodyKnowsIsRefused) {
  spec_.direction = DIRECTION_GRADIENT;
  spec_.codec = CodecSpec();
  spec_.codec.kind = CodecKind::kTopK;
  spec_.codec.indices = Indices::kShared;
  SupportMaps at_sender, at_receiver;
  const MessageKey key = Key(1);
  at_sender.Put(key, *SupportMap::Of(Of({0, 1, 0, 1}), CpuCodecKernels()));
  Make(
      GetParam(), [](BoundarySpec*) {}, &at_sender, &at_receiver);
  ASSERT_TRUE(sender_->Send(key, 5, true, Of({1, -4, 3, 0.5})).ok());
  EXPECT_THAT(std::string(receiver_->Receive(Expect(1), Soon()).status().message()),
              HasSubstr("its support is not known"));

  at_sender.Put(key, *SupportMap::Of(Of({0, 1, 0, 1}), CpuCodecKernels()));
  at_receiver.Put(key, *SupportMap::Of(Of({0, 2, 0, 2}), CpuCodecKernels()));
  Make(
      GetParam(), [](BoundarySpec*) {}, &at_sender, &at_receiver);
  ASSERT_TRUE(sender_->Send(key, 5, true, Of({1, -4, 3, 0.5})).ok());
  EXPECT_THAT(receiver_->Receive(Expect(1), Soon())->tensor.floats(), ElementsAre(0, -4, 0, 0.5));
}

TEST_P(BoundaryRefusalsTest, ADeadlineNamesCutAndMessage) {
  const absl::Status status =
      receiver_->Receive(Expect(3), SteadyTime::Now() + absl::Milliseconds(5)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("layer1"));
}

INSTANTIATE_TEST_SUITE_P(Workers, BoundaryRefusalsTest,
                         ::testing::Values(Worker::kInline, Worker::kOwnThread),
                         [](const auto& info) {
                           return info.param == Worker::kInline ? "Inline" : "OwnThread";
                         });

}  // namespace
}  // namespace thinwire
