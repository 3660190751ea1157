// Both ends of a boundary, joined by a memory link.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/steady_time.h"
#include "compress/cpu/kernels.h"
#include "stage_server/boundary/receiver.h"
#include "stage_server/boundary/sender.h"
#include "tensor/cpu/device.h"
#include "wire/memory_link.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsNan;
using ::testing::Not;

// Both ends of the activations of one cut.
class BoundaryTest : public ::testing::TestWithParam<Worker> {
 protected:
  void SetUp() override {
    spec_.name = "layer1";
    spec_.peer = "stage 7 (somewhere)";
    spec_.direction = DIRECTION_ACTIVATION;
    spec_.sample = {1, 4};
    spec_.max_batch = 2;
    spec_.capacity = 2;
    spec_.error_every = 1;
    spec_.device = CpuDevice();
    spec_.kernels = CpuCodecKernels();
    spec_.codec.kind = CodecKind::kTopK;
    spec_.codec.scope = Scope::kSample;
    spec_.codec.ratio = 0.5;
    Make(GetParam());
  }

  // Makes both ends; `change` edits the receiver's specification only.
  void Make(
      Worker worker, const std::function<void(BoundarySpec*)>& change = [](BoundarySpec*) {},
      SupportMaps* at_sender = nullptr, SupportMaps* at_receiver = nullptr) {
    receiver_.reset();
    sender_.reset();
    BoundarySpec of_receiver = spec_;
    change(&of_receiver);
    LinkOptions up, down;
    up.name = down.name = spec_.name;
    up.receives = DIRECTION_GRADIENT;
    down.receives = spec_.direction;
    up.max_payload_bytes = down.max_payload_bytes = *MaxPayloadBytes(spec_);
    up.queue_capacity = down.queue_capacity = 8;
    std::tie(up_, down_) = NewMemoryLinks(up, down);
    sender_ = *BoundarySender::New(spec_, up_.get(), worker, at_sender);
    receiver_ = *BoundaryReceiver::New(of_receiver, down_.get(), worker, at_receiver);
  }

  // Returns an epoch of `batches` batches of one sample.
  static std::shared_ptr<const EpochRows> Rows(uint32_t epoch, int64_t batches) {
    return std::make_shared<const EpochRows>(
        EpochSpec{{ShuffleKind::kSamples, 0, /*batch_size=*/1}, 1, epoch, /*samples=*/batches},
        /*needs_ids=*/false);
  }
  // Starts epoch 1.
  void StartEpoch(int64_t batches = 9) {
    sender_->StartEpoch(Rows(1, batches));
    receiver_->StartEpoch(Rows(1, batches));
  }
  // Sends a message of `key` and returns what the receiver, which wants `expected`, says.
  absl::Status SendTo(const MessageKey& key, BoundaryReceiver::Expected expected) {
    EXPECT_TRUE(sender_->Send(key, 5, true, Of({1, -4, 3, 0.5})).ok());
    expected.key = key;
    return receiver_->Receive(expected, Soon()).status();
  }

  // Sends a message of `key` and waits until the worker has taken it from the link.
  void SendAndAwaitArrival(const MessageKey& key) {
    const double before = receiver_->statistics().last_receive_unix_seconds;
    EXPECT_TRUE(sender_->Send(key, 5, true, Of({1, 2, 3, 4})).ok());
    while (receiver_->statistics().last_receive_unix_seconds == before) {
      absl::SleepFor(absl::Milliseconds(1));
    }
  }

  static Tensor Of(std::vector<float> values, int64_t batch = 1) {
    Tensor x = *Tensor::Allocate(CpuDevice(), DType::kF32,
                                 {batch, static_cast<int64_t>(values.size()) / batch});
    std::copy(values.begin(), values.end(), x.floats().begin());
    return x;
  }
  static MessageKey Key(uint64_t step) { return {PHASE_TRAIN, {}, 0, 1, step, 0}; }
  static SteadyTime Soon() { return SteadyTime::Now() + absl::Seconds(30); }
  static BoundaryReceiver::Expected Expect(uint64_t step) {
    BoundaryReceiver::Expected expected;
    expected.key = Key(step);
    expected.batch = 1;
    expected.compressed = true;
    expected.sample_digest = 5;
    return expected;
  }

