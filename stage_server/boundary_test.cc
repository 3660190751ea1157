// Both ends of a boundary, joined by a memory link.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "absl/time/clock.h"
#include "compress/cpu/kernels.h"
#include "stage_server/boundary_receiver.h"
#include "stage_server/boundary_sender.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

  void Make(Worker worker) {
    receiver_.reset();
    sender_.reset();
    LinkOptions up, down;
    up.name = down.name = spec_.name;
    up.receives = DIRECTION_GRADIENT;
    down.receives = DIRECTION_ACTIVATION;
    up.max_payload_bytes = down.max_payload_bytes = *MaxPayloadBytes(spec_);
    up.queue_capacity = down.queue_capacity = 8;
    std::tie(up_, down_) = NewMemoryLinks(up, down);
    sender_ = *BoundarySender::New(spec_, up_.get(), worker, nullptr);
    receiver_ = *BoundaryReceiver::New(spec_, down_.get(), worker, nullptr);
  }

  static Tensor Of(std::vector<float> values, int64_t batch = 1) {
    Tensor x = *Tensor::Allocate(CpuDevice(), DType::kF32,
                                 {batch, static_cast<int64_t>(values.size()) / batch});
    std::copy(values.begin(), values.end(), x.floats().begin());
    return x;
  }
  static MessageKey Key(uint64_t step) { return {PHASE_TRAIN, {}, 0, 1, step, 0}; }
  static absl::Time Soon() { return absl::Now() + absl::Seconds(30); }
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
  EXPECT_EQ(sent.measured_messages, 1u);
  EXPECT_NEAR(sent.last_error.received.relative_error, std::sqrt(1.25 / 26.25), 1e-6);
}

TEST_P(BoundaryTest, UncompressedMessagesAreExactWhateverTheCodec) {
  ASSERT_TRUE(sender_->Send(Key(1), 5, /*compress=*/false, Of({1, -4, 3, 0.5})).ok());
  BoundaryReceiver::Expected expected = Expect(1);
  expected.compressed = false;
  EXPECT_THAT(receiver_->Receive(expected, Soon())->tensor.floats(), ElementsAre(1, -4, 3, 0.5));
}

TEST_P(BoundaryTest, AnotherStepIsRefusedNamingBoth) {
  ASSERT_TRUE(sender_->Send(Key(1), 5, true, Of({1, 2, 3, 4})).ok());
  const absl::Status status = receiver_->Receive(Expect(2), Soon()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("layer1"), HasSubstr("step 2"), HasSubstr("step 1")));
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
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("layer1"), HasSubstr("activation"), HasSubstr("step 17")));
}

TEST_P(BoundaryTest, ADeadlineNamesCutAndMessage) {
  const absl::Status status =
      receiver_->Receive(Expect(3), absl::Now() + absl::Milliseconds(5)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("layer1"));
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

INSTANTIATE_TEST_SUITE_P(Workers, BoundaryWorkerTest, ::testing::Values(Worker::kOwnThread));

}  // namespace
}  // namespace thinwire
