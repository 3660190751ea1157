// Tests of what crosses a boundary, and what both ends tell of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/steady_time.h"
#include "stage_server/boundary/boundary_testing.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsNan;
using ::testing::Not;

TEST_P(BoundaryTest, ATextMayHaveFewerPositionsThanASample) {
  spec_.sample = {1, 3, 2};
  const auto receive = [this](Phase phase, int64_t positions) {
    Make(GetParam());
    const Tensor x = *Tensor::Allocate(CpuDevice(), DType::kF32, {1, positions, 2});
    std::fill(x.floats().begin(), x.floats().end(), 1.0f);
    BoundaryReceiver::Expected expected = Expect(1);
    expected.key.phase = phase;
    expected.compressed = false;
    EXPECT_TRUE(sender_->Send(expected.key, 5, /*compress=*/false, x).ok());
    return std::string(receiver_->Receive(expected, Soon()).status().message());
  };
  EXPECT_EQ(receive(PHASE_GENERATE, 1), "");
  EXPECT_EQ(receive(PHASE_GENERATE, 3), "");
  EXPECT_THAT(receive(PHASE_GENERATE, 4),
              HasSubstr("shape [1, 4, 2], want [2, 3, 2] or fewer samples and positions"));
  EXPECT_THAT(receive(PHASE_EVALUATE_COMPRESSED, 1),
              HasSubstr("shape [1, 1, 2], want [2, 3, 2] or fewer samples"));
}

TEST_P(BoundaryTest, CompressesAndTellsWhatItCost) {
  ASSERT_TRUE(sender_->Send(Key(1), 5, /*compress=*/true, Of({1, -4, 3, 0.5})).ok());
  const auto received = receiver_->Receive(Expect(1), Soon());
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_THAT(received->tensor.floats(), ElementsAre(0, -4, 3, 0));
  EXPECT_EQ(received->sample_digest, 5u);
  ASSERT_TRUE(sender_->Flush(Soon()).ok());  // it counts after it has sent
  const BoundaryStatistics sent = sender_->statistics();
  EXPECT_EQ(sent.train.messages, 1u);
  EXPECT_EQ(sent.train.elements, 4u);
  EXPECT_EQ(sent.train.raw_bytes, 16u);
  EXPECT_GT(sent.train.wire_bytes, sent.train.payload_bytes);
  EXPECT_EQ(sent.evaluate.messages, 0u);
  EXPECT_EQ(sent.errors.messages, 1u);
  EXPECT_NEAR(sent.errors.relative_error, std::sqrt(1.25 / 26.25), 1e-6);
  EXPECT_EQ(sent.errors.codec.relative_error, sent.errors.relative_error);
  EXPECT_EQ(sent.errors.last_codec.relative_error, sent.errors.relative_error);
}

TEST_P(BoundaryTest, DocumentsBeginWhereTheSenderSays) {
  spec_.packs_documents = true;
  Make(GetParam());
  BoundaryReceiver::Expected expected = Expect(1);
  expected.batch = 2;
  ASSERT_TRUE(sender_->Send(Key(1), 5, true, Of({1, 2, 3, 4, 5, 6, 7, 8}, 2), {{2, 3, 7}}).ok());
  const auto received = receiver_->Receive(expected, Soon());
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_THAT(received->document_starts, ElementsAre(2, 3, 7));
  ASSERT_TRUE(sender_->Send(Key(2), 5, true, Of({1, 2, 3, 4})).ok());
  EXPECT_THAT(receiver_->Receive(Expect(2), Soon())->document_starts, ElementsAre());
}

TEST_P(BoundaryTest, ARelativeErrorOfZerosIsNotCounted) {
  spec_.feedback.kind = FeedbackKind::kEf;
  Make(GetParam());
  StartEpoch();
  // The second message carries what the first one left: x is zero, what the receiver gets is not.
  for (const auto& [step, value] : {std::pair(1, 1.0f), std::pair(2, 0.0f)}) {
    ASSERT_TRUE(sender_->Send(Key(step), 5, true, Of({value, value, value, value})).ok());
    ASSERT_TRUE(receiver_->Receive(Expect(step), Soon()).ok());
  }
  ASSERT_TRUE(sender_->Flush(Soon()).ok());
  EXPECT_EQ(sender_->statistics().errors.messages, 1u);
  EXPECT_TRUE(std::isfinite(sender_->statistics().errors.relative_error));
}