  BoundarySpec spec_;
  std::unique_ptr<Link> up_, down_;
  std::unique_ptr<BoundarySender> sender_;
  std::unique_ptr<BoundaryReceiver> receiver_;
};

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

TEST_P(BoundaryTest, ASumOfSquaresOfAnotherStepOrInsteadOfATensorIsRefused) {
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

TEST_P(BoundaryTest, ABasisWhereNoneIsLearnedIsRefused) {
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

TEST_P(BoundaryTest, AnotherStepIsRefusedNamingBoth) {
  ASSERT_TRUE(sender_->Send(Key(1), 5, true, Of({1, 2, 3, 4})).ok());
  const absl::Status status = receiver_->Receive(Expect(2), Soon()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("layer1"), HasSubstr("step 2"), HasSubstr("step 1")));
}

// A step early, a step late and an epoch ahead: a message that would change state is refused by its
// number, before any digest could show the damage.
TEST_P(BoundaryTest, WhatDoesNotComeNextIsRefusedBeforeItTouchesState) {
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

TEST_P(BoundaryTest, OtherSamplesAreRefused) {
  ASSERT_TRUE(sender_->Send(Key(1), 6, true, Of({1, 2, 3, 4})).ok());
  EXPECT_THAT(std::string(receiver_->Receive(Expect(1), Soon()).status().message()),
              HasSubstr("do not read the same samples"));
}

TEST_P(BoundaryTest, AnotherBatchSizeIsRefused) {
  ASSERT_TRUE(sender_->Send(Key(1), 5, true, Of({1, 2, 3, 4, 5, 6, 7, 8}, 2)).ok());
  EXPECT_THAT(std::string(receiver_->Receive(Expect(1), Soon()).status().message()),
              HasSubstr("2 samples, want 1"));
}

TEST_P(BoundaryTest, ACompressedMessageIsRefusedWhereAnExactOneIsExpected) {
  ASSERT_TRUE(sender_->Send(Key(1), 5, true, Of({1, 2, 3, 4})).ok());
  BoundaryReceiver::Expected expected = Expect(1);
  expected.compressed = false;
  EXPECT_THAT(std::string(receiver_->Receive(expected, Soon()).status().message()),
              HasSubstr("codec topk("));
}

TEST_P(BoundaryTest, WithoutStateNothingIsAFirstVisit) {
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

TEST_P(BoundaryTest, AShapeThatIsNotTheCutsIsRefused) {
  ASSERT_TRUE(sender_->Send(Key(1), 5, true, Of({1, 2, 3})).ok());
  EXPECT_THAT(std::string(receiver_->Receive(Expect(1), Soon()).status().message()),
              AllOf(HasSubstr("shape [1, 3]"), HasSubstr("[2, 4]")));
}

TEST_P(BoundaryTest, NanNamesCutDirectionAndStep) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  absl::Status status = sender_->Send(Key(17), 5, true, Of({1, nan, 3, 4}));
  // A worker closes the link with its reason, which ends the wait at its other direction.
  if (status.ok()) status = up_->Receive(Soon()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("layer1"), HasSubstr("activation"), HasSubstr("step 17")));
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

TEST_P(BoundaryTest, AnExactMessageIsRefusedWhereACompressedOneIsExpected) {
  ASSERT_TRUE(sender_->Send(Key(1), 5, /*compress=*/false, Of({1, 2, 3, 4})).ok());
  EXPECT_THAT(std::string(receiver_->Receive(Expect(1), Soon()).status().message()),
              AllOf(HasSubstr("codec none"), HasSubstr("want topk(")));
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

TEST_P(BoundaryTest, AGradientOnASupportThatNobodyKnowsIsRefused) {
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

TEST_P(BoundaryTest, ADeadlineNamesCutAndMessage) {
  const absl::Status status =
      receiver_->Receive(Expect(3), SteadyTime::Now() + absl::Milliseconds(5)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("layer1"));
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

using BoundaryWorkerTest = BoundaryTest;

TEST_P(BoundaryWorkerTest, MoreMessagesThanTheScheduleAllowsAreTheSendersError) {
  for (uint64_t step = 1; step <= 3; ++step) {
    ASSERT_TRUE(sender_->Send(Key(step), 5, true, Of({1, 2, 3, 4})).ok());
  }
  EXPECT_FALSE(up_->Receive(Soon()).ok());  // returns once the receiver has closed the link
  EXPECT_TRUE(receiver_->Receive(Expect(1), Soon()).ok());
  EXPECT_TRUE(receiver_->Receive(Expect(2), Soon()).ok());
  const absl::Status status = receiver_->Receive(Expect(3), Soon()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("stage 7 (somewhere)"));
}

// The worker has taken a message of an epoch that the executor has not begun.
TEST_P(BoundaryWorkerTest, StopEndsAWaitForAnEpochToo) {
  spec_.feedback.kind = FeedbackKind::kEf21;
  Make(GetParam());
  StartEpoch(/*batches=*/1);
  ASSERT_TRUE(SendTo(Key(1), Expect(1)).ok());
  BoundaryReceiver::Expected expected = Expect(2);
  expected.key.epoch = 2;
  sender_->StartEpoch(Rows(2, 1));
  SendAndAwaitArrival(expected.key);
  absl::Status status;
  std::thread executor([&] { status = receiver_->Receive(expected, Soon()).status(); });
  receiver_->Stop(absl::CancelledError("enough"));
  executor.join();
  EXPECT_EQ(status, absl::CancelledError("enough"));
}

TEST_P(BoundaryWorkerTest, AMessageOfTheNextEpochWaitsUntilItBegins) {
  spec_.feedback.kind = FeedbackKind::kEf21;
  Make(GetParam());
  StartEpoch(/*batches=*/1);
  ASSERT_TRUE(SendTo(Key(1), Expect(1)).ok());
  BoundaryReceiver::Expected expected = Expect(2);
  expected.key.epoch = 2;
  sender_->StartEpoch(Rows(2, 1));
  SendAndAwaitArrival(expected.key);
  receiver_->StartEpoch(Rows(2, 1));
  const auto received = receiver_->Receive(expected, Soon());
  EXPECT_TRUE(received.ok()) << received.status();
}

TEST_P(BoundaryWorkerTest, AnEpochThatDoesNotBeginIsWaitedForUntilTheDeadline) {
  spec_.feedback.kind = FeedbackKind::kEf21;
  spec_.patience = std::make_shared<Patience>(absl::Milliseconds(5));
  Make(GetParam());
  sender_->StartEpoch(Rows(1, 9));
  const absl::Status status = SendTo(Key(1), Expect(1));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("layer1, from stage 7 (somewhere)"),
                    HasSubstr("epoch 1 has not begun here within 5ms")));
}

// Told of it ten times a second, as a coordinator tells a stage of what the others do.
TEST_P(BoundaryWorkerTest, AMessageIsWaitedForAsLongAsTheRunAdvances) {
  spec_.patience = std::make_shared<Patience>(absl::Seconds(3));
  Make(GetParam());
  StartEpoch(/*batches=*/1);
  std::thread others([&] {
    for (uint64_t advances = 1; advances <= 35; ++advances) {
      spec_.patience->RunAdvanced(advances, SteadyTime::Now());
      absl::SleepFor(absl::Milliseconds(100));
    }
    EXPECT_TRUE(sender_->Send(Key(1), 5, true, Of({1, -4, 3, 0.5})).ok());
  });
  const auto received = receiver_->Receive(Expect(1), spec_.patience->Deadline());
  EXPECT_TRUE(received.ok()) << received.status();
  others.join();
}

INSTANTIATE_TEST_SUITE_P(Workers, BoundaryWorkerTest, ::testing::Values(Worker::kOwnThread));

}  // namespace
}  // namespace thinwire
