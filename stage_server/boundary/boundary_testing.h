// Fixture of tests of a boundary: both ends, joined by a memory link.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "base/steady_time.h"
#include "compress/cpu/kernels.h"
#include "stage_server/boundary/receiver.h"
#include "stage_server/boundary/sender.h"
#include "tensor/cpu/device.h"
#include "wire/memory_link.h"

namespace thinwire {

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

}  // namespace thinwire