TEST_P(BoundaryTest, WithoutACodecTheCosineIsOneAndNoCodecErred) {
  spec_.codec = CodecSpec();
  Make(GetParam());
  for (uint64_t step = 1; step <= 3; ++step) {
    ASSERT_TRUE(sender_->Send(Key(step), 5, true, Of({1, 1, 0, 0.5f * step})).ok());
    ASSERT_TRUE(receiver_->Receive(Expect(step), Soon()).ok());
  }
  ASSERT_TRUE(sender_->Flush(Soon()).ok());
  const MeasuredErrors errors = sender_->statistics().errors;
  EXPECT_EQ(errors.messages, 3u);
  EXPECT_EQ(errors.cosine, 3);
  EXPECT_EQ(errors.relative_error, 0);
  EXPECT_EQ(errors.coded_messages, 0u);
}

TEST_P(BoundaryTest, TheCodecsErrorIsThatOfTheMessagesItCoded) {
  spec_.feedback.kind = FeedbackKind::kEf21;
  spec_.feedback.init = StateInit::kExact;
  Make(GetParam());
  StartEpoch();
  // The first visit of the slot goes exact.
  ASSERT_TRUE(sender_->Send(Key(1), 5, true, Of({1, -4, 3, 0.5})).ok());
  ASSERT_TRUE(receiver_->Receive(Expect(1), Soon()).ok());
  ASSERT_TRUE(sender_->Flush(Soon()).ok());
  EXPECT_EQ(sender_->statistics().errors.messages, 1u);
  EXPECT_EQ(sender_->statistics().errors.coded_messages, 0u);
  ASSERT_TRUE(sender_->Send(Key(2), 5, true, Of({2, -8, 6, 1})).ok());
  ASSERT_TRUE(receiver_->Receive(Expect(2), Soon()).ok());
  ASSERT_TRUE(sender_->Flush(Soon()).ok());
  const BoundaryStatistics sent = sender_->statistics();
  EXPECT_EQ(sent.errors.messages, 2u);
  EXPECT_EQ(sent.errors.coded_messages, 1u);
  EXPECT_NEAR(sent.errors.codec.relative_error, std::sqrt(1.25 / 26.25), 1e-6);
  EXPECT_NEAR(sent.errors.codec.relative_residual, 0.5, 1e-6);
  EXPECT_EQ(sent.errors.last_codec.relative_error, sent.errors.codec.relative_error);
}

TEST_P(BoundaryTest, UncompressedMessagesAreExactWhateverTheCodec) {
  ASSERT_TRUE(sender_->Send(Key(1), 5, /*compress=*/false, Of({1, -4, 3, 0.5})).ok());
  BoundaryReceiver::Expected expected = Expect(1);
  expected.compressed = false;
  EXPECT_THAT(receiver_->Receive(expected, Soon())->tensor.floats(), ElementsAre(1, -4, 3, 0.5));
}

TEST_P(BoundaryTest, ASumOfSquaresIsTrainingsTrafficWithoutATensor) {
  MessageKey key = Key(3);
  key.phase = PHASE_GRADIENT_NORM;
  ASSERT_TRUE(sender_->SendSumOfSquares(key, 0.1).ok());
  const absl::StatusOr<double> sum = receiver_->ReceiveSumOfSquares(key, Soon());
  ASSERT_TRUE(sum.ok()) << sum.status();
  EXPECT_EQ(*sum, 0.1);
  ASSERT_TRUE(sender_->Flush(Soon()).ok());
  const BoundaryStatistics sent = sender_->statistics();
  EXPECT_EQ(sent.train.messages, 1u);
  EXPECT_EQ(sent.train.elements, 0u);
  EXPECT_EQ(sent.train.raw_bytes, 0u);
  EXPECT_GT(sent.train.wire_bytes, 0u);
}

TEST_P(BoundaryTest, ASenderInTheCallersThreadGivesWhatTheReceiverUses) {
  if (GetParam() == Worker::kOwnThread) GTEST_SKIP() << "it works later";
  for (const FeedbackKind kind : {FeedbackKind::kNone, FeedbackKind::kEf, FeedbackKind::kEf21}) {
    spec_.feedback.kind = kind;
    Make(GetParam());
    StartEpoch();
    for (uint64_t step = 1; step <= 3; ++step) {
      const auto kept = sender_->SendAndKeep(Key(step), 5, true, Of({1, -4, 3, 0.5f * step}));
      ASSERT_TRUE(kept.ok()) << kept.status();
      const std::vector<float> values(kept->floats().begin(), kept->floats().end());
      const auto received = receiver_->Receive(Expect(step), Soon());
      ASSERT_TRUE(received.ok()) << received.status();
      EXPECT_THAT(received->tensor.floats(), ElementsAreArray(values));
    }
  }
}

TEST_P(BoundaryTest, NanPassesExactlyWhereItMayAndNoStateRemembersIt) {
  spec_.on_nonfinite = OnNonfinite::kPass;
  for (FeedbackKind kind : {FeedbackKind::kNone, FeedbackKind::kEf, FeedbackKind::kEf21}) {
    SCOPED_TRACE(Name(kind));
    spec_.feedback.kind = kind;
    Make(GetParam());
    StartEpoch();
    const auto cross = [&](uint64_t step, std::vector<float> values) {
      EXPECT_TRUE(sender_->Send(Key(step), 5, true, Of(std::move(values))).ok());
      const auto received = receiver_->Receive(Expect(step), Soon());
      EXPECT_TRUE(received.ok()) << received.status();
      const auto floats = received->tensor.floats();
      return std::vector<float>(floats.begin(), floats.end());
    };
    cross(1, {1, -4, 3, 0.5});
    const std::vector<float> with_nan = cross(2, {1, std::nanf(""), 3, 0.5});
    EXPECT_TRUE(std::isnan(with_nan[1]));
    EXPECT_EQ(with_nan[2], 3);
    cross(3, {8, 7, 0, 0});
    EXPECT_THAT(cross(4, {8, 7, 0, 0}), ElementsAre(8, 7, 0, 0));
    EXPECT_THAT(cross(5, {0, 0, 5, 0}), Each(Not(IsNan())));
    ASSERT_TRUE(sender_->Flush(Soon()).ok());
    EXPECT_EQ(sender_->statistics().errors.messages, 4u) << "one of five has no error";
  }
}

TEST_P(BoundaryTest, TheLevelOfItsEpochIsTakenAndNoOther) {
  spec_.level.kind = LevelKind::kByEpoch;
  spec_.level.by_epoch = {{2, 0.25}};
  Make(GetParam());
  BoundaryReceiver::Expected expected = Expect(1);
  expected.key.epoch = 2;
  ASSERT_TRUE(sender_->Send(expected.key, 5, true, Of({1, -4, 3, 0.5})).ok());
  EXPECT_THAT(receiver_->Receive(expected, Soon())->tensor.floats(), ElementsAre(0, -4, 0, 0));

  Make(GetParam(), [](BoundarySpec* of_receiver) { of_receiver->level.by_epoch = {{2, 0.75}}; });
  ASSERT_TRUE(sender_->Send(expected.key, 5, true, Of({1, -4, 3, 0.5})).ok());
  EXPECT_THAT(std::string(receiver_->Receive(expected, Soon()).status().message()),
              AllOf(HasSubstr("ratio=0.25"), HasSubstr("ratio=0.75")));
}

// A link that claims to have sent everything by the given way.
class OneWay final : public Link {
 public:
  explicit OneWay(Way way) : way_(way) {}
  uint64_t Send(Message /*message*/) override { return 77; }
  absl::StatusOr<Message> Receive(SteadyTime /*deadline*/) override {
    return absl::CancelledError("nothing comes");
  }
  void Close(absl::Status /*reason*/) override {}
  absl::Status Flush(SteadyTime /*deadline*/) override { return absl::OkStatus(); }
  uint64_t SocketBytesAcked() const override { return 0; }
  Way last_way() const override { return way_; }

 private:
  const Way way_;
};

TEST_P(BoundaryTest, ATraceSaysWhichWayAMessageTook) {
  for (const auto& [way, name] :
       {std::pair(Way::kMemory, "send"), std::pair(Way::kDeviceSlots, "send device_slots"),
        std::pair(Way::kDeviceCopies, "send device_copies"),
        std::pair(Way::kHostCopies, "send host_copies"), std::pair(Way::kSocket, "send socket")}) {
    OneWay link(way);
    spec_.trace = std::make_shared<StepTrace>(1, 1, 10);
    const auto sender = *BoundarySender::New(spec_, &link, GetParam(), /*support=*/nullptr);
    ASSERT_TRUE(sender->Send(Key(1), 5, true, Of({1, 2, 3, 4})).ok());
    ASSERT_TRUE(sender->AwaitEncoded(Soon()).ok());
    const StepTrace::Taken taken = spec_.trace->Take();
    ASSERT_EQ(taken.slices.size(), 3u);  // encoded, its error measured, sent
    EXPECT_STREQ(taken.slices[2].name, name);
    EXPECT_EQ(taken.slices[2].wire_bytes, 77u);
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, BoundaryTest,
                         ::testing::Values(Worker::kInline, Worker::kOwnThread),
                         [](const auto& info) {
                           return info.param == Worker::kInline ? "Inline" : "OwnThread";
                         });

}  // namespace
}  // namespace thinwire
